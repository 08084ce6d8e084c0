/** How often a word occurs in the fields of a file. */
export interface WordCounts {
  path: number
  head: number
  notes: number
  body: number
}

/** A word and the files that contain it. */
export interface SpreadWord {
  readonly word: string
  /** The fewer files contain it, the more it says. */
  readonly rarity: number
  /** The places of the files in the list of files. */
  readonly files: readonly number[]
  readonly weights: readonly number[]
}

/** Words and files as directions: those that are used alike point the same way. */
export interface MeaningSpace {
  readonly words: readonly { readonly word: string; readonly rarity: number; readonly vector: Float32Array }[]
  /** In the order of the files. */
  readonly files: readonly Int8Array[]
}

/** The fields of a file that have words. */
export const WORD_FIELDS = ['path', 'head', 'notes', 'body'] as const

/** Below this words are too few to say what is alike, and above learning would need too much memory. */
export const FEWEST_LEARNED = 60
export const MOST_LEARNED = 50_000

/** How many numbers a direction has. */
export const DIMENSIONS = 128
/** More than are kept, so that the kept ones are exact. */
const SPARE = 8
const ROUNDS = 3
/** With as many axes as files nothing would be alike but what has the same words. */
const FILES_AN_AXIS = 8
const FEWEST_AXES = 8

/** What the occurrences of a word count for: names say more than comments, and comments more than code. */
export const weightOf = ({ path, head, notes, body }: Readonly<WordCounts>): number =>
  Math.log1p(6 * Math.min(path, 1) + 4 * head + 3 * notes + 0.3 * body)

/** Numbers that look random and are the same each time, so that the same files get the same order. */
const fixedNumbers = (count: number): Float32Array => {
  let seed = 1
  return new Float32Array(count).map(() => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
    return seed / 0x7fffffff - 0.5
  })
}

/** Makes columns of length 1 that stand at right angles to each other (Gram and Schmidt). */
const straighten = (matrix: Float32Array, rows: number, columns: number): void => {
  for (let column = 0; column < columns; column++) {
    for (let before = 0; before < column; before++) {
      let common = 0
      for (let at = 0; at < rows * columns; at += columns) common += matrix[at + column]! * matrix[at + before]!
      for (let at = 0; at < rows * columns; at += columns) matrix[at + column]! -= common * matrix[at + before]!
    }
    let sum = 0
    for (let at = column; at < rows * columns; at += columns) sum += matrix[at]! ** 2
    const length = Math.sqrt(sum)
    // A file without any kept word has no direction, nor has a column beyond what the words tell apart.
    const scale = length > 1e-6 ? 1 / length : 0
    for (let at = column; at < rows * columns; at += columns) matrix[at]! *= scale
  }
}

/** The direction as bytes: its length is 127, or 0 where it has none. */
export const asBytes = (vector: Float32Array): Int8Array => {
  let sum = 0
  for (const each of vector) sum += each * each
  const scale = sum > 0 ? 127 / Math.sqrt(sum) : 0
  return Int8Array.from(vector, each => Math.round(each * scale))
}

/** How alike two directions are, from -1 to 1. */
export const likenessOf = (one: Int8Array, other: Int8Array): number => {
  let sum = 0
  for (let at = 0; at < DIMENSIONS; at++) sum += one[at]! * other[at]!
  return sum / (127 * 127)
}

/**
 * Learns directions from which files contain which words (latent semantic analysis): the main axes of the table of
 * both, found by repeated multiplication of random columns.
 */
export const learnSpace = (words: readonly SpreadWord[], fileCount: number): MeaningSpace => {
  const columns = DIMENSIONS + SPARE
  const lengths = new Float32Array(fileCount)
  for (const { files, weights, rarity } of words)
    for (const [at, file] of files.entries()) lengths[file]! += (weights[at]! * rarity) ** 2
  for (const [at, sum] of lengths.entries()) lengths[at] = sum > 0 ? 1 / Math.sqrt(sum) : 0
  const axes = fixedNumbers(words.length * columns)
  const spread = new Float32Array(fileCount * columns)
  for (let round = 0; round < ROUNDS; round++) {
    spread.fill(0)
    eachCell(words, lengths, (word, file, weight) => {
      for (let at = 0; at < columns; at++) spread[file * columns + at]! += weight * axes[word * columns + at]!
    })
    axes.fill(0)
    eachCell(words, lengths, (word, file, weight) => {
      for (let at = 0; at < columns; at++) axes[word * columns + at]! += weight * spread[file * columns + at]!
    })
    straighten(axes, words.length, columns)
  }
  const kept = Math.min(DIMENSIONS, Math.max(FEWEST_AXES, Math.floor(fileCount / FILES_AN_AXIS)))
  const placed = words.map(({ word, rarity }, at) => {
    const vector = new Float32Array(DIMENSIONS)
    vector.set(axes.subarray(at * columns, at * columns + kept))
    return { word, rarity, vector }
  })
  const sums = Array.from({ length: fileCount }, () => new Float32Array(DIMENSIONS))
  for (const [at, { files, weights, rarity }] of words.entries())
    for (const [place, file] of files.entries()) addTo(sums[file]!, placed[at]!.vector, weights[place]! * rarity)
  return { words: placed, files: sums.map(asBytes) }
}

const eachCell = (
  words: readonly SpreadWord[],
  lengths: Float32Array,
  work: (word: number, file: number, weight: number) => void,
): void => {
  for (const [word, { files, weights, rarity }] of words.entries())
    for (const [at, file] of files.entries()) work(word, file, weights[at]! * rarity * lengths[file]!)
}

/** Adds a part of a direction to a sum. */
export const addTo = (sum: Float32Array, vector: Float32Array, weight: number): void => {
  for (let at = 0; at < DIMENSIONS; at++) sum[at]! += weight * vector[at]!
}
