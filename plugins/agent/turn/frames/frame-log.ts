import type { Journals } from '../../../../sdk/index.js'
import { CARD_KINDS } from '../../cards/kinds.js'
import type { FrameEvent } from '../../contract.js'
import type { DeltaFrame, Frame } from './frames.js'
import type { FrameMask } from '../../secrets/frame-mask.js'
import { DELTA_BYTES, capped, pieces, thinned, weigh } from './frame-caps.js'
import { ignored } from '../../../../sdk/index.js'

const MERGE_MS = 40
const MOST = { frames: 100_000, bytes: 128 * 1024 * 1024 }
const BATCH = 256
const BACKLOG = 2_000
const RETRIES = [50, 500, 2_000]
const FLUSHED = new Set<string>([...CARD_KINDS, 'resolved', 'error', 'done'])

/** The journal of a run's frames. */
export const framesOf = (run: string): string => `frames/${run}`

interface Waiting {
  readonly frame: Frame
  readonly written: () => void
}

export interface FrameLogOptions {
  /** The number of frames in the journal, after a restart. */
  readonly seq?: number
  /** Settles when the run's entry is stored: no frame is written before. */
  readonly after?: Promise<unknown>
  /** The size of a run from which prose and tool output are dropped. */
  readonly most?: { readonly frames: number; readonly bytes: number }
  /** Replaces stored values in every frame before it is seen or written; left out: nothing is replaced. */
  readonly mask?: FrameMask
  /** Called with every frame of the log, in order, before it is written. */
  readonly onFrame: (frame: Frame) => void
  /** Called when the journal cannot be written: frames wait for `retry`. */
  readonly onBroken: (error: unknown) => void
}

/** Writes the frames of one run to its journal: in order, numbered, merged, within the limits. */
export class FrameLog {
  readonly #journals: Pick<Journals, 'append' | 'stat'>
  readonly #name: string
  readonly #options: FrameLogOptions
  readonly #first = Promise.withResolvers<void>()
  readonly #awaited = new Map<() => void, number>()
  #queue: Waiting[] = []
  #delta: { frame: DeltaFrame; timer: NodeJS.Timeout } | undefined
  #pumping: Promise<void> | undefined
  #seq: number
  #count: number
  #bytes = 0
  #thin = false
  #frozen = false
  #failure: unknown

  constructor(journals: Pick<Journals, 'append' | 'stat'>, run: string, options: FrameLogOptions) {
    this.#journals = journals
    this.#name = framesOf(run)
    this.#options = options
    this.#seq = options.seq ?? 0
    this.#count = this.#seq
    if (this.#seq) this.#first.resolve()
  }

  /** The number of frames in the journal. */
  get seq(): number {
    return this.#seq
  }

  /** Resolves once there is a journal to follow. */
  get opened(): Promise<void> {
    return this.#first.promise
  }

  /** Whether the journal cannot be written. */
  get broken(): boolean {
    return this.#failure !== undefined
  }

  /** Why the journal cannot be written. */
  get failure(): unknown {
    return this.#failure
  }

  /** Resolves when the journal has `seq` frames, or when the signal is aborted. */
  reached(seq: number, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (this.#seq >= seq || signal.aborted) return resolve()
      this.#awaited.set(resolve, seq)
      signal.addEventListener(
        'abort',
        () => {
          this.#awaited.delete(resolve)
          resolve()
        },
        { once: true },
      )
    })
  }

