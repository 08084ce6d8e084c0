import { refuse, type ChangedSides, type Handlers } from '../../../sdk/index.js'
import { binariesIn, hasZeros, presentSides, rawRows, sideFile } from '../../../sdk/node/files/side-files.js'
import { workingContent, workingEntries } from '../changes/file-sides.js'
import { commitEnds } from '../commits/calls.js'
import type { Objects } from '../objects/objects.js'
import { sideOfEntry, sideOnDisk } from '../objects/sides.js'
import { visibleRow } from '../objects/tree-changes.js'
import { isShownPath } from '../repositories/names.js'
import { limitTo, pathFor, type OpenRepo, type Repositories } from '../repositories/repositories.js'
import type { GitComparison, GitSideCalls } from './contract.js'

const MOST_CHANGES = 20_000
/** Of more untracked files it is not read whether they are text. */
const MOST_READ = 2000
const HEAD = 8000
const MOST_LIST = 64 * 1024 * 1024
/** Git takes a larger file for binary without reading it. */
const ALL_READ = ['-c', 'core.bigFileThreshold=50m']
const RAW = ['-z', '--raw', '--numstat', '--no-abbrev']

/** The rows of a diff as their caller sees them. */
const rowsOf = (opened: OpenRepo, text: string): ChangedSides[] => {
  const { rows, rest } = rawRows(text)
  const binaries = binariesIn(rest)
  return rows.flatMap(raw => {
    const row = visibleRow(opened, raw)
    if (!row || (!row.before && !row.after)) return []
    const { letter, ...shown } = row
    return letter === 'U' ? [] : { ...shown, binary: binaries.has(raw.path) }
  })
}

const untracked = async (opened: OpenRepo): Promise<ChangedSides[]> => {
  const { git, repo, sees } = opened
  const args = ['ls-files', '-z', '-o', '--exclude-standard', ...limitTo(opened)]
  const { text } = await git.look(args, { maxBytes: MOST_LIST })
  const paths = text.split('\0').filter(path => path !== '' && !path.endsWith('/'))
  const shown = paths.filter(path => isShownPath(repo, path) && sees(path)).slice(0, MOST_CHANGES)
  const rows: ChangedSides[] = []
  for (const [at, path] of shown.entries()) {
    const head = at < MOST_READ ? await sideOnDisk(git.place.dir, path, HEAD, 'part') : undefined
    rows.push({ path, after: {}, ...(Buffer.isBuffer(head) && { binary: hasZeros(head) }) })
  }
  return rows
}

const unmerged = async ({ git, repo, sees }: OpenRepo): Promise<ChangedSides[]> => {
  const { text } = await git.look(['ls-files', '-u', '-z'], { maxBytes: MOST_LIST })
  const rows = new Map<string, ChangedSides>()
  for (const record of text.split('\0').filter(Boolean)) {
    const tab = record.indexOf('\t')
    const path = record.slice(tab + 1)
    const [, blob = '', stage] = record.slice(0, tab).split(' ')
    if (!isShownPath(repo, path) || !sees(path)) continue
    const row = rows.get(path) ?? { path }
    rows.set(path, { ...row, ...(stage === '2' && { before: { blob } }), ...(stage === '3' && { after: { blob } }) })
  }
  return [...rows.values()].filter(({ before, after }) => before || after)
}

const changed = async (objects: Objects, opened: OpenRepo, { side, sha = '', base }: GitComparison) => {
  const { git } = opened
  const many = { maxBytes: MOST_LIST }
  const looked = async (...args: string[]) =>
    rowsOf(opened, (await git.look([...ALL_READ, 'diff', ...RAW, ...args, ...limitTo(opened)], many)).text)
  if (side === 'staged') return looked('--cached', '-M', '--ignore-submodules=dirty')
  if (side === 'conflicted') return unmerged(opened)
  if (side === 'unstaged')
    return [...(await looked('--no-renames', '--ignore-submodules=dirty')), ...(await untracked(opened))]
  const { from, to } = await commitEnds(objects, opened, sha, base)
  const { text } = await git.read([...ALL_READ, 'diff-tree', '-r', '-M', '-l1000', ...RAW, from, to], many)
  const rows = rowsOf(opened, text)
  // A commit that touches nothing inside is not there for people limited to areas.
  if (opened.only && base === undefined && rows.length === 0) refuse('not-found', `${opened.repo} has no commit ${sha}`)
  return rows
}

/** Serves comparisons to other groups. */
export const sideCalls = (repositories: Repositories, objects: Objects): Handlers<GitSideCalls> => ({
  'git.sides': async ({ repo, side, sha = '', base, folder, most, ...asked }, { caller }) => {
    const opened = await repositories.open(repo, caller)
    const path = await pathFor(opened, asked.path)
    if (side) {
      const found = await workingEntries(objects, opened, path, side)
      const { before, after, from } = found
      const fileOf = async (entry: typeof after) =>
        sideFile(
          folder,
          await workingContent(objects, opened, path, found, entry, most),
          entry === 'disk' ? undefined : entry?.id,
        )
      return { path, ...(from !== undefined && { from }), ...presentSides(await fileOf(before), await fileOf(after)) }
    }
    const from = asked.from === undefined ? path : await pathFor(opened, asked.from)
    const ends = await commitEnds(objects, opened, sha, base)
    const fileAt = async (tree: string, name: string) => {
      const entry = await objects.entry(opened.git, tree, name)
      return sideFile(folder, await sideOfEntry(objects, opened, entry, most), entry?.id)
    }
    const sides = presentSides(await fileAt(ends.from, from), await fileAt(ends.to, path))
    if (!sides.before && !sides.after) refuse('not-found', `${path} of ${repo} is on neither side`)
    return { path, ...(from !== path && { from }), ...sides }
  },
  'git.changed': async (input, { caller }) => {
    const opened = await repositories.open(input.repo, caller)
    return { changes: (await changed(objects, opened, input)).slice(0, MOST_CHANGES) }
  },
})
