import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { DocumentTextFile } from '../derived/document-texts.js'
import { byScore, excerpt, MOST_FILE_LINES, type FoundLine, type SearchedFile, type SearchedFiles } from './found.js'
import { ripgrep, ripgrepProgram, type TextQuery } from './ripgrep.js'
import { isTimeout, type DiskSearch } from './text-search.js'

/** The texts of documents, as a search uses them. */
export interface SearchedTexts {
  readonly folder: string
  endings(): Promise<ReadonlySet<string>>
  of(root: string, paths: readonly string[], waitMs: number): Promise<{ texts: DocumentTextFile[]; waiting: number }>
}

/** A query for the texts of documents. */
export interface DocumentQuery extends TextQuery {
  /** The words of the query in lower case: the more of them a text has, the better. */
  readonly all?: readonly string[]
}

const MOST_DOCUMENTS = 500
const WAIT_MS = 300
const WHOLE = 100
const DOCUMENT = 5
const DAY_MS = 86_400_000
const CONTEXT = 'text of the document'

interface FoundText {
  readonly lines: FoundLine[]
  readonly words: Set<string>
  count: number
  whole: boolean
}

const WORD = /[\p{L}\p{N}_$]/u

const isWhole = (text: string, spans: readonly { start: number; end: number }[]): boolean =>
  spans.some(({ start, end }) => !WORD.test(text[start - 1] ?? ' ') && !WORD.test(text[end] ?? ' '))

const scoreOf = (root: string, path: string, whole: boolean): number => {
  const stats = lstatSync(join(root, path), { throwIfNoEntry: false })
  const days = Math.max(0, Date.now() - (stats?.mtimeMs ?? 0)) / DAY_MS
  return Math.round(((whole ? WHOLE : 0) + DOCUMENT + 9 / (1 + days)) * 1000) / 1000
}

/** Which part of the words a text has; it was found by one of them, even if capitals change how that is written. */
const shareOf = (all: readonly string[], found: ReadonlySet<string>): number =>
  all.length === 0 ? 1 : Math.max(1, all.filter(word => [...found].some(one => one.includes(word))).length) / all.length

/** Finds text in what documents say; the lines are those of the derived text. */
export const documentSearch = async (
  { place, tree, signal }: Pick<DiskSearch, 'place' | 'tree' | 'signal'>,
  texts: SearchedTexts,
  paths: readonly string[],
  { all = [], ...query }: DocumentQuery,
): Promise<SearchedFiles> => {
  const { texts: kept, waiting } = await texts.of(tree.root, paths.slice(0, MOST_DOCUMENTS), WAIT_MS)
  const found = new Map<string, FoundText>()
  let late = false
  if (kept.length > 0)
    await ripgrep(place, await ripgrepProgram(), {
      ...query,
      root: texts.folder,
      reach: undefined,
      files: [...new Set(kept.map(({ file }) => file))],
      signal,
      found: ({ path, line, text, spans }) => {
        const known = found.get(path) ?? { lines: [], words: new Set(), count: 0, whole: false }
        found.set(path, known)
        known.count += 1
        known.whole ||= isWhole(text, spans)
        for (const { start, end } of spans) known.words.add(text.slice(start, end).toLowerCase())
        if (known.lines.length < MOST_FILE_LINES)
          known.lines.push({ line, tags: [{ kind: 'text' }], ...excerpt(text, spans), context: CONTEXT })
      },
    }).catch(error => {
      if (!isTimeout(signal)) throw error
      late = true
    })
  const files = kept.flatMap(({ path, file }): SearchedFile[] => {
    const text = found.get(file)
    if (!text) return []
    const { count } = text
    const lines = text.lines.toSorted((one, other) => one.line - other.line)
    const score = scoreOf(tree.root, path, text.whole) * shareOf(all, text.words)
    return [{ path, score, lines, count, capped: count > lines.length }]
  })
  const some = waiting === 1 ? '1 document is' : `${waiting} documents are`
  return {
    files: files.sort(byScore),
    partial: late || waiting > 0 || paths.length > MOST_DOCUMENTS,
    ...(waiting > 0 && { note: `${some} being read: search again to find what they say` }),
  }
}
