/** A piece of an answer to the message at `seq`. */
export interface SpokenDelta {
  readonly seq: number
  readonly text: string
}

/** Somebody who reads a thread now. */
export class ThreadReader {
  #pieces: SpokenDelta[]
  #wake = Promise.withResolvers<void>()
  /** The thread is closed. */
  gone = false

  constructor(spoken: SpokenDelta | undefined) {
    this.#pieces = spoken ? [spoken] : []
  }

  /** Resolves at the next news after this call. */
  woken(): Promise<void> {
    this.#wake = Promise.withResolvers()
    return this.#wake.promise
  }

  wake(): void {
    this.#wake.resolve()
  }

  add(piece: SpokenDelta): void {
    const last = this.#pieces.at(-1)
    // A slow reader gets fewer, longer pieces.
    if (last?.seq === piece.seq) this.#pieces[this.#pieces.length - 1] = { ...last, text: last.text + piece.text }
    else this.#pieces.push(piece)
  }

  take(): SpokenDelta[] {
    return this.#pieces.splice(0)
  }
}

/** Who reads which thread, and what is being said in it. */
export class ThreadReaders {
  readonly #readers = new Map<string, Set<ThreadReader>>()
  readonly #spoken = new Map<string, SpokenDelta>()

  enter(journal: string): ThreadReader {
    const reader = new ThreadReader(this.#spoken.get(journal))
    const readers = this.#readers.get(journal) ?? new Set()
    this.#readers.set(journal, readers.add(reader))
    return reader
  }

  leave(journal: string, reader: ThreadReader): void {
    const readers = this.#readers.get(journal)
    readers?.delete(reader)
    if (readers?.size === 0) this.#readers.delete(journal)
  }

  count(journal: string): number {
    return this.#readers.get(journal)?.size ?? 0
  }

  say(journal: string, seq: number, text: string): void {
    const before = this.#spoken.get(journal)
    this.#spoken.set(journal, { seq, text: (before?.seq === seq ? before.text : '') + text })
    for (const reader of this.#readers.get(journal) ?? []) reader.add({ seq, text })
    this.wake(journal)
  }

  /** The answer is whole: its pieces say nothing more. */
  whole(journal: string): void {
    this.#spoken.delete(journal)
    for (const reader of this.#readers.get(journal) ?? []) reader.take()
  }

  wake(journal: string): void {
    for (const reader of this.#readers.get(journal) ?? []) reader.wake()
  }

  end(journal: string): void {
    this.#spoken.delete(journal)
    for (const reader of this.#readers.get(journal) ?? []) {
      reader.gone = true
      reader.wake()
    }
  }
}
