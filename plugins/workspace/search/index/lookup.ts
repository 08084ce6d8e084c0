import { admits, type SearchScope } from '../search-scope.js'
import { MOST_FILE_LINES, type SearchedFile, type FoundLine } from '../found.js'
import type { SearchTag } from '../contract.js'
import { nameParts } from './chunks.js'
import type { IndexStore } from './index-store.js'
import type { SymbolKind } from './languages.js'
import type { NamedNearness } from './part-vectors.js'
import { wordScores } from './word-scores.js'

/** A query for symbols. */
export interface SymbolQuestion {
  readonly name: string
  readonly kind?: SymbolKind
  readonly scope: SearchScope
  /** Names that are alike count too. */
  readonly fuzzy: boolean
}

interface SymbolRow {
  readonly path: string
  readonly name: string
  readonly kind: string
  readonly line: number
  readonly exported: number
  readonly around: string | null
  readonly guessed: number
}

const MOST_NAMES = 200
const MOST_ROWS = 5_000
const MOST_FILES = 2_000

const low = (name: string): string => name.toLowerCase()

/** How alike two names are, from 0 to 1: their common pairs of letters. */
const likeness = (one: string, other: string): number => {
  const pairs = (text: string) =>
    new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)))
  const [a, b] = [pairs(low(one)), pairs(low(other))]
  const common = [...a].filter(pair => b.has(pair)).length
  return a.size + b.size === 0 ? 0 : (2 * common) / (a.size + b.size)
}

/** Groups lines by file; of each the best 50. */
const grouped = (rows: readonly { path: string; score: number; line: FoundLine }[]): SearchedFile[] => {
  const files = new Map<string, SearchedFile>()
  for (const { path, score, line } of rows) {
    const file = files.get(path) ?? { path, score: 0, lines: [], count: 0, capped: false }
    files.set(path, file)
    if (file.lines.some(each => each.line === line.line)) continue
    file.count += 1
    file.score = Math.max(file.score, score)
    if (file.lines.length < MOST_FILE_LINES) file.lines.push(line)
    else file.capped = true
  }
  return [...files.values()]
}

/** Names that match the requested one, from exact to loose, with the weight of each. */
const namesLike = (store: IndexStore, name: string, fuzzy: boolean): Map<number, { name: string; score: number }> => {
  const found = new Map<number, { name: string; score: number }>()
  const add = (rows: readonly { id: number; name: string }[], score: (name: string) => number) => {
    for (const { id, name: each } of rows) if (!found.has(id)) found.set(id, { name: each, score: score(each) })
  }
  const wanted = low(name)
  add(store.all('SELECT id, name FROM names WHERE low = ?', wanted), each => (each === name ? 1000 : 900))
  add(
    store.all(
      'SELECT id, name FROM names WHERE low > ? AND low < ? ORDER BY length(name) LIMIT ?',
      wanted,
      `${wanted}\u{10ffff}`,
      MOST_NAMES,
    ),
    each => 700 - Math.min(100, each.length - name.length),
  )
  if (!fuzzy || wanted.length < 3) return found
  const trigrams = Array.from(
    { length: wanted.length - 2 },
    (_, at) => `"${wanted.slice(at, at + 3).replaceAll('"', '""')}"`,
  )
  add(
    store.all(
      'SELECT names.id, names.name FROM trigrams JOIN names ON names.id = trigrams.rowid WHERE trigrams MATCH ? '
        + 'ORDER BY bm25(trigrams) LIMIT ?',
      trigrams.join(' OR '),
      MOST_NAMES,
    ),
    each => {
      const alike = likeness(name, each)
      return low(each).includes(wanted) ? 500 + 90 * alike : alike > 0.5 ? 400 * alike : 0
    },
  )
  return found
}

/** The definitions of symbols: exact names first, exported ones before others. */
export const findSymbols = (store: IndexStore, { name, kind, scope, fuzzy }: SymbolQuestion): SearchedFile[] => {
  const rows = [...namesLike(store, name, fuzzy)]
    .filter(([, { score }]) => score > 0)
    .sort(([, one], [, other]) => other.score - one.score)
    .slice(0, 2 * MOST_NAMES)
    .flatMap(([id, { score }]) =>
      store
        .all<SymbolRow>(
          'SELECT files.path, files.guessed, names.name, kind, line, exported, around FROM symbols '
            + 'JOIN files ON files.id = symbols.file JOIN names ON names.id = symbols.name '
            + 'WHERE symbols.name = ? LIMIT ?',
          id,
          MOST_ROWS,
        )
        .filter(row => admits(scope, row.path) && (kind === undefined || row.kind === kind))
        .map(row => ({ ...row, score: score + row.exported * 30 + (row.around === null ? 10 : 0) })),
    )
  return grouped(
    rows.map(({ path, name: each, line, score, guessed, around }) => {
      const tags: SearchTag[] = [
        { kind: 'def', score },
        ...(score < 600 ? [{ kind: 'fuzzy' as const }] : []),
        ...(guessed ? [{ kind: 'heuristic' as const }] : []),
      ]
      return {
        path,
        score,
        line: { line, tags, name: each, words: [low(each)], ...(around !== null && { context: around }) },
      }
    }),
  )
}

