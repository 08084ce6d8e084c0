import { failpoint } from '../../../sdk/node/failpoint.js'
import { endSubagents } from '../subagents/end.js'
import type { ProviderChoice } from './run-entry.js'
import type { Turn } from './turn.js'

/** How an adapter run ends when its turn goes on elsewhere. */
export interface AdapterRunOptions {
  /** Its adapter asks for gaps; otherwise it is left as soon as no call of it is open. */
  readonly asks: boolean
  /** How long a call in hand may keep the turn from going on elsewhere. */
  readonly holdMs: number
}

/** What one adapter does in a turn: all of it, or the stretch up to where the turn goes on elsewhere. */
export class AdapterRun {
  /** Aborted when the adapter is to end: the turn stops, or waits no longer to go on elsewhere. */
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

  /** What closes a call of it that is cut short. */
  get excuse(): string {
    const { fields } = this.#turn.entry
    return cutShort(fields.moving ?? fields)
  }

  /** Aborted when the turn is to go on elsewhere. */
  get leaving(): AbortSignal {
    return this.#leaving.signal
  }

  /** The turn goes on elsewhere: nothing this adapter does counts any more. */
  get left(): boolean {
    return this.#left
  }

  /** Nothing this adapter does counts any more, or the next start of the daemon is to find all as it is. */
  get over(): boolean {
    return this.#left || this.#turn.frozen
  }

  /** The turn is to go on elsewhere, at the next place where nothing is in hand. */
  move(): void {
    this.#leaving.abort()
    this.#hold()
    this.rest()
  }

  /** Whether the adapter ends here, where it has nothing in hand; after a yes nothing it does counts. */
  gap(): boolean {
    if (this.leaving.aborted) this.#left = true
    return this.#left
  }

  /** Leaves an adapter that never asks, when it has no call open. */
  rest(): void {
    const { openTools, helpers } = this.#turn.record
    if (this.leaving.aborted && !this.#options.asks && !this.#parked && !openTools.length && !helpers.open.length)
      this.cut()
  }

  /** Ends the adapter where it is. */
  cut(): void {
    this.#left = true
    this.#cut.abort()
  }

  /** A person takes the time they need: no call is held against the adapter meanwhile. */
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

  /** The adapter has ended: what it left open is closed. */
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

/** Moves the turn to its next provider choice: the frame is in the log, then the entry says so. */
export const applySwitch = async (turn: Turn): Promise<void> => {
  const { entry, log, record, words } = turn
  if (!entry.fields.moving) return
  turn.switching()
  for (let moving = entry.fields.moving; moving; moving = entry.fields.moving) {
    const { nth, kept, ...to } = moving
    // With its session kept, an adapter goes on with a call that a restart left open.
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
