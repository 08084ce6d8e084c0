import type { Handlers } from '../../../sdk/index.js'
import type { Repositories } from '../repositories/repositories.js'
import type { RemoteCalls } from './contract.js'
import { remoteList, remoteStateNow } from './listing.js'

/** Serves information about remotes without contacting them. */
export const remoteReads = (
  repositories: Repositories,
): Handlers<Pick<RemoteCalls, 'GET /git/{repo}/remote' | 'GET /git/{repo}/remotes'>> => ({
  'GET /git/{repo}/remote': async ({ repo }, { caller }) => remoteStateNow((await repositories.open(repo, caller)).git),
  'GET /git/{repo}/remotes': async ({ repo }, { caller }) => ({
    remotes: await remoteList((await repositories.open(repo, caller)).git),
  }),
})
