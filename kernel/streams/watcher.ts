import type { Within } from './burst.js'
import type { Watch } from '../../sdk/contract.js'
import type { FrameForms } from '../../sdk/kernel.js'

/** The bytes of one frame, shared by all its receivers. */
export interface Wire {
  /** With its id. */
  readonly whole: Buffer
  /** Only its data line, for watchers that receive it under another id. */
  readonly data: Buffer
}

/** One published frame, serialised once for each form. */
export interface Entry {
  readonly seq: number
  readonly at: number
  readonly kind: string
  readonly people: Wire
  /** The form for control tokens; absent: they do not receive it. */
  readonly tokens?: Wire
  /** Source of the forms for people limited to areas; absent: they do not receive it. */
  readonly source?: { readonly data: object; readonly limited: FrameForms }
  /** Cached bytes for each reach; undefined: that reach does not receive it. */
  readonly limited: Map<string, Wire | undefined>
  /** Only for watchers of this mode. */
  readonly mode?: string
  readonly change?: Change
}

/** The content of a frame `runtimeChanged`. */
export interface Change {
  readonly domains: readonly string[]
  readonly versions: { readonly [domain: string]: number }
  /** The changed ids, each with its paths if known; absent when some ids are not known or there are more than 20. */
  readonly keys?: ReadonlyMap<string, Within>
}

/** Receives the bytes of a watcher: a connection, or a test. */
export interface Sink {
  /** Writes bytes; calls `accepted` when the operating system has taken them. */
  write(bytes: Buffer, accepted: () => void): void
  /** Writes the last bytes and ends; calls `accepted` as `write` does. */
  end(bytes: Buffer, accepted: () => void): void
  /** Closes at once. */
  cut(): void
}

/** What a watcher reads from. */
export interface LiveSource {
  readonly head: number
  /** The first frames of a watcher: hello, the frames after the position it resumes from, and the snapshots. */
  greeting(watch: Watch['watch'], from?: number): Buffer[]
  /** The frames after a position, with changes merged; undefined when there are too many, or some were evicted. */
  waiting(watch: Watch['watch'], position: number): readonly { seq: number; bytes: Buffer }[] | undefined
  /** The frame that tells a watcher to reload, because it is too far behind. */
  behind(position: number): Buffer
  now(): number
}

const PIECE = 64 * 1024
const STALLED = 30_000

/** One reader of the stream: a position and a connection. Gathers frames only when the connection accepts more. */
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
  #ended = false

  constructor(source: LiveSource, sink: Sink, watch: Watch['watch'], from?: number) {
    this.#source = source
    this.#sink = sink
    this.#watch = watch
    this.#first = source.greeting(watch, from)
    this.#position = source.head
    this.#since = source.now()
  }

  /** Resolves when the connection is closed, or the last bytes were accepted. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Sends waiting frames, unless the last write is not yet accepted. */
  push(): void {
    if (this.#busy || this.#ended) return
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

  /** Milliseconds since the last accepted write; undefined while a write is pending. */
  get quiet(): number | undefined {
    return this.#busy || this.#ended ? undefined : this.#source.now() - this.#since
  }

  /** Sends a frame without a position, such as a heartbeat. */
  beat(bytes: Buffer): void {
    this.#first.push(bytes)
    this.push()
  }

  /** Closes a connection that has accepted nothing for 30 s. */
  checkStalled(): void {
    if (this.#busy && this.#source.now() - this.#since >= STALLED) this.close()
  }

  /**
   * Ends the stream with an event. If a frame is only partly written, cuts the connection instead, since the event
   * would corrupt that frame.
   */
  end(last: Buffer): void {
    if (this.#ended) return
    if (this.#rest) return this.close()
    this.#ended = true
    this.#sink.end(last, this.#closed.resolve)
  }

  close(): void {
    this.#ended = true
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
