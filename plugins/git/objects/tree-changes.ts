import { countsIn, SMALL_ONLY } from '../changes/scan.js'
import { presentSides, rawRows, type RawRow } from '../../../sdk/node/files/side-files.js'
import type { GitChange } from '../records.js'
import { isShownPath } from '../repositories/names.js'
import type { OpenRepo } from '../repositories/repositories.js'

const LETTERS: { readonly [letter: string]: GitChange['status'] } = {
  A: 'added',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'type-changed',
}
const HOW = ['-r', '-z', '--raw', '--numstat', '--no-abbrev', '-M', '-l1000']

/** The id of the empty tree, in the hash format of this repository. */
export const nothingLike = (id: string): string =>
  id.length === 64
    ? '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321'
    : '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

/** A row as its caller sees it: a rename from or to what they do not see is an addition or a deletion. */
export const visibleRow = ({ repo, sees }: Pick<OpenRepo, 'repo' | 'sees'>, row: RawRow): RawRow | undefined => {
  const shown = (path: string) => isShownPath(repo, path) && sees(path)
  const { from, before, after, ...rest } = row
  if (from === undefined) return shown(row.path) ? row : undefined
  if (shown(row.path)) return shown(from) ? row : { ...rest, letter: 'A', ...presentSides(undefined, after) }
  return shown(from) ? { ...rest, path: from, letter: 'D', ...presentSides(before, undefined) } : undefined
}

/** The files that differ between two commits or trees, renames found, as far as the caller sees them. */
export const treeChanges = async (opened: OpenRepo, from: string, to: string): Promise<GitChange[]> => {
  const { text } = await opened.git.read([...SMALL_ONLY, 'diff-tree', ...HOW, from, to])
  const { rows, rest } = rawRows(text)
  const counts = countsIn(rest.join('\0'))
  return rows.flatMap(raw => {
    const row = visibleRow(opened, raw)
    const status = row && LETTERS[row.letter]
    if (!row || !status) return []
    return { path: row.path, status, ...(row.from !== undefined && { from: row.from }), ...counts.get(row.path) }
  })
}
