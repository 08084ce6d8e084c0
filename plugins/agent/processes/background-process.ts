import { StringDecoder } from 'node:string_decoder'
import { setTimeout as delay } from 'node:timers/promises'
import type { pace } from '../../../sdk/node/concurrency/pace.js'
import { MaskedStream, type Masker } from '../../../sdk/node/access/masker.js'
import { ignored } from '../../../sdk/index.js'
import { PipedProcess } from '../../../sdk/node/programs/piped-process.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'

/** The most characters kept of an output: its end. */
const MOST_KEPT = 256 * 1024
/** Output that comes so soon after other output is read with it. */
const TOGETHER_MS = 150

/** Where a command in the background belongs, and what to know of it. */
export interface ProcessFacts {
  /** Such as `sh-1`. */
  readonly id: string
  /** The command as people and models see it. */
  readonly command: string
  readonly startedAt: number
}

/** How its output is read. */
export interface OutputReading {
  /** The values that are stored now, also those that it did not know when it began. */
  readonly masker: () => Masker
  readonly paced: ReturnType<typeof pace>
}

/** A part of an output: positions count its characters from the beginning. */
export interface OutputPart {
  readonly text: string
  readonly from: number
  readonly to: number
}

/** A command in the background: the end of its output is kept, its values masked. */
export class BackgroundProcess {
  readonly facts: ProcessFacts
  readonly #process: PipedProcess
  readonly #masked: MaskedStream
  readonly #paced: OutputReading['paced']
  #kept = ''
  #written = 0
  #seen = 0
  #why: string | undefined
  #end: { readonly how: string; readonly exit: number | undefined } | undefined
  #news = Promise.withResolvers<void>()
  /** Resolves when it has ended and all its output is kept. */
  readonly over: Promise<void>

  constructor(facts: ProcessFacts, command: Walled, { masker, paced }: OutputReading, timeoutMs?: number) {
    this.facts = facts
    this.#masked = new MaskedStream({ mask: text => masker().mask(text), settled: text => masker().settled(text) })
    this.#paced = paced
    this.#process = new PipedProcess(command)
    const read = this.#read()
    const late =
      timeoutMs === undefined ? undefined : setTimeout(() => void this.end(`after ${timeoutMs} ms`), timeoutMs).unref()
    this.over = this.#process.ended.then(async said => {
      clearTimeout(late)
      await read
      this.#add(this.#masked.end())
      const over = command.limits?.over
      const exit = /^ended with exit code (\d+)$/.exec(said)?.[1]
      const how = over ?? (this.#why === undefined ? said : `was ended ${this.#why}`)
      this.#end = { how, exit: this.#why === undefined && exit !== undefined ? Number(exit) : undefined }
      this.#news.resolve()
    })
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** How it ended, as the end of a sentence; undefined: it runs. */
  get ended(): { readonly how: string; readonly exit: number | undefined } | undefined {
    return this.#end
  }

  /** The end of its output. */
  get kept(): string {
    return this.#kept
  }

  /** Forgets its output. */
  drop(): void {
    this.#kept = ''
  }

  /** The position to begin at; left out: where the last look ended. */
  place(since = this.#seen): number {
    return Math.min(since, this.#written)
  }

  /** What it wrote since a position, or since the last look, as far as that is still kept: this is a look. */
  output(since?: number): OutputPart {
    const part = this.part(this.place(since))
    this.#seen = this.#written
    return part
  }

  /** What it wrote since a position, as far as that is still kept. */
  part(since: number): OutputPart {
    const from = Math.min(Math.max(since, this.#written - this.#kept.length), this.#written)
    return { text: this.#kept.slice(this.#kept.length - (this.#written - from)), from, to: this.#written }
  }

  /** Resolves when it wrote something after a position, or since the last look, or ended; at the latest after `ms`. */
  async news(ms: number, signal: AbortSignal, since?: number): Promise<void> {
    const after = this.place(since)
    const late = new AbortController()
    const stop = AbortSignal.any([signal, late.signal])
    const over = delay(ms, undefined, { signal: stop, ref: false }).catch(ignored('nobody waits any longer'))
    let waits = true
    void over.then(() => (waits = false))
    while (waits && !this.#end && this.#written <= after) await Promise.race([this.#news.promise, over])
    late.abort()
    // Its end, and more of the same output, follow soon.
    const soon = delay(TOGETHER_MS, undefined, { signal, ref: false }).catch(ignored('thrown next'))
    await Promise.race([this.over, soon])
    signal.throwIfAborted()
  }

  /** Writes to its input; an empty text ends that. Returns why it takes none. */
  write(text: string): string | undefined {
    const { input } = this.#process
    if (this.#end) return this.#end.how
    if (input.writableEnded || input.destroyed) return 'takes no more input'
    if (input.writableNeedDrain) return 'has not read yet what was written to it before'
    if (text === '') input.end()
    else input.write(text)
    return undefined
  }

  /** Ends it with all that it started; `why` completes "was ended". */
  async end(why: string): Promise<void> {
    if (!this.#end) this.#why ??= why
    await this.#process.end('at once')
    await this.over
  }

  async #read(): Promise<void> {
    const decoder = new StringDecoder('utf8')
    try {
      for await (const piece of this.#process.output as AsyncIterable<Buffer>) {
        this.#add(this.#masked.push(decoder.write(piece)))
        await this.#paced(piece.length)
      }
    } catch {
      // Its output was discarded when it was ended.
    }
    this.#add(this.#masked.push(decoder.end()))
  }

  #add(text: string): void {
    if (text === '') return
    this.#kept += text
    this.#written += text.length
    if (this.#kept.length > 2 * MOST_KEPT) this.#kept = this.#kept.slice(-MOST_KEPT)
    this.#news.resolve()
    this.#news = Promise.withResolvers()
  }
}
