import type { Handlers } from '../../../sdk/index.js'
import type { Fetches, RemoteDeps } from '../remotes/fetching.js'
import { Clones } from './cloning.js'
import type { CloneCalls } from './contract.js'
import { NewGitdirs } from './new-gitdirs.js'
import { startRepo } from './starting.js'
import { syncRepos } from './syncing.js'

/** Serves the calls that clone, create and sync repositories. */
export const cloneCalls = async (deps: RemoteDeps, fetches: Fetches): Promise<Handlers<CloneCalls>> => {
  const gitdirs = new NewGitdirs(deps.host.place)
  const clones = new Clones(deps, gitdirs)
  await gitdirs.sweep()
  await clones.sweep()
  return {
    'POST /workspace/repos': (order, context) => clones.add(order, context),
    'POST /workspace/repos/init': (order, context) => startRepo(deps, gitdirs, order, context),
    'POST /workspace/sync': async ({ repos }, context) => ({ repos: await syncRepos(deps, fetches, repos, context) }),
  }
}
