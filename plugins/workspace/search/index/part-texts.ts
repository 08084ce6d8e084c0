import { chunksOf } from './chunks.js'
import { readIndexed } from './indexer.js'
import type { PartText } from './index-questions.js'
import { partKey } from './part-key.js'
import type { PartVectors } from './part-vectors.js'

/** Models take a few thousand tokens, each of a byte at least: of a longer part the beginning is sent. */
const BEGINNING = new Uint8Array(6_000)
const ENCODER = new TextEncoder()

/** The next parts that a model is to learn, as they are on the disk; those of changed files are passed over. */
export const unplacedTexts = (root: string, vectors: PartVectors, model: string, most: number): PartText[] => {
  for (;;) {
    const parts = vectors.unplaced(model, most)
    const files = new Map<string, ReadonlyMap<string, string>>()
    const texts = parts.flatMap(({ key, path }): PartText[] => {
      const file = files.get(path) ?? partsIn(root, path)
      files.set(path, file)
      const text = file.get(key)
      if (text === undefined) vectors.passOver(key)
      return text === undefined ? [] : [{ key, text }]
    })
    if (texts.length > 0 || parts.length === 0) return texts
  }
}

/** The texts of a file's parts by their keys, each below the path of the file. */
const partsIn = (root: string, path: string): ReadonlyMap<string, string> => {
  const text = readIndexed(root, path)?.bytes?.toString() ?? ''
  const lines = text.split('\n')
  return new Map(
    chunksOf(text, []).map(({ line, lines: count, body }) => [
      partKey(path, body),
      beginningOf(`${path}\n${lines.slice(line - 1, line - 1 + count).join('\n')}`.toWellFormed()),
    ]),
  )
}

const beginningOf = (text: string): string => text.slice(0, ENCODER.encodeInto(text, BEGINNING).read)
