import { createHash } from 'node:crypto'
import { isReadable } from '../../../sdk/node/files/open-path.js'
import { bytesOfSwept, openSweptFile } from '../tree/sweep.js'
import type { CallerTree } from '../../../sdk/node/access/caller-tree.js'
import type { SearchGroup, SearchHit } from './contract.js'
import { excerpt, type SearchedFile, type FoundLine } from './found.js'

const MOST_FILE = 4 * 1024 * 1024
/** How many files of a result are read at once. */
export const READ_AT_ONCE = 8

/** The lines of a plain file at its real path that the caller may read; undefined: none. */
export const readLines = async (tree: CallerTree, path: string): Promise<string[] | undefined> => {
  if (!isReadable(tree, path)) return undefined
  using file = openSweptFile(tree.root, path)
  if (!file || file.stats.size > MOST_FILE) return undefined
  return (await bytesOfSwept(file)).toString().split('\n')
}

const WORD = /[\p{L}\p{N}_$]/u

const spansIn = (text: string, { name, words = [] }: FoundLine): { start: number; end: number }[] => {
  const spans: { start: number; end: number }[] = []
  const line = text.slice(0, 20_000)
  const low = line.toLowerCase()
  for (const word of name === undefined ? words : [name.toLowerCase()])
    for (let at = low.indexOf(word); at >= 0 && spans.length < 20; at = low.indexOf(word, at + word.length)) {
      const whole = !WORD.test(line[at - 1] ?? ' ') && !WORD.test(line[at + word.length] ?? ' ')
      if (name === undefined || (whole && line.slice(at, at + name.length) === name))
        spans.push({ start: at, end: at + word.length })
    }
  return spans.sort((one, other) => one.start - other.start)
}

/** A file of a result with its current lines; lines that no longer exist are left out. */
export const shownGroup = async (
  tree: CallerTree,
  { path, score, lines, capped }: SearchedFile,
): Promise<{ group: SearchGroup; stale: boolean }> => {
  let text: string[] | undefined
  let stale = false
  const hits: SearchHit[] = []
  for (const found of [...lines].sort((one, other) => one.line - other.line)) {
    const { line, tags, context } = found
    const more = { tags: [...tags], ...(context !== undefined && { context }) }
    if (found.text !== undefined) {
      hits.push({ line, text: found.text, spans: [...(found.spans ?? [])], ...more })
      continue
    }
    text ??= (await readLines(tree, path)) ?? []
    const now = text[line - 1]
    const spans = now === undefined ? [] : spansIn(now, found)
    if (now === undefined || (found.name !== undefined && spans.length === 0)) stale = true
    else hits.push({ line, ...excerpt(now, spans), ...more })
  }
  return { group: { path, score, hits, capped }, stale }
}

/** The identity of the query that a cursor belongs to. */
export const fingerprint = (question: object): string =>
  createHash('sha256').update(JSON.stringify(question)).digest('base64url').slice(0, 16)
