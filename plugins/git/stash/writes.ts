import { refuse, type Handlers } from '../../../sdk/index.js'
import { anyExit, overwrittenIn } from '../branches/git-words.js'
import { asInput } from '../changes/index-writes.js'
import { changedRows } from '../changes/scan.js'
import { checkedPath } from '../repositories/names.js'
import { verdictOf } from '../repositories/repo-git.js'
import { orConflict, unmergedPaths, writing, type WriteDeps, type Writing } from '../writes/write.js'
import type { StashCalls } from './contract.js'
import { stashEntry, stashFiles } from './entries.js'

type WriteCalls = Pick<StashCalls, `POST ${string}` & keyof StashCalls>

const FROM_INPUT = ['--pathspec-from-file=-', '--pathspec-file-nul']

/** The names to stash: never files of other repositories or the sandbox. */
const chosen = async ({ opened }: Writing, paths: readonly string[] | undefined, untracked: boolean) => {
  const asked = paths?.map(path => checkedPath(opened.repo, path))
  const { staged, unstaged } = await changedRows(opened, asked)
  const tracked = [...staged, ...unstaged.filter(({ status }) => status !== 'added')]
  const rows = untracked ? [...tracked, ...unstaged] : tracked
  return [...new Set(rows.map(({ path }) => path))]
}

/** Restores the state from before an entry was applied with conflicts. */
const undoApply = async (write: Writing, before: string, added: readonly string[]): Promise<void> => {
  await orConflict(write.run(['reset', '-q', '--hard']))
  if (added.length > 0) await orConflict(write.run(['clean', '-q', '-f', '--', ...added]))
  if (before !== '') await orConflict(write.run(['stash', 'apply', '-q', '--index', before]))
}

/** Serves the writes of the stash. */
export const stashWrites = (deps: WriteDeps): Handlers<WriteCalls> => ({
  'POST /git/{repo}/stash': ({ repo, message, includeUntracked = false, paths }, context) =>
    writing(deps, { repo, verb: 'stash', whole: true }, context, async write => {
      if (write.head === undefined) refuse('conflict', `${repo} has no commit yet: there is nothing to return to`)
      const names = await chosen(write, paths, includeUntracked)
      if (names.length === 0) return write.result({ code: 'nothing', reason: 'there are no changes to set aside' })
      const point = await write.savePoint('before setting changes aside')
      const how = [...(includeUntracked ? ['-u'] : []), ...(message ? ['-m', message] : []), ...FROM_INPUT]
      await orConflict(write.run(['stash', 'push', '-q', ...how], { input: asInput(names, 'latin1') }))
      return write.result({ point })
    }),
  'POST /git/{repo}/stash/apply': ({ repo, ref, sha, pop = false, onConflict = 'keep' }, context) =>
    writing(deps, { repo, verb: 'stash apply', whole: true }, context, async write => {
      const { opened } = write
      const entry = await stashEntry(deps.objects, opened, ref, sha)
      const point = await write.savePoint('before putting changes back')
      const before = (await write.run(['stash', 'create'])).text.trim()
      const untracked = (await changedRows(opened, undefined)).unstaged.map(({ path }) => path)
      const { code, stderr, text } = await write.run(['stash', 'apply', '-q', entry.sha], anyExit)
      const conflicts = await unmergedPaths(opened)
      if (code === 0 && conflicts.length === 0) {
        if (pop) await orConflict(write.run(['stash', 'drop', '-q', entry.ref]))
        return write.result({ point })
      }
      const dirty = overwrittenIn(stderr)
      const said = verdictOf(stderr.trim() === '' ? text : stderr)
      if (conflicts.length === 0)
        return write.result({ code: dirty.length > 0 ? 'dirty' : 'other', reason: said, conflicts: dirty, point })
      const there = new Set(untracked)
      const added = (await stashFiles(opened, entry)).filter(
        ({ path, status }) => status === 'added' && !there.has(Buffer.from(path).toString('latin1')),
      )
      if (onConflict === 'abort')
        await undoApply(
          write,
          before,
          added.map(({ path }) => path),
        )
      return write.result({ code: 'conflict', reason: `${conflicts[0]} conflicts`, conflicts, point })
    }),
  'POST /git/{repo}/stash/drop': ({ repo, ref, sha }, context) =>
    writing(deps, { repo, verb: 'stash drop' }, context, async write => {
      const entry = await stashEntry(deps.objects, write.opened, ref, sha)
      await orConflict(write.run(['stash', 'drop', '-q', entry.ref]))
      await write.note('stashDropped', { sha: entry.sha, subject: entry.subject.slice(0, 200) })
      return { ok: true as const, sha: entry.sha }
    }),
})
