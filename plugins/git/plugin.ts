import type { Contract, Host } from '../../sdk/index.js'
import { accessViewWith } from '../../sdk/node/access/access-view.js'
import { branchCalls } from './branches/calls.js'
import { changeCalls } from './changes/calls.js'
import { branchWrites } from './branches/writes.js'
import { Committing } from './changes/committing.js'
import { LandedBy } from './changes/landed-by.js'
import { Scans } from './changes/scans.js'
import { changeWrites } from './changes/writes.js'
import { cloneCalls } from './clones/calls.js'
import { reposChanged } from './clones/repos-changed.js'
import { commitCalls } from './commits/calls.js'
import { gitContract, type GitCalls } from './contract.js'
import { examples } from './examples.js'
import { gitFileCalls } from './files/calls.js'
import { Objects } from './objects/objects.js'
import { operationCalls } from './operations/calls.js'
import { recoverWrites } from './operations/recovery.js'
import { pathCalls } from './paths/calls.js'
import { remoteReads } from './remotes/calls.js'
import { Fetches } from './remotes/fetching.js'
import { remoteWrites } from './remotes/writes.js'
import { refusingDamaged } from './repositories/damaged.js'
import { RepoLocks } from './repositories/repo-locks.js'
import { lockCalls } from './repositories/lock-calls.js'
import { Repositories } from './repositories/repositories.js'
import { sideCalls } from './sides/calls.js'
import { stashReads } from './stash/calls.js'
import { stashWrites } from './stash/writes.js'
import { Transfers } from './transport/transfers.js'
import { RefsWatch } from './watch/refs-watch.js'
import { RunningWrites } from './writes/running-writes.js'

export const contract: Contract<GitCalls> = { ...gitContract, examples }

/** Reads and changes the repositories of the workspace. */
export const activate = async (host: Host): Promise<void> => {
  const refs = new RefsWatch(host, () => scans.drop())
  const repositories = new Repositories(host, refs)
  const objects = new Objects(host.signal)
  const locks = new RepoLocks()
  const scans = new Scans(repositories)
  host.on('files.changed', () => scans.drop())
  host.on('folders.changed', () => reposChanged(host, repositories))
  const committing = new Committing()
  const running = new RunningWrites(host.store)
  host.boot('writes that were cut off', () => recoverWrites(host, repositories, running))
  const transfers = new Transfers(host, repositories.wall)
  await transfers.sweep()
  const writes = { host, repositories, objects, scans, locks, refs, running }
  const remotes = { ...writes, transfers, folder: host.place.folder }
  const fetches = new Fetches(remotes)
  const landedBy = new LandedBy(host)
  const handlers = {
    ...lockCalls(host, locks),
    ...changeCalls({ repositories, objects, scans, locks, landedBy, committing: () => committing.repos }),
    ...changeWrites({ ...writes, committing, folder: host.place.folder }),
    ...commitCalls(repositories, objects, landedBy),
    ...branchCalls(host, repositories),
    ...branchWrites(writes),
    ...operationCalls(writes),
    ...stashWrites(writes),
    ...stashReads(repositories, objects),
    ...remoteReads(repositories),
    ...remoteWrites(remotes, fetches),
    ...(await cloneCalls(remotes, fetches)),
    ...sideCalls(repositories, objects),
    ...pathCalls({ ...writes, folder: host.place.folder }),
    ...gitFileCalls(host, repositories, objects),
  }
  await host.serve(gitContract, refusingDamaged(handlers))
  void repositories
    .ids(accessViewWith(host.place.workspace, undefined))
    .then(ids => repositories.differ(ids))
    .catch(error => host.log.warn('watching repositories failed', { error: String(error) }))
}
