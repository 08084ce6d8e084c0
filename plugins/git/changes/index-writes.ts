import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { conversionOf } from '../../../sdk/node/repositories/conversion.js'
import { checkedPath } from '../repositories/names.js'
import type { RepoGit } from '../repositories/repo-git.js'
import type { GitChange } from '../records.js'
import { orConflict, unmergedPaths, type Writing } from '../writes/write.js'
import { changedRows, workingStatus } from './scan.js'

const FROM_INPUT = ['--pathspec-from-file=-', '--pathspec-file-nul']
const MOST_ARGUMENTS = 96 * 1024

/** Paths as the input of a git that reads them separated by NUL. */
export const asInput = (paths: readonly string[], encoding: 'utf8' | 'latin1' = 'utf8'): Buffer =>
  Buffer.from(paths.map(path => `${path}\0`).join(''), encoding)

/** Lists of paths, each short enough for a command line. */
export function* inPieces(paths: readonly string[]): Generator<string[]> {
  let piece: string[] = []
  let bytes = 0
  for (const path of paths) {
    bytes += Buffer.byteLength(path) + 1
    if (bytes > MOST_ARGUMENTS && piece.length > 0) {
      yield piece
      piece = []
      bytes = Buffer.byteLength(path) + 1
    }
    piece.push(path)
  }
  if (piece.length > 0) yield piece
}

const rowsOf = async (write: Writing, paths: readonly string[] | undefined) => {
  const found = { conflicted: [] as GitChange[], staged: [] as GitChange[], unstaged: [] as GitChange[] }
  for (const piece of paths ? inPieces(paths) : [undefined]) {
    const rows = await changedRows(write.opened, piece)
    for (const kind of ['conflicted', 'staged', 'unstaged'] as const) found[kind].push(...rows[kind])
  }
  return found
}

/** Refuses a path that is neither on disk nor tracked, or that git ignores. */
const checkThere = async ({ opened }: Writing, path: string, changed: ReadonlySet<string>): Promise<void> => {
  const bytes = Buffer.from(path).toString('latin1')
  if (changed.has(bytes) || [...changed].some(each => each.startsWith(`${bytes}/`))) return
  const { git, repo } = opened
  if ((await git.look(['ls-files', '-z', '--', path])).stdout.length > 0) return
  const there = await lstat(join(git.place.dir, path)).catch(() => undefined)
  if (!there) refuse('not-found', `${path} of ${repo} is neither on disk nor tracked`)
  refuse('unprocessable', `${path} of ${repo} is ignored by git, or holds no file of its own`)
}

/** The argument with which git also stages what lies outside of a sparse checkout (git-add(1)). */
export const sparsely = async ({ place }: RepoGit): Promise<string[]> =>
  (await conversionOf(place)).sparse === undefined ? [] : ['--sparse']

/** Returns a test whether none of some files, whose names are bytes as Latin-1, has a filter. */
export const sparing = (git: RepoGit, paths: readonly string[]) => async (filter: string) => {
  const { text } = await git.look(['check-attr', '-z', '--stdin', 'filter'], { input: asInput(paths, 'latin1') })
  return text.split('\0').every((value, at) => at % 3 !== 2 || value !== filter)
}

/** Stages paths, or everything, as on disk. */
export const stagePaths = async (write: Writing, asked: readonly string[] | undefined): Promise<void> => {
  const paths = asked?.map(path => checkedPath(write.opened.repo, path))
  const { conflicted, unstaged } = await rowsOf(write, paths)
  const changed = new Set([...conflicted, ...unstaged].map(({ path }) => path))
  for (const path of paths ?? []) await checkThere(write, path, changed)
  if (changed.size === 0) return
  await orConflict(
    write.run(['add', '-A', ...(await sparsely(write.opened.git)), ...FROM_INPUT], {
      input: asInput([...changed], 'latin1'),
      spares: sparing(write.opened.git, [...changed]),
    }),
  )
}

/** Writes one side of unmerged paths to disk; returns those that exist on that side. */
export const takeSide = async (
  write: Writing,
  asked: readonly string[],
  side: 'ours' | 'theirs',
): Promise<string[]> => {
  const { repo, git } = write.opened
  const unmerged = new Set(await unmergedPaths(write.opened))
  const paths = asked.map(path => checkedPath(repo, path))
  for (const path of paths) if (!unmerged.has(path)) refuse('unprocessable', `${path} of ${repo} is not unmerged`)
  const stage = side === 'ours' ? '2' : '3'
  const present = new Set<string>()
  for (const piece of inPieces(paths)) {
    const { text } = await git.look(['ls-files', '-u', '-z', '--', ...piece])
    for (const record of text.split('\0'))
      if (record.split('\t')[0]?.endsWith(` ${stage}`)) present.add(record.slice(record.indexOf('\t') + 1))
  }
  const written = paths.filter(path => present.has(path))
  const gone = paths.filter(path => !present.has(path))
  for (const piece of inPieces(written)) await orConflict(write.run(['checkout', '-q', `--${side}`, '--', ...piece]))
  for (const piece of inPieces(gone))
    await orConflict(write.run(['rm', '-q', '-f', ...(await sparsely(git)), '--', ...piece]))
  return written
}

/** Resets paths in the index to HEAD. */
export const unstagePaths = async (write: Writing, asked: readonly string[]): Promise<void> => {
  const paths = asked.map(path => checkedPath(write.opened.repo, path))
  const unmerged = await unmergedPaths(write.opened)
  const hit = unmerged.filter(each => paths.some(path => each === path || each.startsWith(`${path}/`)))
  if (hit.length > 0)
    refuse('conflict', `${hit[0]} of ${write.opened.repo} is unmerged: stage it to resolve it, or abort`, {
      fields: { conflicts: hit.slice(0, 200) },
    })
  await orConflict(write.run(['reset', '-q', ...FROM_INPUT], { input: asInput(paths) }))
}

/** Both names of every staged rename that one of the paths is part of. */
const withOtherLegs = async ({ opened }: Writing, paths: readonly string[]): Promise<string[]> => {
  const { staged, unstaged } = await workingStatus(opened, 100_000)
  const among = (name: string) => paths.some(path => name === path || name.startsWith(`${path}/`))
  const legs = [...staged, ...unstaged].flatMap(({ path, from }) =>
    from !== undefined && (among(path) || among(from)) ? [path, from] : [],
  )
  return [...new Set([...paths, ...legs])]
}

/** Discards uncommitted work of paths, or of the whole repository. */
export const discardPaths = async (write: Writing, asked: readonly string[] | undefined): Promise<void> => {
  const { repo, git } = write.opened
  // Behind the wall the sandbox's own folder cannot be deleted, so git must not try.
  const keep = repo === 'root' ? ['-e', '/.sandbox/'] : []
  if (asked === undefined) {
    await orConflict(write.run(write.head === undefined ? ['read-tree', '--empty'] : ['reset', '-q', '--hard']))
    await orConflict(write.run(['clean', '-q', '-f', '-d', ...keep]))
    return
  }
  const paths = await withOtherLegs(
    write,
    asked.map(path => checkedPath(repo, path)),
  )
  await orConflict(write.run(['reset', '-q', ...FROM_INPUT], { input: asInput(paths) }))
  for (const piece of inPieces(paths)) {
    const { stdout } = await git.look(['ls-files', '-m', '-d', '-z', '--', ...piece])
    if (stdout.length > 0) await orConflict(write.run(['checkout', '-q', ...FROM_INPUT], { input: stdout }))
    await orConflict(write.run(['clean', '-q', '-f', '-d', ...keep, '--', ...piece]))
  }
}
