import { MOST_FILE_LINES } from '../found.js'
import { WORD_FIELDS, type IndexStore } from './index-store.js'

/** A part of a file that contains some words, and how much they count for in it. */
export interface WordPart {
  readonly line: number
  readonly lines: number
  score: number
}

/** How well a file fits some words, and the best parts that contain them. */
export interface WordedFile {
  readonly path: string
  readonly score: number
  readonly parts: readonly WordPart[]
}

/** The usual constants of BM25: how soon more of a word counts no more, and how much longer fields count less. */
const SATURATION = 1.2
const LENGTH = 0.75
/** In a part, names count more than comments, and comments more than code. */
const PART_WEIGHTS = [6, 4, 3, 1]
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
  readonly path: string
  /** The lengths of its fields, in those of a usual file. */
  readonly lengths: readonly number[]
  score: number
  readonly parts: Map<number, WordPart>
}

const LENGTHS = `SELECT path, ${WORD_FIELDS.map(field => `${field}_words`).join(', ')} FROM files WHERE id = ?`

/**
 * Ranks files by words: BM25 over whole files, of each field by itself. So the name of a file counts as much as all of
 * its code, and a long file fits no better for containing more words. Words near each other count a little more.
 */
export const wordScores = (
  store: IndexStore,
  words: readonly string[],
  admits: (path: string) => boolean,
): WordedFile[] => {
  const { files: total, words: lengths } = store.size
  const files = new Map<number, ScoredFile | undefined>()
  const fileOf = (id: number): ScoredFile | undefined => {
    if (files.has(id)) return files.get(id)
    const row = store.get<{ path: string; [length: `${string}_words`]: number }>(LENGTHS, id)
    const admitted = row && admits(row.path)
    const relative = (field: string, at: number) => (row![`${field}_words`]! * total) / lengths[at]!
    const file = admitted && { path: row.path, lengths: WORD_FIELDS.map(relative), score: 0, parts: new Map() }
    files.set(id, file || undefined)
    return file || undefined
  }
  for (const word of new Set(words.flatMap(each => store.stem(each) ?? []))) {
    const found = spotsOf(store.all<SpotRow>(SPOTS, word))
    const rarity = Math.log(1 + (total - found.size + 0.5) / (found.size + 0.5))
    for (const [id, { counts, parts }] of found) {
      const file = fileOf(id)
      if (!file) continue
      for (const [at, count] of counts.entries())
        if (count > 0) file.score += (rarity * count) / (count + SATURATION * (1 - LENGTH + LENGTH * file.lengths[at]!))
      for (const [part, { line, lines, weight }] of parts) {
        const known = file.parts.get(part) ?? { line, lines, score: 0 }
        file.parts.set(part, known)
        known.score += (rarity * weight * (1 + SATURATION)) / (weight + SATURATION)
      }
    }
  }
  return [...files.values()]
    .filter(file => file !== undefined)
    .map(({ path, score, parts: all }) => {
      const parts = [...all.values()].sort((one, other) => other.score - one.score).slice(0, MOST_FILE_LINES)
      return { path, score: score + NEAR * parts[0]!.score, parts }
    })
    .sort((one, other) => other.score - one.score)
}
