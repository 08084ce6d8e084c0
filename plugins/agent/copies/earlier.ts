import { cp, lstat, mkdir, readdir, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { copyPlain, readPlain } from '../../../sdk/node/files/files.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { usualBranch } from './branch-name.js'
import { createGitdir } from './gitdir.js'
import { branchTip } from './refs.js'
import type { CopyRecord, CopyStore } from './copy-store.js'
import { ignored } from '../../../sdk/index.js'

/** A tree as earlier versions made it: a linked working tree of the repository, with the name of its entry there. */
interface EarlierEntry {
  readonly common: string
  readonly entry?: string
}

const isEarlier = (entry: EarlierEntry & { gitdir?: string }): boolean => entry.gitdir === undefined

/** The files of a linked working tree's entry that name its place; all others are state of the tree. */
const ENTRY_ALONE = new Set(['gitdir', 'commondir', 'locked'])

/** Whether a copy was made by an earlier version. */
export const isEarlierCopy = ({ repos }: CopyRecord): boolean => repos.some(isEarlier)

/**
 * Gives a copy of an earlier version its own git dirs, with its index, state and logs.
 *
 * Until its record is written the copy is unchanged, and the next use repeats this.
 */
export const renewEarlierCopy = async (store: CopyStore, id: string, made: CopyRecord): Promise<CopyRecord> => {
  const branch = usualBranch(id)
  const repos: CopyRecord['repos'] = []
  for (const known of made.repos) {
    const { common, entry }: EarlierEntry = known
    const gitdir = await store.newGitdir()
    if (await lstat(common).catch(() => undefined)) {
      await createGitdir(gitdir, common, { branch, commit: (await branchTip(common, branch)) ?? known.head })
      await takeState(join(common, 'worktrees', entry ?? ''), gitdir)
      const log = join('logs/refs/heads', branch)
      await mkdir(dirname(join(gitdir, log)), { recursive: true, mode: 0o700 })
      await copyPlain(join(common, log), join(gitdir, log))
    }
    repos.push({ repo: known.repo, common, gitdir, head: known.head })
  }
  const next = { repos, shown: made.shown }
  failpoint('agent.copy.renewing')
  await store.finish(id, next)
  for (const { common } of repos) await dropEntries(common, store.place(id))
  return next
}

/** Copies the plain files of an entry; skips links and pipes, which a turn could have put there. */
const takeState = async (entry: string, gitdir: string): Promise<void> => {
  for (const name of await readdir(entry).catch(() => [] as string[])) {
    if (ENTRY_ALONE.has(name) || name.endsWith('.lock')) continue
    await cp(join(entry, name), join(gitdir, name), {
      recursive: true,
      filter: async path =>
        lstat(path).then(
          found => found.isFile() || found.isDirectory(),
          () => false,
        ),
    })
  }
}

/** Entries among the linked working trees of a repository whose tree lies below a folder. */
const entriesBelow = async (common: string, folder: string): Promise<{ place: string; copy: string }[]> => {
  const trees = join(common, 'worktrees')
  const names = await readdir(trees).catch(() => [] as string[])
  return names.flatMap(name => {
    const target = readPlain(join(trees, name, 'gitdir'))
    return target && contains(folder, dirname(target.trim()))
      ? [{ place: join(trees, name), copy: dirname(target.trim()) }]
      : []
  })
}

/** Removes the entries that an earlier version made for a copy, if there are any. */
export const dropEntries = async (common: string, copy: string): Promise<void> => {
  const entries = await entriesBelow(common, copy)
  await Promise.all(entries.map(({ place }) => rm(place, { recursive: true, force: true })))
  if (entries.length > 0) await rmdir(join(common, 'worktrees')).catch(ignored('a folder with other entries stays'))
}

/** Removes the entries that an earlier version made for copies that now have their own git dirs, or are deleted. */
export const sweepEntries = async (common: string, store: CopyStore): Promise<void> => {
  for (const { copy } of await entriesBelow(common, store.checkouts)) {
    const id = copy.slice(store.checkouts.length + 1).split('/')[0] ?? ''
    const made = await store.made(id)
    if (!made || !isEarlierCopy(made) || id.startsWith('.')) await dropEntries(common, store.place(id))
  }
}
