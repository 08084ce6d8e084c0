import type { Handlers, Host } from '../../../sdk/index.js'
import type { Objects } from '../objects/objects.js'
import type { Repositories } from '../repositories/repositories.js'
import type { GitFileCalls } from './contract.js'
import { trackedPaths } from './listing.js'
import { fileAt, fileOnDisk } from './reading.js'

/** Serves files of repositories. */
export const gitFileCalls = (
  { place: { workspace } }: Pick<Host, 'place'>,
  repositories: Repositories,
  objects: Objects,
): Handlers<GitFileCalls> => ({
  'GET /git/{repo}/files': async ({ repo, ...page }, { caller }) =>
    trackedPaths(await repositories.open(repo, caller), page),
  'GET /git/{repo}/file': async ({ repo, path, ref }, { caller }) => {
    const opened = await repositories.open(repo, caller)
    return ref === undefined ? fileOnDisk(opened, path, workspace) : fileAt(objects, opened, path, ref)
  },
})
