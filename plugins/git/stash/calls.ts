import type { Handlers } from '../../../sdk/index.js'
import type { Objects } from '../objects/objects.js'
import type { Repositories } from '../repositories/repositories.js'
import type { StashCalls } from './contract.js'
import { stashEntries, stashEntry, stashFiles } from './entries.js'

/** Serves the stash. */
export const stashReads = (
  repositories: Repositories,
  objects: Objects,
): Handlers<Pick<StashCalls, 'GET /git/{repo}/stashes' | 'GET /git/{repo}/stash-diff'>> => ({
  'GET /git/{repo}/stashes': async ({ repo }, { caller }) => ({
    repo,
    stashes: await stashEntries(objects, await repositories.open(repo, caller)),
  }),
  'GET /git/{repo}/stash-diff': async ({ repo, ref, sha }, { caller }) => {
    const opened = await repositories.open(repo, caller)
    return { files: await stashFiles(opened, await stashEntry(objects, opened, ref, sha)) }
  },
})