  /** Adds a frame; deltas are delayed briefly, to be merged with more of the same block. */
  push(frame: Frame): void {
    if (this.#frozen) return
    for (const masked of this.#options.mask?.push(frame) ?? [frame]) this.#push(masked)
  }

  #push(frame: Frame): void {
    if (frame.kind === 'delta') return this.#merge(frame)
    this.#release()
    this.#take(frame)
  }

  /** Adds a frame and resolves when it is in the journal. */
  write(frame: Frame): Promise<void> {
    this.push(frame)
    return this.settled()
  }

  /** Resolves when everything pushed so far is in the journal. */
  async settled(): Promise<void> {
    this.#release()
    await this.#pumping
  }

  /** Repeats a failed write. */
  retry(): void {
    this.#failure = undefined
    if (this.#queue.length) this.#start()
  }

  /** Resolves at once, or when the journal has caught up with a fast writer. */
  async room(): Promise<void> {
    if (this.#queue.length > BACKLOG) await this.#pumping
  }

  /** Stops writing: later frames are left to the next start of the daemon. */
  async freeze(): Promise<void> {
    for (const held of this.#options.mask?.end() ?? []) this.#push(held)
    this.#release()
    this.#frozen = true
    await this.#pumping
  }

  #merge(frame: DeltaFrame): void {
    const held = this.#delta
    if (
      held
      && held.frame.parentToolUseId === frame.parentToolUseId
      && held.frame.text.length + frame.text.length <= DELTA_BYTES
    ) {
      held.frame = { ...held.frame, text: held.frame.text + frame.text }
      return
    }
    this.#release()
    this.#delta = { frame, timer: setTimeout(() => this.#release(), MERGE_MS) }
  }

  #release(): void {
    const held = this.#delta
    if (!held) return
    clearTimeout(held.timer)
    this.#delta = undefined
    for (const text of pieces(held.frame.text, DELTA_BYTES)) this.#take({ ...held.frame, text })
  }

  #take(frame: Frame): void {
    let kept: Frame | undefined = capped(frame)
    if (this.#thin) kept = thinned(kept)
    if (!kept) return
    this.#keep(kept)
    const { frames, bytes } = this.#options.most ?? MOST
    if (this.#thin || (this.#count < frames && this.#bytes < bytes)) return
    this.#thin = true
    this.#keep({
      kind: 'notice',
      level: 'warning',
      text:
        'this turn reached the size of its log: prose, thinking and tool output are no longer recorded, the '
        + 'turn goes on',
      source: 'log',
    })
  }

  #keep(frame: Frame): void {
    this.#count++
    this.#bytes += weigh(frame) + 48
    this.#options.onFrame(frame)
    this.#queue.push({ frame, written: () => this.#first.resolve() })
    this.#start()
  }

  #start(): void {
    if (!this.broken) this.#pumping ??= this.#pump()
  }

  async #pump(): Promise<void> {
    // One more turn of the event loop, so that frames that arrive together are written together.
    await this.#options.after?.catch(ignored('the step before tells its own caller'))
    while (this.#queue.length && !this.broken) {
      const batch = this.#queue.slice(0, BATCH)
      const before = this.#seq
      const entries = batch.map(({ frame }, index): FrameEvent => ({
        kind: 'frame',
        seq: before + index + 1,
        event: frame,
      }))
      await this.#append(
        entries,
        batch.some(({ frame }) => FLUSHED.has(frame.kind)),
      )
      for (const { written } of this.#queue.splice(0, this.#seq - before)) written()
      for (const [resolve, seq] of this.#awaited) {
        if (seq > this.#seq) continue
        this.#awaited.delete(resolve)
        resolve()
      }
    }
    // In the same step: a frame pushed a moment later must begin anew.
    this.#pumping = undefined
  }

  async #append(entries: FrameEvent[], flush: boolean): Promise<void> {
    let rest = entries
    for (const pause of [...RETRIES, undefined]) {
      try {
        await this.#journals.append(this.#name, rest, { flush })
        this.#seq += rest.length
        return
      } catch (error) {
        const stat = await this.#journals.stat(this.#name).catch(() => undefined)
        // Frames that were written before the failure must not be written twice.
        const written = Math.min(rest.length, Math.max(0, (stat?.entries ?? 0) - this.#seq))
        this.#seq += written
        rest = rest.slice(written)
        if (!rest.length) return
        if (pause === undefined) return this.#break(error)
        await new Promise(resolve => setTimeout(resolve, pause))
      }
    }
  }

  #break(error: unknown): void {
    this.#failure = error ?? new Error('the journal cannot be written')
    this.#options.onBroken(error)
  }
}
