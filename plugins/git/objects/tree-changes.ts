import { countsIn, SMALL_ONLY } from '../changes/scan.js'
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

/** The files that differ between two commits or trees, renames found, as far as the caller sees them. */
export const treeChanges = async ({ repo, git, sees }: OpenRepo, from: string, to: string): Promise<GitChange[]> => {
  const { text } = await git.read([...SMALL_ONLY, 'diff-tree', ...HOW, from, to])
  const fields = text.split('\0')
  const shown = (path: string) => isShownPath(repo, path) && sees(path)
  const changes: GitChange[] = []
  let at = 0
  while (fields[at]?.startsWith(':')) {
    const letter = fields[at]!.split(' ')[4]?.[0] ?? ''
    const renamed = letter === 'R'
    const [first, second] = [fields[at + 1]!, fields[at + 2]!]
    const path = renamed ? second : first
    at += renamed ? 3 : 2
    const status = LETTERS[letter]
    if (!status) continue
    if (!renamed && shown(path)) changes.push({ path, status })
    else if (renamed && shown(path))
      changes.push(shown(first) ? { path, status, from: first } : { path, status: 'added' })
    else if (renamed && shown(first)) changes.push({ path: first, status: 'deleted' })
  }
  const counts = countsIn(fields.slice(at).join('\0'))
  return changes.map(change => ({ ...change, ...counts.get(change.path) }))
}
