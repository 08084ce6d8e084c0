import { Refusal } from '../../../sdk/index.js'
import { openPath, type PathTree } from '../../../sdk/node/files/open-path.js'
import { sweepTree } from './sweep.js'

const QUOTES = /^[\s"'`<(\[]+|[\s"'`>)\],.;]+$/g
const LINE = /(?::\d+){1,2}(?:-\d+)?$|#L\d+(?:-L?\d+)?$|\(\d+(?:,\d+)?\)$/
const MOST_SWEPT = 1_000_000

/** The path in a text: without quotes, line number and the path of the workspace. */
const meant = (text: string, roots: readonly string[]): string[] => {
  const bare = text.replace(QUOTES, '').replace(LINE, '').replace(QUOTES, '')
  const root = roots.find(each => bare === each || bare.startsWith(`${each}/`))
  const below = (root === undefined ? bare : bare.slice(root.length)).replace(/^(?:\.?\/)+/, '')
  const diff = /^[ab]\/(.+)$/.exec(below)?.[1]
  return [...new Set([below, diff ?? below])].filter(path => path !== '' && !path.split('/').includes('..'))
}

const fileAt = async (tree: PathTree, path: string): Promise<{ path: string; mtimeMs: number } | undefined> => {
  try {
    await using found = await openPath(tree, path)
    return found?.stats.isFile() ? { path: found.path, mtimeMs: found.stats.mtimeMs } : undefined
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}

/** The files whose paths share the longest suffix with a path, at least its last name. */
const withLongestEnd = async (tree: PathTree, wanted: readonly string[], signal: AbortSignal): Promise<string[]> => {
  const ends = wanted.map(path => path.split('/').toReversed())
  let [best, found, swept]: [number, string[], number] = [0, [], 0]
  for await (const { path, kind } of sweepTree(tree, { signal })) {
    if (++swept > MOST_SWEPT) break
    if (kind !== 'file') continue
    const parts = path.split('/').toReversed()
    const common = Math.max(...ends.map(end => commonStart(end, parts)))
    if (common === 0 || common < best) continue
    if (common > best) [best, found] = [common, []]
    found.push(path)
  }
  return found
}

const commonStart = (one: readonly string[], other: readonly string[]): number => {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  return at
}

/** The file that a text names, in the first of these trees that has it; undefined: none. */
export const resolveIn = async (
  trees: readonly PathTree[],
  text: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const wanted = meant(
    text,
    trees.map(({ root }) => root),
  )
  if (wanted.length === 0) return undefined
  for (const tree of trees) {
    for (const path of wanted) {
      const found = await fileAt(tree, path)
      if (found) return found.path
    }
    const ends = await withLongestEnd(tree, wanted, signal)
    const depth = Math.min(...ends.map(path => path.split('/').length))
    const shallow = ends.filter(path => path.split('/').length === depth)
    const files = (await Promise.all(shallow.map(path => fileAt(tree, path)))).flatMap(file => file ?? [])
    const newest = files.sort((one, other) => other.mtimeMs - one.mtimeMs || (one.path < other.path ? -1 : 1))[0]
    if (newest) return newest.path
  }
  return undefined
}
