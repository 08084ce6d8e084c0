import { rm } from 'node:fs/promises'
import type { Host } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import { operationOf } from '../changes/operation.js'
import { accessViewWith } from '../../../sdk/node/access/access-view.js'
import { lockOf } from '../repositories/lock-files.js'
import type { Repositories } from '../repositories/repositories.js'
import type { RunningWrites } from '../writes/running-writes.js'

/** Ends the writes that an earlier daemon was cut off in: an operation that was to be aborted is. */
export const recoverWrites = async (
  host: Pick<Host, 'call' | 'serves' | 'log' | 'place'>,
  repositories: Repositories,
  running: RunningWrites,
): Promise<void> => {
  for (const [id, { repo, verb, aborts }] of await running.cutOff()) {
    try {
      const opened = repositories.tryOpen(repo, accessViewWith(host.place.workspace, undefined))
      const git = opened && 'git' in opened ? opened.git : undefined
      const operation = git && operationOf(git.place.gitdir)
      // The git that was cut off ended with its daemon: a lock file that nobody holds now is its own.
      for (let left = git && lockOf(git.place); left && !left.info.pid; left = lockOf(git!.place)) await rm(left.path)
      if (operation && aborts) await git.write([operation, '--abort'])
      const extra = { repo, verb, ...(operation && { operation, aborted: aborts }) }
      await record(host, { type: 'git.recovered', outcome: 'ok', actor: 'sandbox:git', extra })
    } catch (error) {
      host.log.warn('a write that was cut off could not be ended', { repo, verb, error: String(error) })
    }
    await running.forget(id)
  }
}
