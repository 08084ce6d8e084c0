import type { GitAnswer } from '../../../sdk/node/programs/git.js'
import { anyExit, overwrittenIn } from '../branches/git-words.js'
import { operationOf } from '../changes/operation.js'
import type { GitOperation } from '../records.js'
import { verdictOf } from '../repositories/repo-git.js'
import { orConflict, unmergedPaths, type GitVerdict, type Writing } from '../writes/write.js'
import type { OnConflict } from './contract.js'

/** Settings that prevent side effects of an operation. */
export const PLAIN = [
  'rerere.enabled=false',
  'rebase.autoStash=false',
  'rebase.updateRefs=false',
  'rebase.autoSquash=false',
]
  .concat('merge.autoStash=false')
  .flatMap(setting => ['-c', setting])

const EMPTY = /nothing to commit|previous cherry-pick is now empty|nothing added to commit|all conflicts fixed/i

/** Aborts the halted operation of a repository. */
export const abortOperation = async (write: Writing, operation: GitOperation): Promise<void> => {
  await orConflict(write.run([operation, '--abort']))
}

/** The outcome of an operation: done, nothing to do, a conflict that was undone or kept, or git's refusal. */
export const verdictAfter = async (
  write: Writing,
  { code, stderr, text }: GitAnswer,
  onConflict: OnConflict,
): Promise<GitVerdict> => {
  if (code === 0) return {}
  const operation = operationOf(write.opened.git.place.gitdir)
  const conflicts = await unmergedPaths(write.opened)
  if (operation && conflicts.length > 0) {
    if (onConflict === 'abort') await abortOperation(write, operation)
    return { code: 'conflict', reason: `${conflicts[0]} conflicts`, conflicts }
  }
  const said = `${stderr}\n${text}`
  const empty = EMPTY.test(said)
  // Nothing is unmerged, so the halted operation has nothing to keep.
  if (operation) await abortOperation(write, operation)
  if (empty) return { code: 'nothing', reason: 'the change is there already' }
  const dirty = overwrittenIn(stderr)
  const unclean = dirty.length > 0 || /you have unstaged changes|contains uncommitted changes|local changes/i.test(said)
  const behind = /not possible to fast-forward/i.test(said)
  return {
    code: unclean ? 'dirty' : behind ? 'not-fast-forward' : 'other',
    reason: verdictOf(stderr.trim() === '' ? text : stderr),
    conflicts: dirty,
  }
}

/** Runs an operation and returns its outcome. */
export const operate = async (write: Writing, args: readonly string[], onConflict: OnConflict): Promise<GitVerdict> =>
  verdictAfter(write, await write.run([...PLAIN, ...args], anyExit), onConflict)
