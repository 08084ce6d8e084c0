/** Changes of one batch. */
export interface ChangeBatch {
  /** The generation before it, and after it. */
  readonly since: number
  readonly generation: number
  readonly paths: readonly string[]
  /** Other paths may have changed too. */
  readonly reset: boolean
}

const BATCH_MS = 250
const MOST_BATCHES = 2_000
const MOST_KEPT_PATHS = 200_000

export interface GenerationsDeps {
  readonly start: number
  /** Receives each batch when it closes. */
  readonly publish: (batch: ChangeBatch) => void
}

/** Counts the changes of one tree in batches, and keeps the last of them in memory. */
export class Generations {
  readonly #publish: GenerationsDeps['publish']
  #generation: number
  #kept: ChangeBatch[] = []
  #keptPaths = 0
  #open = new Set<string>()
  #reset = false
  #timer: NodeJS.Timeout | undefined
  /** The generation from which on everything that changed is kept. */
  #floor: number

  constructor({ start, publish }: GenerationsDeps) {
    this.#publish = publish
    this.#generation = start
    this.#floor = start
  }

  get generation(): number {
    return this.#generation
  }

  /** Adds changed paths to the open batch, which closes 250 ms after its first change. */
  add(paths: readonly string[]): void {
    if (paths.length === 0) return
    if (!this.#reset) for (const path of paths) this.#open.add(path)
    if (this.#open.size > MOST_KEPT_PATHS) this.reset()
    this.#begin()
  }

  /** Records that unknown paths may have changed. */
  reset(): void {
    this.#open.clear()
    this.#reset = true
    this.#begin()
  }

  #begin(): void {
    this.#timer ??= setTimeout(() => this.close(), BATCH_MS).unref()
  }

  /** Closes the open batch now. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#open.size === 0 && !this.#reset) return
    const batch = {
      since: this.#generation,
      generation: this.#generation + 1,
      paths: [...this.#open].sort(),
      reset: this.#reset,
    }
    this.#open = new Set()
    this.#reset = false
    this.#generation = batch.generation
    this.#kept.push(batch)
    this.#keptPaths += batch.paths.length
    while (this.#kept.length > MOST_BATCHES || this.#keptPaths > MOST_KEPT_PATHS) {
      const dropped = this.#kept.shift()!
      this.#keptPaths -= dropped.paths.length
      this.#floor = dropped.generation
    }
    this.#publish(batch)
  }

  /** The paths that changed after a generation, each once; undefined: no longer known. */
  since(generation: number): string[] | undefined {
    this.close()
    if (generation < this.#floor) return undefined
    const later = this.#kept.filter(batch => batch.generation > generation)
    if (later.some(({ reset }) => reset)) return undefined
    return [...new Set(later.flatMap(({ paths }) => paths))].sort()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
