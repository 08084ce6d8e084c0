import type { Files } from '../../host.js'
import { ignored } from '../../ignored.js'

/** What is kept goes through these. */
export type KeptFiles = Pick<Files, 'read' | 'write' | 'remove'>

interface Written<T> {
  version: 1
  value: T
}

/** One sealed JSON, held in memory: changed one edit at a time, and in force only once it is on the disk. */
export class Kept<T extends object> {
  readonly #files: Pick<Files, 'write' | 'remove'>
  readonly #name: string
  readonly #empty: T
  #value: T
  #last: Promise<unknown> = Promise.resolve()

  private constructor(files: Pick<Files, 'write' | 'remove'>, name: string, empty: T, value: T) {
    this.#files = files
    this.#name = name
    this.#empty = empty
    this.#value = value
  }

  /** Reads what is kept; whatever cannot be read stops the start, since it must never look like nothing. */
  static async open<T extends object>(files: KeptFiles, name: string, empty: T): Promise<Kept<T>> {
    const written = await files.read<Written<T>>(name)
    if (written && written.version !== 1) {
      throw new Error(`${name}: expected version 1, found ${written.version}; start the daemon that wrote it`)
    }
    return new Kept(files, name, empty, written?.value ?? empty)
  }

  get value(): T {
    return this.#value
  }

  /** Replaces the value; an edit that throws or answers the same value writes nothing, a failed write leaves it. */
  change(edit: (value: T) => T): Promise<void> {
    return this.#inTurn(async () => {
      const next = edit(this.#value)
      if (next === this.#value) return
      const written: Written<T> = { version: 1, value: next }
      await this.#files.write(this.#name, written)
      this.#value = next
    })
  }

  /** Back to nothing; needs no room, so it works on a full disk too. */
  clear(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#files.remove(this.#name)
      this.#value = this.#empty
    })
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#last.then(step)
    this.#last = done.catch(ignored('the step before told its own caller'))
    return done
  }
}
