import { randomUUID } from 'node:crypto'
import { refuse } from '../../../sdk/index.js'
import type { ServiceStep, ServiceTerms } from '../../../sdk/node/extension/protocol.js'
import type { ExtensionToolEvent } from './contract.js'

/** How many offers one call may make. */
const MOST_OFFERS = 20
/** How many steps one call may show: each stays in the conversation. */
const MOST_STEPS = 500
const MOST_DATA = 256 * 1024

/** A call that runs, and who hears of it. */
interface RunningTool {
  readonly id: string
  readonly put: (event: ExtensionToolEvent) => void
  /** It waits for a person, or goes on: its time stands still meanwhile. */
  readonly waits: (on: boolean) => void
  offers: number
  steps: number
  readonly allowed: Set<string>
}

/** The tool calls that run, by number. */
export class RunningToolCalls {
  readonly #running = new Map<number, RunningTool>()
  readonly #open = new Map<string, { readonly call: number; readonly answer: (approve: boolean) => void }>()
  #next = 0

  begin(id: string, put: RunningTool['put'], waits: RunningTool['waits']): number {
    this.#running.set(++this.#next, { id, put, waits, offers: 0, steps: 0, allowed: new Set() })
    return this.#next
  }

  end(call: number): void {
    this.#running.delete(call)
    for (const [offer, open] of this.#open) if (open.call === call) this.answer(offer, false)
  }

  /** Progress of a call, if this extension runs it. */
  progress(id: string, call: number, message: string): void {
    const running = this.#running.get(call)
    if (running?.id === id) running.put({ kind: 'progress', message })
  }

  /** Offers a run of a service; the id of the offer once a person allowed it. */
  async offer({ id }: { readonly id: string }, call: number, offer: ServiceTerms): Promise<string | undefined> {
    const running = this.#running.get(call)
    if (running?.id !== id) return refuse('not-found', `the extension runs no call ${call} of a tool`)
    if (++running.offers > MOST_OFFERS) refuse('too-many', `one call makes at most ${MOST_OFFERS} offers`)
    const offered = randomUUID()
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#open.set(offered, { call, answer: resolve })
    running.waits(true)
    running.put({ kind: 'offer', id: offered, publisher: id, offer })
    const approved = await promise
    if (this.#running.has(call) && [...this.#open.values()].every(open => open.call !== call)) running.waits(false)
    if (!approved) return undefined
    running.allowed.add(offered)
    return offered
  }

  /** A person's answer to an offer. */
  answer(offer: string, approve: boolean): void {
    this.#open.get(offer)?.answer(approve)
    this.#open.delete(offer)
  }

  /** A step of a run that a person allowed; none follows its receipt. */
  served(id: string, call: number, offer: string, event: ServiceStep): void {
    const running = this.#running.get(call)
    if (running?.id !== id || !running.allowed.has(offer)) return
    if (event.event === 'receipt') running.allowed.delete(offer)
    else if (++running.steps > MOST_STEPS) refuse('too-many', `one call shows at most ${MOST_STEPS} steps`)
    else if (event.event === 'result' && (JSON.stringify(event.data) ?? '').length > MOST_DATA)
      refuse('too-large', `data: expected at most ${MOST_DATA} characters as JSON`)
    running.put({ kind: 'served', id: offer, event })
  }
}