const USE_TAGS: { readonly [kind: string]: SearchTag['kind'] } = {
  c: 'call',
  i: 'import',
  t: 'type',
  w: 'write',
  r: 'text',
}

/** A query for the uses of a name. */
export interface UsesQuestion {
  readonly name: string
  readonly scope: SearchScope
  readonly caseSensitive: boolean
}

/** The uses of a name: files that import it first, then those that use it most. */
export const findUses = (store: IndexStore, { name, scope, caseSensitive }: UsesQuestion): SearchedFile[] => {
  const rows = store
    .all<{ path: string; name: string; spots: string; guessed: number }>(
      'SELECT files.path, files.guessed, names.name, spots FROM names JOIN uses ON uses.name = names.id '
        + 'JOIN files ON files.id = uses.file WHERE names.low = ? LIMIT ?',
      low(name),
      MOST_ROWS,
    )
    .filter(row => admits(scope, row.path) && (!caseSensitive || row.name === name))
  return grouped(
    rows.flatMap(({ path, name: each, spots, guessed }) => {
      const all = spots.split(',').filter(spot => !spot.endsWith('d'))
      const imports = all.some(spot => spot.endsWith('i'))
      const defines = spots.includes('d')
      const score = (each === name ? 100 : 0) + (imports ? 50 : 0) + (defines ? 10 : 0) + Math.min(40, all.length)
      return all.map(spot => ({
        path,
        score,
        line: {
          line: Number.parseInt(spot, 10),
          tags: [{ kind: USE_TAGS[spot.at(-1)!]!, score }, ...(guessed ? [{ kind: 'heuristic' as const }] : [])],
          name: each,
          words: [low(each)],
        },
      }))
    }),
  )
}

const STOP = new Set(
  (
    'a an and are as at be by can do does for from has have how i if in into is it its me my of on or our so that '
    + 'the their '
    + 'then there these this to us was we what when where which who why will with you your'
  ).split(' '),
)

/** The significant words of a query. */
export const tellingWords = (question: string): string[] => {
  const all = (question.match(/[\p{L}\p{N}_$]+/gu) ?? []).slice(0, 32)
  const words = [...new Set([...all, ...all.flatMap(word => nameParts(word).split(' '))].map(low))].filter(Boolean)
  const telling = words.filter(word => !STOP.has(word) && word.length > 1)
  return telling.length > 0 ? telling : words
}

/** A query for parts of files by words. */
export interface WordsQuestion {
  readonly words: readonly string[]
  readonly scope: SearchScope
}

/** A part of a file that speaks of some words, as its first line, to be narrowed down. */
export interface FoundChunk {
  readonly path: string
  readonly line: number
  readonly lines: number
  /** How well the whole file fits. */
  readonly score: number
  /** How well its words alone fit; 0: it has none of them. */
  readonly worded: number
  /** How near the file is to the question in what it is about, from 0 to 1; left out where it was not compared. */
  readonly meaning?: number
}

/** The parts of files that speak of some words. */
export interface FoundChunks {
  readonly chunks: FoundChunk[]
  /** What files are about was learned, and counts. */
  readonly byMeaning: boolean
}

/** What files are about, as the search by words asks for it. */
export interface FileMeanings {
  like(stem: string): ReadonlySet<string>
  nearness(stems: readonly string[]): ReadonlyMap<number, number> | undefined
}

/** The best files by words are ranked anew by how much of the question they have, and by what they are about. */
const RERANKED = 400
const COVERAGE = 0.5
const MEANING = 0.8
/** Files without any of the words that are found by what they are about. */
const MOST_NEAR = 50
const LEAST_NEAR = 0.35
const LEAST_NEAR_NAMED = 0.5

/**
 * Finds files by their words and by what they are about, the best first, and of each its parts. What they are about is
 * what a named model says, if there is one, else what was learned here.
 */
