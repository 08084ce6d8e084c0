import { refuse } from '../../../sdk/index.js'
import { currentBranch } from '../branches/current-branch.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { remoteAddress, type RemoteAddress } from '../../../sdk/node/transport/remote-address.js'
import type { RemoteFailure } from '../../../sdk/node/transport/remote-words.js'
import { remoteOfBranch } from './remote-state.js'
import { remotesOf } from './settings.js'

/** A remote to contact. */
export interface AskedRemote {
  readonly name: string
  readonly address: RemoteAddress
}

/** The failure of a repository without a remote. */
export const NO_REMOTE: RemoteFailure = { code: 'no-remote', reason: 'no remote is configured' }

/** The named remote, otherwise that of a branch, by default the current one; undefined: none. */
export const askedRemote = async (
  { git, repo }: OpenRepo,
  { workspace, name, branch, push = false }: { workspace: string; name?: string; branch?: string; push?: boolean },
): Promise<AskedRemote | undefined> => {
  const wanted = name ?? (await remoteOfBranch(git, branch ?? (await currentBranch(git))))
  if (wanted === undefined) return undefined
  const found = (await remotesOf(git)).find(remote => remote.name === wanted)
  if (!found) return refuse('not-found', `${repo} has no remote ${wanted.slice(0, 200)}`)
  const text = (push ? found.pushUrl : undefined) ?? found.url
  try {
    return { name: wanted, address: remoteAddress(text, { workspace, from: git.place.dir, field: `remote ${wanted}` }) }
  } catch (error) {
    return refuse('unprocessable', `${(error as Error).message}; set it with POST /git/{repo}/remotes`)
  }
}
