import { accessTo, type Reach } from '../../../../sdk/index.js'
import { MOST_FILE_LINES } from '../found.js'
import { admits, type SearchScope } from '../search-scope.js'
import type { IndexStore } from './index-store.js'
import { WORD_FIELDS } from './space.js'

/** A part of a file that contains some words, and how much they count for in it. */
export interface WordPart {
  readonly line: number
  readonly lines: number
  score: number
}

/** How well a file fits some words, and the best parts that contain them. */
export interface WordedFile {
  readonly id: number
  readonly path: string
  readonly score: number
  /** How much of what was asked it has, from 0 to 1. */
  readonly coverage: number
  readonly parts: readonly WordPart[]
}

/** The usual constants of BM25: how soon more of a word counts no more, and how much longer fields count less. */
const SATURATION = 1.2
const LENGTH = 0.75
/** In a part, names count more than comments, and comments more than code. */
const PART_WEIGHTS = [6, 4, 3, 1]
/** What a word of like meaning counts for, beside the word itself; one in over a tenth of many parts counts nothing. */
const LIKE = 0.5
const MOST_LIKE = 0.1
const FEW_PARTS = 50
/** A file has a word in full from two thirds of what the word can count for. */
const IN_FULL = 1.5
/** How much words count that are near each other, beside those anywhere in the file. */
const NEAR = 0.2

interface SpotRow {
  readonly file: number
  readonly part: number
  readonly line: number
  readonly lines: number
  readonly col: string
  readonly count: number
}

const SPOTS = `
  SELECT chunks.file, spots.doc AS part, chunks.line, chunks.lines, spots.col, count(*) AS count
  FROM spots JOIN chunks ON chunks.id = spots.doc WHERE spots.term = ? GROUP BY spots.doc, spots.col
`

/** The occurrences of a word in a file, by field, and what it counts for in each part. */
interface FileSpots {
  readonly counts: number[]
  readonly parts: Map<number, { readonly line: number; readonly lines: number; weight: number }>
}

const spotsOf = (rows: readonly SpotRow[]): Map<number, FileSpots> => {
  const files = new Map<number, FileSpots>()
  for (const { file, part, line, lines, col, count } of rows) {
    const field = WORD_FIELDS.findIndex(each => each === col)
    const spots = files.get(file) ?? { counts: WORD_FIELDS.map(() => 0), parts: new Map() }
    files.set(file, spots)
    // Each part of a file has its path.
    spots.counts[field] = col === 'path' ? count : spots.counts[field]! + count
    const known = spots.parts.get(part) ?? { line, lines, weight: 0 }
    spots.parts.set(part, known)
    known.weight += PART_WEIGHTS[field]! * count
  }
  return files
}

interface ScoredFile {
  readonly id: number
  readonly path: string
  /** The lengths of its fields, in those of a usual file. */
  readonly lengths: readonly number[]
  score: number
  coverage: number
  readonly parts: Map<number, WordPart>
}

/** A word of a question, as the index has it, and words of like meaning. */
export interface AskedWord {
  readonly stem: string
  readonly like: readonly string[]
}

/** What one word of a question counts for in a file, and in its parts: the word itself, or the best one like it. */
interface WordCount {
  score: number
  readonly parts: Map<number, WordPart>
}

const SIZES = `
  SELECT id, path, ${WORD_FIELDS.map(field => `${field}_words`).join(', ')},
  (SELECT count(*) FROM chunks WHERE chunks.file = files.id) AS parts FROM files
`

interface SizeRow {
  readonly id: number
  readonly path: string
  readonly parts: number
  readonly [length: `${string}_words`]: number
}

/** The files that the rarity of words is measured by. */
interface MeasuredFiles {
  readonly files: number
  readonly words: readonly number[]
  readonly parts: number
  /** Left out: all files. */
  readonly ids?: ReadonlySet<number>
}

/** Words are measured by the files that somebody may read: else scores would tell how many others have them. */
const measuredFiles = (store: IndexStore, reach: Reach): MeasuredFiles => {
  if (!reach) return { ...store.size, parts: store.partCount() }
  const rows = store.all<SizeRow>(SIZES).filter(({ path }) => accessTo(reach, path) !== undefined)
  const total = (count: (row: SizeRow) => number) => rows.reduce((sum, row) => sum + count(row), 0)
  return {
    files: rows.length,
    words: WORD_FIELDS.map(field => total(row => row[`${field}_words`]!)),
    parts: total(({ parts }) => parts),
    ids: new Set(rows.map(({ id }) => id)),
  }
}

