import type { Within } from './burst.js'
import type { Watch } from '../../sdk/contract.js'
import type { FrameForms } from '../../sdk/kernel.js'

/** The bytes of one frame, the same for everybody who receives it. */
export interface Wire {
  /** With its id. */
  readonly whole: Buffer
  /** Its data line alone, for watchers that receive it under another id. */
  readonly data: Buffer
}

/** One frame that was published, serialised once for each form it has. */
export interface Entry {
  readonly seq: number
  readonly at: number
  readonly kind: string
  readonly people: Wire
  /** Absent: nothing for control tokens. */
  readonly tokens?: Wire
  /** What people limited to areas get is made of; absent: nothing for them. */
  readonly source?: { readonly data: object; readonly limited: FrameForms }
  /** The bytes for each reach that asked for them; undefined: nothing. */
  readonly limited: Map<string, Wire | undefined>
  /** Only for watchers that asked for this mode. */
  readonly mode?: string
  readonly change?: Change
}

/** What a frame `runtimeChanged` says. */
export interface Change {
  readonly domains: readonly string[]
  readonly versions: { readonly [domain: string]: number }
  /**
   * The ids that moved, each with its place where that is known; absent when some ids are not known, or there are many.
   */
  readonly keys?: ReadonlyMap<string, Within>
}

/** Where bytes go: a connection, or a test. */
export interface Sink {
  /** Hands bytes over and tells when the peer's side has accepted them. */
  write(bytes: Buffer, accepted: () => void): void
  /** Hands the last bytes over and tells when they were accepted. */
  end(bytes: Buffer, accepted: () => void): void
  /** Closes at once. */
  cut(): void
}

/** What a watcher pulls from. */
export interface LiveSource {
  readonly head: number
  /** How a watcher begins: hello, what it missed after a position it may resume from, and the snapshots. */
  greeting(watch: Watch['watch'], from?: number): Buffer[]
  /** What a watcher at a position has not got, merged; undefined when that is too much, or no longer kept. */
  waiting(watch: Watch['watch'], position: number): readonly { seq: number; bytes: Buffer }[] | undefined
  /** The frame that says the watcher fell behind. */
  behind(position: number): Buffer
  now(): number
}

const PIECE = 64 * 1024
const STALLED = 30_000

/** One reader of the stream: a position and a connection. What waits for it is worked out when its peer takes more. */
export class LiveWatcher {
  readonly #source: LiveSource
  readonly #sink: Sink
  readonly #watch: Watch['watch']
  readonly #closed = Promise.withResolvers<void>()
  #first: Buffer[]
  #rest: Buffer | undefined
  #position: number
  #busy = false
  #since: number
  #over = false

  constructor(source: LiveSource, sink: Sink, watch: Watch['watch'], from?: number) {
    this.#source = source
    this.#sink = sink
    this.#watch = watch
    this.#first = source.greeting(watch, from)
    this.#position = source.head
    this.#since = source.now()
  }

  /** Resolves when the connection is closed, or all of its last words were accepted. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Sends what waits, unless the peer has yet to take what was sent before. */
  push(): void {
    if (this.#busy || this.#over) return
    const piece = this.#next()
    if (!piece) return
    this.#busy = true
    this.#since = this.#source.now()
    this.#sink.write(piece, () => {
      this.#busy = false
      this.#since = this.#source.now()
      this.push()
    })
  }

  /** Milliseconds since anything was sent and accepted; undefined while the peer has yet to accept. */
  get quiet(): number | undefined {
    return this.#busy || this.#over ? undefined : this.#source.now() - this.#since
  }

  /** Sends a frame that has no position in the order. */
  beat(bytes: Buffer): void {
    this.#first.push(bytes)
    this.push()
  }

  /** Closes a connection whose peer has accepted nothing for 30 s. */
  checkStalled(): void {
    if (this.#busy && this.#source.now() - this.#since >= STALLED) this.close()
  }

  /** Ends the stream with an event. A peer in the middle of a frame would take it for that frame's, so it is cut. */
  end(last: Buffer): void {
    if (this.#over) return
    if (this.#rest) return this.close()
    this.#over = true
    this.#sink.end(last, this.#closed.resolve)
  }

  close(): void {
    this.#over = true
    this.#sink.cut()
    this.#closed.resolve()
  }

  #next(): Buffer | undefined {
    const all = this.#rest ?? this.#gathered()
    this.#rest = all && all.length > PIECE ? all.subarray(PIECE) : undefined
    return all?.subarray(0, PIECE)
  }

  #gathered(): Buffer | undefined {
    const parts: Buffer[] = []
    let size = 0
    const add = (bytes: Buffer) => {
      parts.push(bytes)
      size += bytes.length
    }
    while (size < PIECE && this.#first.length) add(this.#first.shift()!)
    if (!this.#first.length && size < PIECE) {
      for (const { seq, bytes } of this.#waiting()) {
        if (size >= PIECE) break
        add(bytes)
        this.#position = seq
      }
    }
    return parts.length > 1 ? Buffer.concat(parts, size) : parts[0]
  }

  #waiting(): readonly { seq: number; bytes: Buffer }[] {
    const { head } = this.#source
    if (this.#position === head) return []
    const waiting = this.#source.waiting(this.#watch, this.#position)
    if (waiting?.length) return waiting
    const position = this.#position
    this.#position = head
    if (waiting) return waiting
    this.#first = this.#source.greeting(this.#watch)
    return [{ seq: head, bytes: this.#source.behind(position) }]
  }
}
