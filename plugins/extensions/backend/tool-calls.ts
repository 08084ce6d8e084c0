import { randomUUID } from 'node:crypto'
import { refuse } from '../../../sdk/index.js'
import type { PaidAnswer, PaymentRequest, ServiceStep, ServiceTerms } from '../../../sdk/node/extension/protocol.js'
import type { ExtensionToolEvent } from './contract.js'

/** How many offers one call may make. */
const MOST_OFFERS = 20
/** How many steps one call may show: each stays in the conversation. */
const MOST_STEPS = 500
const OVER: PaidAnswer = { ok: false, text: 'the call is over' }
const MOST_DATA = 256 * 1024

/** A call that runs, and who hears of it. */
interface RunningTool {
  readonly id: string
  readonly put: (event: ExtensionToolEvent) => void
  /** It waits for a person, or goes on: its time stands still meanwhile. */
  readonly waits: (on: boolean) => void
  offers: number
  payments: number
  steps: number
  readonly allowed: Set<string>
}

/** The tool calls that run, by number. */
export class RunningToolCalls {
  readonly #running = new Map<number, RunningTool>()
  readonly #open = new Map<string, { readonly call: number; readonly answer: (approve: boolean) => void }>()
  readonly #paying = new Map<string, { readonly call: number; readonly answer: (paid: PaidAnswer) => void }>()
  #next = 0

  begin(id: string, put: RunningTool['put'], waits: RunningTool['waits']): number {
    this.#running.set(++this.#next, { id, put, waits, offers: 0, payments: 0, steps: 0, allowed: new Set() })
    return this.#next
  }

  end(call: number): void {
    this.#running.delete(call)
    for (const [offer, open] of this.#open) if (open.call === call) this.answer(offer, false)
    for (const [id, open] of this.#paying) if (open.call === call) this.answerPayment(id, OVER)
  }

  /** Progress of a call, if this extension runs it. */
  progress(id: string, call: number, message: string): void {
    const running = this.#running.get(call)
    if (running?.id === id) running.put({ kind: 'progress', message })
  }

  /** Offers a run of a service; the id of the offer once a person allowed it. */
  async offer({ id }: { readonly id: string }, call: number, offer: ServiceTerms): Promise<string | undefined> {
    const running = this.#own(id, call)
    if (++running.offers > MOST_OFFERS) refuse('too-many', `one call makes at most ${MOST_OFFERS} offers`)
    const offered = randomUUID()
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#open.set(offered, { call, answer: resolve })
    running.waits(true)
    running.put({ kind: 'offer', id: offered, publisher: id, offer })
    const approved = await promise
    this.#goesOn(call)
    if (!approved) return undefined
    running.allowed.add(offered)
    return offered
  }

  /** A person's answer to an offer. */
  answer(offer: string, approve: boolean): void {
    this.#open.get(offer)?.answer(approve)
    this.#open.delete(offer)
  }

  /** Asks the turn to pay for a request; resolves with what came of it. */
  async pay({ id }: { readonly id: string }, call: number, payment: PaymentRequest): Promise<PaidAnswer> {
    const running = this.#own(id, call)
    if (++running.payments > MOST_OFFERS) refuse('too-many', `one call makes at most ${MOST_OFFERS} payments`)
    const asked = randomUUID()
    const { promise, resolve } = Promise.withResolvers<PaidAnswer>()
    this.#paying.set(asked, { call, answer: resolve })
    running.waits(true)
    running.put({ kind: 'pay', id: asked, nth: running.payments, payment })
    const answer = await promise
    this.#goesOn(call)
    return answer
  }

  /** What came of a payment. */
  answerPayment(id: string, answer: PaidAnswer): void {
    this.#paying.get(id)?.answer(answer)
    this.#paying.delete(id)
  }

  #own(id: string, call: number): RunningTool {
    const running = this.#running.get(call)
    return running?.id === id ? running : refuse('not-found', `the extension runs no call ${call} of a tool`)
  }

  /** The time of a call goes on when nothing of it waits for a person any more. */
  #goesOn(call: number): void {
    const waiting = [...this.#open.values(), ...this.#paying.values()]
    if (waiting.every(open => open.call !== call)) this.#running.get(call)?.waits(false)
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