const LENGTHS = `SELECT path, ${WORD_FIELDS.map(field => `${field}_words`).join(', ')} FROM files WHERE id = ?`

/**
 * Ranks files by words: BM25 over whole files, of each field by itself. So the name of a file counts as much as all of
 * its code, and a long file fits no better for containing more words. Words near each other count a little more.
 */
export const wordScores = (store: IndexStore, words: readonly AskedWord[], scope: SearchScope): WordedFile[] => {
  const { files: total, words: lengths, parts: allParts, ids } = measuredFiles(store, scope.reach)
  const files = new Map<number, ScoredFile | undefined>()
  const fileOf = (id: number): ScoredFile | undefined => {
    if (files.has(id)) return files.get(id)
    const row = store.get<{ path: string; [length: `${string}_words`]: number }>(LENGTHS, id)
    const admitted = row && admits(scope, row.path)
    const relative = (field: string, at: number) => (row![`${field}_words`]! * total) / lengths[at]!
    const file = admitted && {
      ...{ id, path: row.path, lengths: WORD_FIELDS.map(relative), score: 0, coverage: 0, parts: new Map() },
    }
    files.set(id, file || undefined)
    return file || undefined
  }
  let most = 0
  const common = Math.max(FEW_PARTS, allParts * MOST_LIKE)
  const spotsWith = (word: string): Map<number, FileSpots> => {
    const found = spotsOf(store.all<SpotRow>(SPOTS, word))
    return ids ? new Map([...found].filter(([id]) => ids.has(id))) : found
  }
  const partsWith = (word: string): number =>
    ids ? [...spotsWith(word).values()].reduce((sum, { parts }) => sum + parts.size, 0) : store.partsWith(word)
  for (const { stem, like } of words) {
    const counted = new Map<ScoredFile, WordCount>()
    const count = (word: string, share: number): number => {
      const found = spotsWith(word)
      const rarity = share * Math.log(1 + (total - found.size + 0.5) / (found.size + 0.5))
      for (const [id, spots] of found) {
        const file = fileOf(id)
        if (file) addCount(counted, file, spots, rarity)
      }
      return found.size > 0 ? rarity : 0
    }
    const others = like.filter(word => partsWith(word) <= common)
    const top = Math.max(count(stem, 1), ...others.map(word => count(word, LIKE)))
    most += top
    for (const [file, { score, parts }] of counted) {
      file.score += score
      file.coverage += Math.min(top, IN_FULL * score)
      for (const [part, { score: more, ...place }] of parts) {
        const known = file.parts.get(part) ?? { ...place, score: 0 }
        file.parts.set(part, known)
        known.score += more
      }
    }
  }
  return [...files.values()]
    .filter(file => file !== undefined)
    .map(({ id, path, score, coverage, parts: all }) => {
      const parts = [...all.values()].sort((one, other) => other.score - one.score).slice(0, MOST_FILE_LINES)
      return { id, path, score: score + NEAR * parts[0]!.score, coverage: most > 0 ? coverage / most : 0, parts }
    })
    .sort((one, other) => other.score - one.score)
}

/** Counts the occurrences of a word in a file, unless one of like meaning counts more there. */
const addCount = (
  counted: Map<ScoredFile, WordCount>,
  file: ScoredFile,
  { counts, parts }: FileSpots,
  rarity: number,
): void => {
  const known = counted.get(file) ?? { score: 0, parts: new Map<number, WordPart>() }
  counted.set(file, known)
  let score = 0
  for (const [at, count] of counts.entries())
    if (count > 0) score += (rarity * count) / (count + SATURATION * (1 - LENGTH + LENGTH * file.lengths[at]!))
  known.score = Math.max(known.score, score)
  for (const [part, { line, lines, weight }] of parts) {
    const most = (rarity * weight * (1 + SATURATION)) / (weight + SATURATION)
    const before = known.parts.get(part)
    if (before) before.score = Math.max(before.score, most)
    else known.parts.set(part, { line, lines, score: most })
  }
}
