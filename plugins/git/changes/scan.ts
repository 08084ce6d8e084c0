import { lstat, open } from 'node:fs/promises'
import { join } from 'node:path'
import { limitTo, type OpenRepo } from '../repositories/repositories.js'
import { isShownPath } from '../repositories/names.js'
import type { GitChange } from '../records.js'
import { StatusStream, type StatusRows } from './status-stream.js'

const STATUS = ['status', '--porcelain=v2', '--branch', '-z', '--untracked-files=all', '--ignore-submodules=dirty']
/** Lines of larger files are not counted. */
const MOST_COUNTED = 512 * 1024
const MOST_ARGUMENTS = 96 * 1024
const MOST_READ = 32 * 1024 * 1024
const NEWLINE = 10

const streamed = async ({ git }: OpenRepo, stream: StatusStream, args: readonly string[], signal?: AbortSignal) => {
  let failure: unknown
  await git.look([...STATUS, ...args], {
    ...(signal && { signal }),
    to: piece => {
      try {
        if (failure === undefined) stream.take(piece)
      } catch (error) {
        failure = error
      }
    },
  })
  if (failure !== undefined) throw failure
  return stream.rows
}

/** Reads the uncommitted changes that the caller may see; limits the number of staged and of other rows. */
export const workingStatus = (opened: OpenRepo, most: number, signal?: AbortSignal): Promise<StatusRows> => {
  const { repo, sees } = opened
  const stream = new StatusStream(most, path => isShownPath(repo, path) && sees(path))
  return streamed(opened, stream, ['--find-renames', ...limitTo(opened)], signal)
}

/** How many changes of a repository are listed. */
const MOST_LISTED = 500

/** The uncommitted changes that are listed: all conflicts, then staged ones, then the rest, as far as they fit. */
export const listedRows = async (opened: OpenRepo): Promise<StatusRows> => {
  const rows = await workingStatus(opened, MOST_LISTED)
  const staged = rows.staged.slice(0, Math.max(0, MOST_LISTED - rows.conflicted.length))
  const left = Math.max(0, MOST_LISTED - rows.conflicted.length - staged.length)
  return { ...rows, staged, unstaged: rows.unstaged.slice(0, left) }
}

const MOST_CHANGED = 1_000_000

/**
 * The rows of some paths, or of all, with renames as a deletion and an addition. Names are bytes as Latin-1, so that
 * names that are not UTF-8 can be passed back to git.
 */
export const changedRows = (opened: OpenRepo, paths: readonly string[] | undefined): Promise<StatusRows> => {
  const stream = new StatusStream(MOST_CHANGED, path => isShownPath(opened.repo, path), 'latin1')
  return streamed(opened, stream, ['--no-renames', ...(paths ? ['--', ...paths] : [])])
}

type Counts = Map<string, { additions: number; deletions: number }>

/** Parses `--numstat -z`: binary and large files are left out. */
export const countsIn = (text: string): Counts => {
  const counts: Counts = new Map()
  const fields = text.split('\0')
  for (let at = 0; at < fields.length; at++) {
    const [, added, deleted, name = ''] = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(fields[at]!) ?? []
    if (added === undefined || deleted === undefined) continue
    const path = name === '' ? fields[(at += 2)] : name
    if (path !== undefined && added !== '-') counts.set(path, { additions: Number(added), deletions: Number(deleted) })
  }
  return counts
}

/** The paths of rows, both of a rename, as long as they fit on a command line. */
const pathsOf = (rows: readonly GitChange[]): string[] => {
  const paths: string[] = []
  let bytes = 0
  for (const { path, from } of rows) {
    bytes += Buffer.byteLength(path) + Buffer.byteLength(from ?? '') + 2
    if (bytes > MOST_ARGUMENTS) break
    paths.push(path, ...(from === undefined ? [] : [from]))
  }
  return paths
}

/** Settings under which git counts no lines of files larger than 512 KiB. */
export const SMALL_ONLY = ['-c', `core.bigFileThreshold=${MOST_COUNTED}`]

const counted = async ({ git }: OpenRepo, rows: readonly GitChange[], staged: boolean): Promise<GitChange[]> => {
  const paths = pathsOf(rows.filter(({ path }) => !path.includes('\ufffd')))
  if (paths.length === 0) return [...rows]
  const which = staged ? ['--cached'] : []
  const args = ['diff', ...which, '--numstat', '-z', '-M', '--ignore-submodules=dirty', '--', ...paths]
  const counts = countsIn((await git.look([...SMALL_ONLY, ...args])).text)
  return rows.map(row => ({ ...row, ...counts.get(row.path) }))
}

/** The number of lines of an untracked file; undefined: binary, large, or not a plain file. */
const linesOf = async (path: string): Promise<number | undefined> => {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isFile() || found.size > MOST_COUNTED) return undefined
  const handle = await open(path, 'r').catch(() => undefined)
  try {
    const bytes = Buffer.alloc(found.size)
    const read = await handle?.read(bytes, 0, found.size, 0)
    const text = bytes.subarray(0, read?.bytesRead ?? 0)
    if (text.subarray(0, 8000).includes(0)) return undefined
    let lines = text.length > 0 && text.at(-1) !== NEWLINE ? 1 : 0
    for (const byte of text) if (byte === NEWLINE) lines += 1
    return lines
  } finally {
    await handle?.close()
  }
}

const withUntracked = async (
  { git }: OpenRepo,
  rows: readonly GitChange[],
  tracked: readonly GitChange[],
): Promise<GitChange[]> => {
  const known = new Map(tracked.map(row => [row.path, row]))
  const result: GitChange[] = []
  let read = 0
  for (const row of rows) {
    const same = known.get(row.path) ?? row
    const place = join(git.place.dir, row.path)
    const lines =
      same.status === 'added' && same.additions === undefined && read < MOST_READ ? await linesOf(place) : undefined
    read += lines === undefined ? 0 : MOST_COUNTED / 8
    result.push(lines === undefined ? same : { ...same, additions: lines, deletions: 0 })
  }
  return result
}

/** The rows with the numbers of added and deleted lines. */
export const withCounts = async (
  opened: OpenRepo,
  { staged, unstaged }: Pick<StatusRows, 'staged' | 'unstaged'>,
): Promise<{ staged: GitChange[]; unstaged: GitChange[] }> => {
  const [inIndex, inTree] = await Promise.all([
    staged.length > 0 ? counted(opened, staged, true) : [],
    unstaged.some(({ status }) => status !== 'added') ? counted(opened, unstaged, false) : [...unstaged],
  ])
  return { staged: inIndex, unstaged: await withUntracked(opened, unstaged, inTree) }
}
