import { outputFields } from '../../../sdk/node/byte-names.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import { isAttributes } from './main-state.js'

/** What a move of main's HEAD can change for a branch. */
export interface HeadMove {
  /** Whether a history contains a commit of only one of the two heads, so that its fork point may have changed. */
  readonly parts: (commit: string) => boolean
  /** Whether the two heads differ at a path, its parents or below it. */
  readonly differs: (path: string) => boolean
}

const MOST_COMMITS = 100_000

/** All parent folders of a path. */
const above = (path: string): string[] => {
  const found: string[] = []
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1))
    found.push(path.slice(0, slash))
  return found
}

/** The commits that have one of these heads as an ancestor, from lines of `git rev-list --parents`. */
const descendants = (lines: readonly string[], heads: readonly string[]): Set<string> => {
  const parents = new Map<string, string[]>()
  const children = new Map<string, string[]>()
  for (const line of lines) {
    const [commit = '', ...its] = line.split(' ')
    parents.set(commit, its)
    for (const parent of its) children.set(parent, [...(children.get(parent) ?? []), commit])
  }
  const walk = (starts: Iterable<string>, next: ReadonlyMap<string, string[]>): Set<string> => {
    const seen = new Set<string>()
    for (const left = [...starts]; left.length > 0;) {
      const commit = left.pop()!
      if (seen.has(commit) || !parents.has(commit)) continue
      seen.add(commit)
      for (const other of next.get(commit) ?? []) left.push(other)
    }
    return seen
  }
  return walk(walk(heads, parents), children)
}

/**
 * Compares two heads for any number of branches with a few processes; `commits` are those that `parts` will be called
 * with. Undefined if not known: every branch must be compared again.
 */
export const headMove = async (
  scratch: ScratchRepo,
  from: string,
  to: string,
  commits: Iterable<string>,
): Promise<HeadMove | undefined> => {
  const shared = await scratch.git(['merge-base', '--all', from, to], { ok: [0, 1, 128] })
  if (shared.code !== 0) return undefined
  const answer = await scratch.git(['diff-tree', '-r', '-z', '--name-only', '--no-renames', from, to])
  const paths = outputFields(answer).filter(path => path !== '')
  if (paths.some(isAttributes)) return undefined
  const input = [
    from,
    to,
    ...commits,
    ...shared.text
      .trim()
      .split('\n')
      .map(commit => `^${commit}`),
    '',
  ].join('\n')
  const listed = await scratch.git(
    ['rev-list', '--parents', '--ignore-missing', `--max-count=${MOST_COMMITS}`, '--stdin'],
    { input },
  )
  const lines = listed.text.split('\n').filter(line => line !== '')
  if (lines.length === MOST_COMMITS) return undefined
  const parted = descendants(lines, [from, to])
  const [changed, folders] = [new Set(paths), new Set(paths.flatMap(above))]
  return {
    parts: commit => parted.has(commit),
    differs: path => changed.has(path) || folders.has(path) || above(path).some(folder => changed.has(folder)),
  }
}
