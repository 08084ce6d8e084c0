import { rm } from 'node:fs/promises'
import type { Host } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import { operationOf } from '../changes/operation.js'
import { accessViewWith } from '../../../sdk/node/access/access-view.js'
import { lockOf } from '../repositories/lock-files.js'
import type { Repositories } from '../repositories/repositories.js'
import type { RunningWrites } from '../writes/running-writes.js'

/** Ends the interrupted writes of an earlier daemon: aborts operations where the write says so. */
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
      // The interrupted git ended with its daemon, so a lock file without a holder is its own.
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
