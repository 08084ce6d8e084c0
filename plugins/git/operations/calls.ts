import { currentBranch } from '../branches/current-branch.js'
import { rm } from 'node:fs/promises'
import { refuse, type Handlers } from '../../../sdk/index.js'
import { anyExit } from '../branches/git-words.js'
import { operationOf } from '../changes/operation.js'
import { lockOf } from '../repositories/lock-files.js'
import { SPARES_ALL } from '../repositories/repo-git.js'
import { orConflict, unmergedPaths, writing, type WriteDeps, type Writing } from '../writes/write.js'
import { abortOperation, operate, PLAIN, verdictAfter } from './conflicts.js'
import type { OperationCalls } from './contract.js'
import { undoableIn } from './undoing.js'

const parentsOf = async ({ opened: { git } }: Writing, commit: string): Promise<string[]> =>
  (await git.read(['rev-list', '--parents', '--max-count=1', commit])).text.trim().split(' ').slice(1)

/** The branch that is checked out; refuses a detached HEAD. */
const branchOf = async ({ opened: { git, repo } }: Writing): Promise<string> =>
  (await currentBranch(git)) ?? refuse('conflict', `HEAD of ${repo} is detached: check out a branch first`)

/** Whether a commit is on the upstream of a branch. */
const onUpstream = async ({ opened: { git } }: Writing, branch: string, commit: string): Promise<boolean> => {
  const { text } = await git.read(['for-each-ref', '--format=%(upstream)', `refs/heads/${branch}`])
  const upstream = text.trim()
  if (upstream === '') return false
  return (await git.read(['merge-base', '--is-ancestor', commit, upstream], { ok: [0, 1, 128] })).code === 0
}

const mainlineFor = async (write: Writing, commit: string, mainline: number | undefined): Promise<string[]> => {
  const parents = await parentsOf(write, commit)
  if (parents.length > 1 && (mainline === undefined || mainline > parents.length))
    refuse('unprocessable', `${commit.slice(0, 12)} is a merge: name a parent as mainline, 1 to ${parents.length}`)
  return parents.length > 1 ? ['-m', String(mainline)] : []
}

