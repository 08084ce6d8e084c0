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
  #changed = 0

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
    this.#changed += 1
    if (!this.#isLearned()) return
    const counts = new Map<string, WordCounts>()
    for (const field of WORD_FIELDS)
      for (const word of textsOf(field, path, chunks).flatMap(text => text.toLowerCase().match(WORD) ?? [])) {
        const stem = this.#stem(word)
        if (stem === undefined) continue
        const known = counts.get(stem) ?? { path: 0, head: 0, notes: 0, body: 0 }
        counts.set(stem, known)
        known[field] += 1
      }
    const weights = new Map([...counts].map(([stem, count]) => [stem, weightOf(count)]))
    const vector = this.#direction(weights)
    this.#files?.set(file, vector)
    this.#store.putDirection(file, vector)
  }

  /** Forgets a file. */
  gone(file: number): void {
    this.#files?.delete(file)
  }

  /** Forgets everything, because the index begins again. */
  reset(): void {
    void this.#learning?.terminate()
    this.#learning = undefined
    this.#files = undefined
    this.#stems.clear()
    this.#learnedAt = 0
    this.#changed = 0
  }

  #isLearned(): boolean {
    return this.#fileVectors().size > 0
  }

  #fileVectors(): Map<number, Int8Array> {
    this.#files ??= new Map(this.#store.directions())
    return this.#files
  }

  #direction(weights: ReadonlyMap<string, number>): Int8Array {
    const sum = new Float32Array(DIMENSIONS)
    for (const [stem, weight] of weights) {
      const known = this.#store.wordDirection(stem)
      if (known) addTo(sum, known.vector, weight * known.rarity)
    }
    return asBytes(sum)
  }

  /** How near each file is to these words; undefined: nothing was learned, or none of the words. */
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
    if (known > 0 && this.#changed < known * CHANGED_SHARE) return
    if (this.#learnedAt > 0 && performance.now() - this.#learnedAt < PAUSE_MS) return
    this.#learnedAt = performance.now()
    this.#changed = 0
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
    this.#store.dropDirections()
    for (let from = 0; from < words.length; from += BATCH) {
      this.#store.putWordDirections(words.slice(from, from + BATCH))
      await pause()
      if (this.#learning !== worker) return
    }
    // All in one step: a part of the files would look like all of them after a crash.
    const placed = ids.map((id, at) => [id, files[at]!] as const)
    this.#files = new Map(this.#store.putDirections(placed))
  }
}

const NONE: ReadonlySet<string> = new Set()

const textsOf = (field: keyof WordCounts, path: string, chunks: readonly TextChunk[]): readonly string[] =>
  field === 'path' ? [path] : chunks.map(chunk => chunk[field])
