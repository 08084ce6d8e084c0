import { setMaxListeners } from 'node:events'
import type { Writable } from 'node:stream'
import type { JournalFile } from './log-file.js'
import type { Wakes } from './wakes.js'

/** Bytes to write when nothing was sent for `every` milliseconds. */
export interface Idle {
  readonly every: number
  readonly write: Buffer
}

/** The bytes to write when the signal is aborted between two entries; undefined: none. */
export type Last = (signal: AbortSignal) => Buffer | undefined

/** Copies a journal's bytes to a sink, at the pace of the sink. */
export class Watcher {
  readonly #log: JournalFile
  readonly #wakes: Wakes
  readonly #out: Writable
  readonly #idle: Idle | undefined
  readonly #last: Last | undefined
  #at: number
  #state: 'moving' | 'reading' | 'blocked' | 'waiting' | 'over' = 'moving'
  #sentAt = performance.now()
  #timer: NodeJS.Timeout | undefined
  #finish: (error?: unknown) => void = () => {}

  constructor(
    log: JournalFile,
    wakes: Wakes,
    at: number,
    out: Writable,
    { idle, last }: { readonly idle?: Idle | undefined; readonly last?: Last | undefined } = {},
  ) {
    this.#log = log
    this.#wakes = wakes
    this.#at = at
    this.#out = out
    this.#idle = idle
    this.#last = last
  }

  /**
   * Resolves when a closed journal is written completely, when the sink closes or the file is dropped, or when the
   * signal is aborted.
   */
  run(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#out.destroyed) return Promise.resolve()
    const stop = (): void => this.#finish()
    const aborted = (): void => {
      const bytes = this.#state === 'waiting' ? this.#last?.(signal) : undefined
      if (bytes) this.#put(bytes)
      if (this.#state !== 'over') stop()
    }
    return new Promise<void>((done, fail) => {
      this.#finish = error => {
        this.#state = 'over'
        if (error === undefined) done()
        else fail(error)
      }
      // One signal may be shared by any number of watchers.
      setMaxListeners(0, signal)
      signal.addEventListener('abort', aborted, { once: true })
      this.#out.on('drain', this.#drained).on('close', stop).on('error', stop)
      this.#wakes.watchers.add(this)
      if (this.#idle) this.#rest(this.#idle, this.#idle.every)
      this.#move()
    }).finally(() => {
      signal.removeEventListener('abort', aborted)
      this.#out.off('drain', this.#drained).off('close', stop).off('error', stop)
      clearTimeout(this.#timer)
      this.#wakes.leave(this)
      if (this.#log.closed && this.#wakes.watchers.size === 0) this.#log.clearCache()
    })
  }

  wake(): void {
    if (this.#log.gone) return this.#finish()
    if (this.#state !== 'waiting') return
    this.#state = 'moving'
    this.#move()
  }

  /** A watcher in the middle of an entry ends without the bytes. */
  interrupt(bytes: Buffer): void {
    if (this.#state === 'waiting') this.#put(bytes)
    if (this.#state !== 'over') this.#finish()
  }

  readonly #drained = (): void => {
    if (this.#state !== 'blocked') return
    this.#state = 'moving'
    this.#move()
  }

  #move(): void {
    while (this.#state === 'moving') {
      if (this.#log.gone) return this.#finish()
      if (this.#at >= this.#log.size) {
        if (this.#log.closed) return this.#finish()
        this.#state = 'waiting'
        return this.#wakes.wait(this)
      }
      const bytes = this.#log.recent(this.#at)
      if (bytes) this.#send(bytes)
      else return void this.#read()
    }
  }

  async #read(): Promise<void> {
    this.#state = 'reading'
    try {
      const bytes = await this.#log.bytes(this.#at)
      if (this.#state !== 'reading') return
      this.#state = 'moving'
      this.#send(bytes)
      this.#move()
    } catch (error) {
      this.#finish(error)
    }
  }

  #send(bytes: Buffer): void {
    this.#at += bytes.length
    this.#sentAt = performance.now()
    this.#put(bytes)
  }

  /** A sink that throws ends only its own watcher. */
  #put(bytes: Buffer): void {
    try {
      if (!this.#out.write(bytes)) this.#state = 'blocked'
    } catch (error) {
      this.#finish(error)
    }
  }

  /** Writes idle bytes only while the watcher waits: otherwise they could split an entry. */
  #rest(idle: Idle, left: number): void {
    this.#timer = setTimeout(
      () => {
        const quiet = performance.now() - this.#sentAt
        if (quiet < idle.every) return this.#rest(idle, idle.every - quiet)
        if (this.#state === 'waiting') {
          this.#sentAt = performance.now()
          this.#put(idle.write)
        }
        this.#rest(idle, idle.every)
      },
      Math.max(1, left),
    )
  }
}