/** Serves merges, rebases and other operations that move a branch. */
export const operationCalls = (deps: WriteDeps): Handlers<OperationCalls> => {
  const { objects, repositories } = deps
  const picking =
    (verb: 'cherry-pick' | 'revert'): Handlers<OperationCalls>['POST /git/{repo}/cherry-pick'] =>
    ({ repo, sha, onConflict = 'abort', mainline, expectHead }, context) =>
      writing(deps, { repo, verb, whole: true, expectHead, aborts: onConflict === 'abort' }, context, async write => {
        const commit = await objects.commit(write.opened.git, sha)
        const how = await mainlineFor(write, commit, mainline)
        const point = await write.savePoint(`before a ${verb}`)
        const args = verb === 'revert' ? [verb, '--no-edit'] : [verb]
        return write.result({ ...(await operate(write, [...args, ...how, commit], onConflict)), point })
      })
  return {
    'POST /git/{repo}/merge': (
      { repo, sha, onConflict = 'abort', fastForward = 'allow', message, expectHead },
      context,
    ) => {
      const order = { repo, verb: 'merge', whole: true, expectHead, aborts: onConflict === 'abort' }
      return writing(deps, order, context, async write => {
        const commit = await objects.commit(write.opened.git, sha)
        const point = await write.savePoint('before a merge')
        const how = { allow: '--ff', never: '--no-ff', only: '--ff-only' }[fastForward]
        const words = message === undefined ? ['--no-edit'] : ['-m', message]
        const verdict = await operate(write, ['merge', '-q', how, ...words, commit], onConflict)
        if (verdict.code === undefined) await write.note('merged', { sha: commit })
        return write.result({ ...verdict, point })
      })
    },
    'POST /git/{repo}/rebase': ({ repo, sha, onConflict = 'abort', expectHead }, context) => {
      const order = { repo, verb: 'rebase', whole: true, expectHead, aborts: onConflict === 'abort' }
      return writing(deps, order, context, async write => {
        const { git } = write.opened
        const onto = await objects.commit(git, sha)
        const branch = await branchOf(write)
        const first = (await git.read(['rev-list', '--reverse', `${onto}..HEAD`])).text.split('\n')[0] ?? ''
        const pushed = first !== '' && (await onUpstream(write, branch, first))
        const point = await write.savePoint('before a rebase')
        const verdict = await operate(write, ['rebase', '-q', '--no-autostash', '--no-fork-point', onto], onConflict)
        if (verdict.code === undefined) await write.note('rebased', { onto })
        return { ...(await write.result({ ...verdict, point })), pushed }
      })
    },
    'POST /git/{repo}/cherry-pick': picking('cherry-pick'),
    'POST /git/{repo}/revert': picking('revert'),
    'POST /git/{repo}/drop': ({ repo, sha, expectHead }, context) =>
      writing(deps, { repo, verb: 'drop', whole: true, expectHead, aborts: true }, context, async write => {
        const { git } = write.opened
        const commit = await objects.commit(git, sha)
        const branch = await branchOf(write)
        const [parent, ...others] = await parentsOf(write, commit)
        if (parent === undefined || others.length > 0)
          return refuse(
            'unprocessable',
            `${sha} is ${parent === undefined ? 'the first commit' : 'a merge'}: it cannot be dropped`,
          )
        if ((await git.read(['merge-base', '--is-ancestor', commit, 'HEAD'], { ok: [0, 1] })).code !== 0)
          refuse('unprocessable', `${sha} is not on ${branch}`)
        const pushed = await onUpstream(write, branch, commit)
        const point = await write.savePoint('before dropping a commit')
        const how = ['rebase', '-q', '--no-autostash', '--no-fork-point', '--rebase-merges', '--onto', parent, commit]
        const verdict = await operate(write, how, 'abort')
        if (verdict.code === undefined) await write.note('dropped', { sha: commit })
        return { ...(await write.result({ ...verdict, point })), pushed }
      }),
    'POST /git/{repo}/reset': ({ repo, sha, mode, expectHead }, context) =>
      writing(deps, { repo, verb: 'reset', whole: true, expectHead }, context, async write => {
        const commit = await objects.commit(write.opened.git, sha)
        const point = mode === 'hard' ? await write.savePoint('before a hard reset') : undefined
        await orConflict(write.run(['reset', '-q', `--${mode}`, commit], mode === 'hard' ? {} : SPARES_ALL))
        await write.note('reset', { from: write.head, to: commit, mode })
        return write.result({ point })
      }),
    'POST /git/{repo}/continue': ({ repo, skip = false, message, expectHead }, context) =>
      writing(deps, { repo, verb: 'continue', expectHead }, context, async write => {
        const { gitdir } = write.opened.git.place
        const operation = operationOf(gitdir) ?? refuse('conflict', `nothing is in progress in ${repo}`)
        if (skip && operation === 'merge') refuse('conflict', 'a merge has no step to skip: abort it')
        const unmerged = skip ? [] : await unmergedPaths(write.opened)
        if (unmerged.length > 0)
          refuse('conflict', `${unmerged[0]} is unmerged: resolve and stage it first`, {
            fields: { conflicts: unmerged.slice(0, 200) },
          })
        const commits = operation === 'merge' || (message !== undefined && !skip && operation !== 'rebase')
        const words = message === undefined ? ['--no-edit'] : ['-F', '-']
        const args = commits ? ['commit', '-q', ...words] : [operation, skip ? '--skip' : '--continue']
        const input = commits && message !== undefined ? { input: message } : {}
        const answer = await write.run([...PLAIN, ...args], { ...input, ...anyExit })
        const verdict = answer.code === 0 ? {} : await verdictAfter(write, answer, 'keep')
        const now = operationOf(gitdir)
        if (verdict.code === undefined) await write.note('continued', { operation })
        return { ...(await write.result(verdict)), ...(now && { operation: now }) }
      }),
    'POST /git/{repo}/abort': ({ repo, staleLock = false, expectHead }, context) =>
      writing(deps, { repo, verb: 'abort', expectHead }, context, async write => {
        const { place } = write.opened.git
        const lock = staleLock ? lockOf(place) : undefined
        if (lock && !lock.info.stale)
          refuse('conflict', `${lock.info.file} of ${repo} is not stale`, { fields: { lock: lock.info } })
        if (lock) await rm(lock.path, { force: true })
        const operation = operationOf(place.gitdir)
        if (!operation)
          return lock
            ? write.result({})
            : write.result({ code: 'nothing', reason: `nothing is in progress in ${repo}` })
        const point = await write.savePoint(`before aborting a ${operation}`)
        await abortOperation(write, operation)
        await write.note('aborted', { operation })
        return write.result({ point })
      }),
    'GET /git/{repo}/undo': async ({ repo }, { caller }) => {
      const found = await undoableIn(objects, await repositories.open(repo, caller))
      return { repo, ...(typeof found === 'string' ? { none: found } : { action: found }) }
    },
    'POST /git/{repo}/undo': ({ repo, previousSha, discardChanges = false, expectHead }, context) =>
      writing(deps, { repo, verb: 'undo', whole: true, expectHead }, context, async write => {
        const found = await undoableIn(objects, write.opened)
        if (typeof found === 'string')
          return write.result({ code: 'nothing', reason: `there is nothing to undo: ${found}` })
        if (!found.previousSha.startsWith(previousSha))
          return write.result({ code: 'other', reason: `${found.branch} moved since: preview the undo again` })
        const point = await write.savePoint('before an undo')
        const how = discardChanges ? {} : SPARES_ALL
        await orConflict(write.run(['reset', '-q', discardChanges ? '--hard' : '--soft', found.previousSha], how))
        await write.note('undone', { branch: found.branch, from: found.sha, to: found.previousSha })
        return write.result({ point })
      }),
  }
}