export const findChunks = (
  store: IndexStore,
  meanings: FileMeanings,
  { words, scope }: WordsQuestion,
  named?: NamedNearness,
): FoundChunks => {
  const stems = [...new Set(words.flatMap(each => store.stem(each) ?? []))]
  const asked = stems.map(stem => ({ stem, like: [...meanings.like(stem)] }))
  const worded = wordScores(store, asked, scope).slice(0, MOST_FILES)
  const most = worded[0]?.score ?? 1
  // What is learned here is learned from all files, so to people of areas it would tell of others.
  const nearness = named
    ? new Map([...named].map(([id, { near }]) => [id, near]))
    : scope.reach
      ? undefined
      : meanings.nearness(stems)
  const files = worded.map(({ id, path, score, coverage, parts }, at) => {
    const found = at < RERANKED ? nearness?.get(id) : undefined
    const near = found === undefined ? undefined : Math.max(0, found)
    const share = score / most + (at < RERANKED ? COVERAGE * coverage : 0) + MEANING * (near ?? 0)
    return { path, score: share, worded: score, parts, ...(near !== undefined && { meaning: near }) }
  })
  const known = new Set(worded.map(({ id }) => id))
  const near = nearness ? nearFiles(store, nearness, known, scope, named) : []
  return {
    byMeaning: nearness !== undefined,
    chunks: [...files, ...near]
      .sort((one, other) => other.score - one.score)
      .flatMap(({ parts, ...file }) => parts.map(({ line, lines }) => ({ ...file, line, lines }))),
  }
}

/** Files that are about the same, without any of the words. */
const nearFiles = (
  store: IndexStore,
  nearness: ReadonlyMap<number, number>,
  known: ReadonlySet<number>,
  scope: SearchScope,
  named?: NamedNearness,
) =>
  [...nearness]
    .filter(([id, near]) => near >= (named ? LEAST_NEAR_NAMED : LEAST_NEAR) && !known.has(id))
    .sort(([one, near], [other, otherNear]) => otherNear - near || one - other)
    .flatMap(([id, near]) => {
      const row = store.get<{ path: string }>('SELECT path FROM files WHERE id = ?', id)
      return row && admits(scope, row.path) ? [{ id, path: row.path, near }] : []
    })
    .slice(0, MOST_NEAR)
    .map(({ id, path, near }) => {
      const nearest = named?.get(id)
      const first = store.get<{ line: number }>(
        'SELECT line FROM symbols WHERE file = ? ORDER BY exported DESC, line LIMIT 1',
        id,
      )
      const parts = [nearest ? { line: nearest.line, lines: nearest.lines } : { line: first?.line ?? 1, lines: 1 }]
      return { path, score: MEANING * near, worded: 0, meaning: near, parts }
    })

/** The index entries of a repository's files. */
export interface IndexedRow {
  readonly path: string
  readonly branches: number
  readonly symbols: number
  readonly exports: number
  readonly imports: readonly string[]
}

/** Everything that is counted of the files below a folder. */
export const rowsBelow = (store: IndexStore, scope: SearchScope): IndexedRow[] => {
  const imports = new Map<number, string[]>()
  for (const { file, target } of store.all<{ file: number; target: string }>('SELECT file, target FROM imports'))
    imports.set(file, [...(imports.get(file) ?? []), target])
  return store
    .all<{ id: number; path: string; branches: number; symbols: number; exports: number }>(
      'SELECT files.id, path, branches, count(symbols.file) AS symbols, total(exported) AS exports FROM files '
        + 'LEFT JOIN symbols ON symbols.file = files.id GROUP BY files.id',
    )
    .filter(({ path }) => admits(scope, path))
    .map(({ id, ...row }) => ({ ...row, imports: imports.get(id) ?? [] }))
}

/** The files of a scope whose names have one of these endings. */
export const pathsEnding = (store: IndexStore, scope: SearchScope, endings: readonly string[]): string[] => {
  const wanted = new Set(endings)
  return store
    .all<{ path: string }>('SELECT path FROM files')
    .flatMap(({ path }) =>
      wanted.has(path.slice(path.lastIndexOf('.') + 1).toLowerCase()) && admits(scope, path) ? [path] : [],
    )
}

/** Definitions beside the best lines: the definitions of these files, exported ones first. */
export const definedIn = (store: IndexStore, paths: readonly string[]): string[] =>
  paths.flatMap(path =>
    store
      .all<{ name: string }>(
        'SELECT names.name FROM symbols JOIN files ON files.id = symbols.file JOIN names ON names.id = symbols.name '
          + 'WHERE files.path = ? AND exported = 1 ORDER BY line LIMIT 3',
        path,
      )
      .map(({ name }) => name),
  )
