import { signal, type Signal } from '@preact/signals-core'
import { Refusal } from '../../../../sdk/refusal.js'
import type { AttachData, TranscriptMessage } from '../../../agent/contract.js'
import { rowsOfMessage } from '../run/record-rows.js'
import type { RunRow } from '../run/row-kinds.js'
import type { RunStanding } from '../run/notes.js'
import { RunRows } from '../run/rows.js'
import { askDaemon } from './api.js'
import { pacedRender, type RenderClock } from './render-pace.js'

const PAGE = 50
/** A run with more frames is attached this number of frames before its end. */
const LONG = 5_000
const TAIL = 3_000

/** The parts of a conversation that a page shows. */
export interface FeedState {
  readonly rows: readonly RunRow[]
  readonly standing: RunStanding
  /** A run is attached. */
  readonly live: boolean
  /** The number of earlier rows of the record. */
  readonly earlier: number
  /** Frames of the live run that were left out. */
  readonly skipped: number
  readonly loaded: boolean
  readonly error?: unknown
}

/** The rows of one message of the record, and its run. */
interface RecordedRows {
  readonly run: string | undefined
  readonly rows: readonly RunRow[]
}

const recordedRows = (messages: readonly TranscriptMessage[]): RecordedRows[] =>
  messages.map(message => ({ run: message.run, rows: rowsOfMessage(message) }))

const CLOCK: RenderClock = {
  now: () => performance.now(),
  frame: then => void requestAnimationFrame(then),
  after: (ms, then) => void setTimeout(then, ms),
}

const NOTHING: RunStanding = { todos: [], commands: [], queued: 0 }

/** The record of a conversation, followed by its live run: rows change at most once per frame of the screen. */
export class RunFeed {
  readonly state: Signal<FeedState> = signal<FeedState>({
    ...{ rows: [], standing: NOTHING, live: false, earlier: 0, skipped: 0, loaded: false },
  })
  readonly #id: string
  #closed = false
  #record: readonly RecordedRows[] = []
  #recorded: readonly RunRow[] = []
  #first = 0
  #runs: RunRows[] = []
  #attached: string | undefined
  #whole = false
  #waiting: string | undefined
  #skipped = 0
  #reading = false
  readonly #plan = pacedRender(() => this.#publish(), CLOCK)
  #stream: AbortController | undefined

  constructor(id: string) {
    this.#id = id
  }

  /**
   * Reads the end of the record.
   *
   * @param recorded The newest run, if it has ended: its rows are in the record.
   */
  async open(recorded?: string): Promise<void> {
    // A running stream would add to rows that are no longer shown: it is attached again after the record is read.
    this.pause()
    this.#attached = undefined
    if (this.state.value.loaded) this.#publish({ loaded: false })
    try {
      const { messages, total } = await askDaemon('GET /agents/{id}/transcript', { id: this.#id, limit: PAGE })
      this.#record = recordedRows(messages)
      this.#first = messages[0]?.index ?? total
      this.#useRuns([])
      this.#skipped = 0
      this.#attached = recorded
      this.#publish({ loaded: true })
    } catch (error) {
      this.state.value = { ...this.state.value, error, loaded: true }
    }
  }

  /** The newest run that is shown, if its message says so. */
  get newest(): string | undefined {
    return this.#runs.at(-1)?.run ?? this.#record.at(-1)?.run
  }

  /** Reads the messages before those that are shown. */
  async earlier(): Promise<void> {
    if (this.#reading || this.#first === 0) return
    this.#reading = true
    try {
      const { messages } = await askDaemon('GET /agents/{id}/transcript', {
        ...{ id: this.#id, limit: PAGE, before: this.#first },
      })
      this.#record = [...recordedRows(messages), ...this.#record]
      this.#first = messages[0]?.index ?? 0
      this.#useRuns(this.#runs)
      this.#publish()
    } finally {
      this.#reading = false
    }
  }

  /** Attaches to a run, unless it is attached already; an interrupted stream resumes. */
  async follow(run: string): Promise<void> {
    if (this.#attached === run || this.#closed) return
    if (this.#stream) {
      // The stream of the previous run ends with its last frames.
      this.#waiting = run
      return
    }
    this.#attached = run
    const stream = new AbortController()
    this.#stream = stream
    let next: string | undefined
    try {
      next = await this.#read(run, this.#runs.find(one => one.run === run)?.last ?? 0, stream.signal)
    } catch (error) {
      if (stream.signal.aborted) return
      this.#attached = undefined
      if (!(error instanceof Refusal && error.reason === 'not-found')) this.state.value = { ...this.state.value, error }
    }
    if (stream.signal.aborted) return
    this.#stream = undefined
    this.#publish()
    const following = next ?? this.#waiting
    this.#waiting = undefined
    if (following !== undefined) await this.follow(following)
  }

  /** Ends the stream of a hidden tab; `follow` resumes it. */
  pause(): void {
    if (!this.#stream) return
    this.#stream.abort()
    this.#stream = undefined
    this.#attached = undefined
  }

  /** Attaches to the live run from its beginning. */
  async whole(): Promise<void> {
    this.#whole = true
    const run = this.#runs.at(-1)?.run
    this.pause()
    this.#attached = undefined
    this.#useRuns(this.#runs.slice(0, -1))
    this.#skipped = 0
    if (run !== undefined) await this.follow(run)
  }

  close(): void {
    this.#closed = true
    this.pause()
  }

  /** @returns The run that a waiting message starts now. */
  async #read(run: string, after: number, signal: AbortSignal): Promise<string | undefined> {
    let rows = this.#runs.find(one => one.run === run)
    const attempt = new AbortController()
    const stop = () => attempt.abort()
    signal.addEventListener('abort', stop)
    try {
      const events: AsyncIterable<AttachData> = await askDaemon(
        'POST /agent/attach',
        { conversationId: this.#id, run, ...(after > 0 && { after }) },
        attempt.signal,
      )
      for await (const event of events) {
        if (event.kind === 'end') return event.next
        if (event.kind === 'frame') {
          if (rows?.add(event.seq, event.event)) this.#plan()
          continue
        }
        if (after === 0 && !rows && !this.#whole && event.seq > LONG) {
          stop()
          return await this.#read(run, event.seq - TAIL, signal)
        }
        if (rows?.run === event.run) continue
        const { prompt, startedAt, attachments } = event
        rows = new RunRows(event.run, { text: prompt, sentAt: startedAt, ...(attachments && { attachments }) })
        rows.startAfter(after)
        this.#attached = event.run
        this.#skipped = after
        this.#useRuns([...this.#runs, rows])
        this.#plan()
      }
      return undefined
    } finally {
      signal.removeEventListener('abort', stop)
      stop()
    }
  }

  /** A run that ended while the record was read is in the record and attached: its rows are shown once. */
  #useRuns(runs: RunRows[]): void {
    const attached = new Set(runs.map(({ run }) => run))
    this.#runs = runs
    this.#recorded = this.#record.flatMap(({ run, rows }) => (run !== undefined && attached.has(run) ? [] : rows))
  }

  #publish(change: Partial<FeedState> = {}): void {
    if (this.#closed) return
    const { error: _, ...before } = this.state.value
    this.state.value = {
      ...before,
      rows: this.#runs.length ? [...this.#recorded, ...this.#runs.flatMap(({ rows }) => rows)] : this.#recorded,
      standing: this.#runs.at(-1)?.standing ?? NOTHING,
      live: this.#stream !== undefined,
      earlier: this.#first,
      skipped: this.#skipped,
      ...change,
    }
  }
}
