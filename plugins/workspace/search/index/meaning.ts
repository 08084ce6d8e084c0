import { Worker } from 'node:worker_threads'
import { programFile } from '../../../../sdk/node/programs/package.js'
import type { IndexStore, TextChunk } from './index-store.js'
import { likeWords } from './like-words.js'
import {
  addTo,
  asBytes,
  DIMENSIONS,
  FEWEST_LEARNED,
  likenessOf,
  MOST_LEARNED,
  weightOf,
  WORD_FIELDS,
  type WordCounts,
} from './space.js'
import type { LearnedSpace } from './space-worker.js'

const WORKER = programFile('plugins/workspace/search/index/space-worker.js')
const MOST_MEMORY_MB = 1024
/** It learns anew once a third of the files changed, at most every ten minutes. */
const CHANGED_SHARE = 1 / 3
const PAUSE_MS = 600_000
const BATCH = 500
const MOST_STEMS = 50_000
/** Further words of one file are left out: to stem each takes longer than to read the file. */
const MOST_WORDS = 5_000
/** What words of like meaning count for in the direction of a question, beside its own. */
const LIKE = 0.5
const WORD = /[\p{L}\p{N}]+/gu

const pause = () => new Promise<void>(resolve => setImmediate(resolve))

/** What files are about: learned from the workspace's own text, kept in the index, and compared with questions. */
export class Meaning {
  readonly #store: IndexStore
  readonly #path: string
  #stems = new Map<string, string>()
  #files: Map<number, Int8Array> | undefined
  #learning: Worker | undefined
  #like: ReadonlyMap<string, ReadonlySet<string>> | undefined
  #learnedAt = 0
  /** Files that changed since it learned. */
  #placed = new Set<number>()
  /** Files that changed while it learns. */
  readonly #missed = new Set<number>()
  /** Called with files that have to be read again, because they changed while it learned. */
  onMissed: ((paths: string[]) => void) | undefined

  constructor(store: IndexStore, path: string) {
    this.#store = store
    this.#path = path
  }

  /** Words that mean much the same as a stem. */
  like(stem: string): ReadonlySet<string> {
    this.#like ??= likeWords(word => this.#stem(word))
    return this.#like.get(stem) ?? NONE
  }

  #stem(word: string): string | undefined {
    const known = this.#stems.get(word)
    if (known !== undefined) return known || undefined
    if (this.#stems.size > MOST_STEMS) this.#stems.clear()
    const stem = this.#store.stem(word)
    this.#stems.set(word, stem ?? '')
    return stem
  }

  /** Places a file that changed; its words have the directions that were learned. */
  placed(file: number, path: string, chunks: readonly TextChunk[]): void {
    if (this.#learning) this.#missed.add(file)
    if (!this.#isLearned()) return
    const counts = this.#counts(path, chunks)
    const weights = new Map([...counts].map(([stem, count]) => [stem, weightOf(count)]))
    const vector = this.#direction(weights)
    this.#files?.set(file, vector)
    this.#placed.add(file)
    this.#store.putDirection(file, vector, true)
  }

  /** How often each stem occurs in a file. */
  #counts(path: string, chunks: readonly TextChunk[]): Map<string, WordCounts> {
    const counts = new Map<string, WordCounts>()
    const words = new Set<string>()
    for (const field of WORD_FIELDS)
      for (const word of textsOf(field, path, chunks).flatMap(text => text.toLowerCase().match(WORD) ?? [])) {
        if (words.size < MOST_WORDS) words.add(word)
        const stem = words.has(word) ? this.#stem(word) : undefined
        if (stem === undefined) continue
        const known = counts.get(stem) ?? { path: 0, head: 0, notes: 0, body: 0 }
        counts.set(stem, known)
        known[field] += 1
      }
    return counts
  }

  /** Forgets a file. */
  gone(file: number): void {
    this.#files?.delete(file)
    this.#placed.delete(file)
  }

  /** Forgets everything, because the index begins again. */
  reset(): void {
    void this.#learning?.terminate()
    this.#learning = undefined
    this.#files = undefined
    this.#placed.clear()
    this.#missed.clear()
    this.#stems.clear()
    this.#learnedAt = 0
  }

  #isLearned(): boolean {
    return this.#fileVectors().size > 0
  }

  #fileVectors(): Map<number, Int8Array> {
    if (this.#files) return this.#files
    const known = this.#store.directions()
    this.#placed = new Set(known.filter(({ placed }) => placed).map(({ file }) => file))
    return (this.#files = new Map(known.map(({ file, vector }) => [file, vector])))
  }

  #direction(weights: ReadonlyMap<string, number>): Int8Array {
    const sum = new Float32Array(DIMENSIONS)
    for (const [stem, weight] of weights) {
      const known = this.#store.wordDirection(stem)
      if (known) addTo(sum, known.vector, weight * known.rarity)
    }
    return asBytes(sum)
  }

  /** How near each file is to these words: none where none of them was learned; undefined: nothing was learned. */
  nearness(stems: readonly string[]): ReadonlyMap<number, number> | undefined {
    if (!this.#isLearned()) return undefined
    const weights = new Map<string, number>()
    for (const stem of stems) for (const like of this.like(stem)) weights.set(like, LIKE)
    for (const stem of stems) weights.set(stem, 1)
    const question = this.#direction(weights)
    if (question.every(each => each === 0)) return new Map()
    return new Map([...this.#fileVectors()].map(([file, vector]) => [file, likenessOf(question, vector)]))
  }

  /** Learns where nothing was learned yet, or much changed; in a thread of its own. */
  learn(): void {
    const { files } = this.#store.size
    if (this.#learning || files < FEWEST_LEARNED || files > MOST_LEARNED) return
    const known = this.#fileVectors().size
    if (known > 0 && this.#placed.size < known * CHANGED_SHARE) return
    if (this.#learnedAt > 0 && performance.now() - this.#learnedAt < PAUSE_MS) return
    this.#learnedAt = performance.now()
    this.#missed.clear()
    const worker = new Worker(WORKER, {
      workerData: { path: this.#path },
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MOST_MEMORY_MB },
    })
    worker.unref()
    this.#learning = worker
    const over = () => {
      if (this.#learning === worker) this.#learning = undefined
    }
    worker.once('message', (space: LearnedSpace | undefined) => {
      if (this.#learning === worker && space) this.#keep(space, worker).then(over, over)
      else over()
    })
    // What was learned before stays; it is tried again after the pause.
    worker.once('error', over).once('exit', code => code !== 0 && over())
  }

  async #keep({ ids, words, files }: LearnedSpace, worker: Worker): Promise<void> {
    this.#files = new Map()
    this.#placed.clear()
    this.#store.dropDirections()
    for (let from = 0; from < words.length; from += BATCH) {
      this.#store.putWordDirections(words.slice(from, from + BATCH))
      await pause()
      if (this.#learning !== worker) return
    }
    // All in one step: a part of the files would look like all of them after a crash.
    const placed = ids.map((id, at) => [id, files[at]!] as const)
    this.#files = new Map(this.#store.putDirections(placed))
    this.#learning = undefined
    this.onMissed?.(this.#store.pathsOf(this.#missed))
  }
}

const NONE: ReadonlySet<string> = new Set()

const textsOf = (field: keyof WordCounts, path: string, chunks: readonly TextChunk[]): readonly string[] =>
  field === 'path' ? [path] : chunks.map(chunk => chunk[field])
