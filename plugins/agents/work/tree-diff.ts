import { outputFields } from '../../../sdk/node/byte-names.js'
import type { ScratchRepo } from './scratch-repo.js'
import type { ChangeStatus } from '../contract.js'
import { excludedPaths } from './excluded-paths.js'

/** A file in a git tree: its mode and blob id. */
export interface TreeFile {
  readonly mode: string
  readonly id: string
}

/** One change between two trees; without `before` it is added, without `after` deleted. */
export interface TreeChange {
  readonly path: string
  readonly from?: string
  readonly status: ChangeStatus
  readonly before?: TreeFile
  readonly after?: TreeFile
  readonly binary: boolean
  readonly additions?: number
  readonly deletions?: number
}

/** Both sides of one path, without renames. */
export interface Pair {
  readonly before?: TreeFile
  readonly after?: TreeFile
}

const REPOSITORY = '160000'
const NONE = '000000'

/** Ignores a nested repository (gitlink), whose changes are counted in itself. */
const entryOf = (mode: string, id: string): TreeFile | undefined =>
  mode === NONE || mode === REPOSITORY ? undefined : { mode, id }

/** Whether two entries have the same mode and content. */
export const same = (one: TreeFile | undefined, other: TreeFile | undefined): boolean =>
  one?.mode === other?.mode && one?.id === other?.id

interface Raw extends Pair {
  readonly path: string
  readonly from?: string
}

/** Parses git's raw records; returns them and the remaining fields. */
const parseRaw = (fields: string[]): { raws: Raw[]; rest: string[] } => {
  const raws: Raw[] = []
  let at = 0
  while (fields[at]?.startsWith(':')) {
    const [oldMode = '', newMode = '', oldId = '', newId = '', letter = ''] = fields[at]!.slice(1).split(' ')
    const renamed = letter.startsWith('R')
    const before = entryOf(oldMode, oldId)
    const after = entryOf(newMode, newId)
    raws.push({
      path: fields[at + (renamed ? 2 : 1)]!,
      ...(renamed && { from: fields[at + 1]! }),
      ...(before && { before }),
      ...(after && { after }),
    })
    at += renamed ? 3 : 2
  }
  return { raws, rest: fields.slice(at) }
}

const parseCounts = (fields: string[]): Map<string, { additions: number; deletions: number } | undefined> => {
  const counts = new Map<string, { additions: number; deletions: number } | undefined>()
  for (let at = 0; at < fields.length; at++) {
    const [added = '', deleted = '', name = ''] = fields[at]!.split('\t')
    if (added === '') continue
    // The two names of a renamed file follow in separate fields; a name may contain a tab.
    const path = name === '' ? fields[(at += 2)]! : fields[at]!.slice(added.length + deleted.length + 2)
    counts.set(path, added === '-' ? undefined : { additions: Number(added), deletions: Number(deleted) })
  }
  return counts
}

const typeOf = (entry: TreeFile): string => entry.mode.slice(0, 3)

const statusOf = (from: string | undefined, { before, after }: Pair): ChangeStatus => {
  if (!before) return 'added'
  if (!after) return 'deleted'
  if (from !== undefined) return 'renamed'
  return typeOf(before) === typeOf(after) ? 'modified' : 'type-changed'
}

/** The changes between two trees, with renames and line counts, without excluded paths. */
export const changesBetween = async (
  scratch: ScratchRepo,
  repo: string,
  from: string,
  to: string,
): Promise<TreeChange[]> => {
  const answer = await scratch.once([
    'diff-tree',
    '-r',
    '-z',
    '--raw',
    '--numstat',
    '--no-abbrev',
    '-M',
    '-l1000',
    from,
    to,
  ])
  const { raws, rest } = parseRaw(outputFields(answer))
  const counts = parseCounts(rest)
  return raws.flatMap(raw => {
    if (excludedPaths(repo, raw.path)) {
      // A file moved to an excluded path counts as deleted.
      const moved = raw.from !== undefined && raw.before && !excludedPaths(repo, raw.from)
      return moved ? [{ path: raw.from!, status: 'deleted' as const, binary: false, before: raw.before! }] : []
    }
    const hidden = raw.from !== undefined && excludedPaths(repo, raw.from)
    const { path, after } = raw
    const before = hidden ? undefined : raw.before
    const source = hidden || !before ? undefined : raw.from
    if (!before && !after) return []
    const count = counts.get(path)
    return [
      {
        path,
        status: statusOf(source, { ...(before && { before }), ...(after && { after }) }),
        binary: counts.has(path) && count === undefined,
        ...(source !== undefined && { from: source }),
        ...(before && { before }),
        ...(after && { after }),
        ...count,
      },
    ]
  })
}

/** All paths that differ between a tree and another tree or an index. */
export const pairsBetween = async (
  scratch: ScratchRepo,
  from: string,
  to: { tree: string } | { index: string },
): Promise<Map<string, Pair>> => {
  const flags = ['-z', '--raw', '--no-abbrev', '--no-renames']
  const answer =
    'tree' in to
      ? await scratch.git(['diff-tree', '-r', ...flags, from, to.tree])
      : await scratch.git(['diff-index', '--cached', ...flags, from], { index: to.index })
  return new Map(
    parseRaw(outputFields(answer)).raws.map(({ path, before, after }) => [
      path,
      { ...(before && { before }), ...(after && { after }) },
    ]),
  )
}

/** The entries of an index that are wanted. */
export const treeEntriesOf = async (
  scratch: ScratchRepo,
  index: string,
  wanted: ReadonlySet<string>,
): Promise<Map<string, TreeFile>> => {
  const answer = await scratch.git(['ls-files', '-s', '-z'], { index })
  const entries = new Map<string, TreeFile>()
  for (const record of outputFields(answer)) {
    const tab = record.indexOf('\t')
    const path = record.slice(tab + 1)
    const [mode = '', id = ''] = record.slice(0, tab).split(' ')
    if (tab > 0 && wanted.has(path)) entries.set(path, { mode, id })
  }
  return entries
}
