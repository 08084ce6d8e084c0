import { failpoint } from '../../../sdk/node/failpoint.js'
import { endSubagents } from '../subagents/end.js'
import type { ProviderChoice } from './run-entry.js'
import type { Turn } from './turn.js'

/** How an adapter run ends when its turn moves to another adapter. */
export interface AdapterRunOptions {
  /** Its adapter calls `gap`; otherwise the run ends as soon as no call is open. */
  readonly asks: boolean
  /** How long an open call may delay the move. */
  readonly holdMs: number
}

/** The work of one adapter in a turn: all of it, or the part before a move. */
export class AdapterRun {
  /** Aborted when the adapter must end: the turn stops, or no longer waits to move. */
  readonly signal: AbortSignal
  readonly #turn: Turn
  readonly #options: AdapterRunOptions
  readonly #cut = new AbortController()
  readonly #leaving = new AbortController()
  #left = false
  #parked = 0
  #timer: NodeJS.Timeout | undefined

  constructor(turn: Turn, options: AdapterRunOptions) {
    this.#turn = turn
    this.#options = options
    this.signal = AbortSignal.any([turn.signal, this.#cut.signal])
  }

  /** The text that closes an interrupted call. */
  get excuse(): string {
    const { fields } = this.#turn.entry
    return cutShort(fields.moving ?? fields)
  }

  /** Aborted when the turn should move. */
  get leaving(): AbortSignal {
    return this.#leaving.signal
  }

  /** Whether the turn has moved: everything the adapter does from now on is ignored. */
  get left(): boolean {
    return this.#left
  }

  /** Whether everything the adapter does is ignored, because the turn moved or is frozen. */
  get over(): boolean {
    return this.#left || this.#turn.frozen
  }

  /** Requests a move at the next gap. */
  move(): void {
    this.#leaving.abort()
    this.#hold()
    this.rest()
  }

  /** Called at a gap: whether the adapter ends here; if so, everything it does from now on is ignored. */
  gap(): boolean {
    if (this.leaving.aborted) this.#left = true
    return this.#left
  }

  /** Moves on from an adapter that never calls `gap`, when no call is open. */
  rest(): void {
    const { openTools, helpers } = this.#turn.record
    if (this.leaving.aborted && !this.#options.asks && !this.#parked && !openTools.length && !helpers.open.length)
      this.cut()
  }

  /** Ends the adapter at once. */
  cut(): void {
    this.#left = true
    this.#cut.abort()
  }

  /** Waits for a person; the time limit for open calls is suspended meanwhile. */
  async parked<T>(work: Promise<T>): Promise<T> {
    this.#parked++
    this.#hold()
    try {
      return await work
    } finally {
      this.#parked--
      this.#hold()
    }
  }

  /** Called when the adapter has ended: cancels its timers. */
  end(): void {
    clearTimeout(this.#timer)
    if (!this.#left || this.#turn.frozen) return
    endSubagents(this.#turn, false)
    for (const { id } of this.#turn.record.openTools) this.#turn.closeTool(id, this.excuse)
  }

  #hold(): void {
    clearTimeout(this.#timer)
    if (!this.leaving.aborted || this.#left || this.#parked) return
    this.#timer = setTimeout(() => this.cut(), this.#options.holdMs)
  }
}

const cutShort = ({ provider, model }: Pick<ProviderChoice, 'provider' | 'model'>): string =>
  `cut short: it kept the turn from going on with model ${model} of ${provider}`

/** Moves the turn to its next provider choice: writes the frame to the log, then the entry. */
export const applySwitch = async (turn: Turn): Promise<void> => {
  const { entry, log, record, words } = turn
  if (!entry.fields.moving) return
  turn.switching()
  for (let moving = entry.fields.moving; moving; moving = entry.fields.moving) {
    const { nth, kept, ...to } = moving
    // With its session an adapter continues a call that a restart left open.
    if (kept === 'record') for (const { id } of record.openTools) turn.closeTool(id, cutShort(to))
    // A restart may find the frame written and the provider choice not yet changed.
    if (record.switches < nth) {
      if (kept === 'record' && record.speaking) log.push({ kind: 'text_end' })
      log.push({ kind: 'switched', provider: to.provider, harness: to.harness, model: to.model, kept })
    }
    await log.settled()
    failpoint('agent.move.shown')
    if (turn.frozen) return
    if (entry.fields.moving !== moving) continue
    words.offerAgain(entry.fields.unheard ?? [])
    const answered = entry.fields.answered?.filter(({ holds }) => holds)
    const anew = kept === 'record' && { state: undefined, stateSeq: undefined, unheard: undefined, answered }
    await entry.change({ effort: undefined, thinking: undefined, fast: undefined, ...to, ...anew, moving: undefined })
    failpoint('agent.move.seated')
  }
  turn.switched()
}
