import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'
import { randomUUID } from 'node:crypto'
import { refuse, type Ok } from '../../../sdk/index.js'
import type { ElicitAnswer, ToolElicits } from '../contract.js'

const MOST_MESSAGE = 4000
/** The questions of one call; further ones are declined. */
const MOST_QUESTIONS = 20

/** A call of a tool while it runs, as far as questions of its server go. */
export interface AskingCall {
  /** Aborted when the call is over: nobody answers its questions then. */
  readonly over: AbortSignal
  /** Puts a question before the person. */
  ask(question: ToolElicits): void
  /** The question is answered, or not asked any more. */
  settled(): void
}

/** Questions of servers that wait for a person. */
export class Elicitations {
  readonly #asked = new WeakMap<AskingCall, number>()
  readonly #waiting = new Map<string, (answer: ElicitResult) => void>()

  /** Asks on behalf of a server, and answers what the person said; `cancel` when the signal says so. */
  async ask(call: AskingCall, params: ElicitRequest['params'], asked: AbortSignal): Promise<ElicitResult> {
    const nth = (this.#asked.get(call) ?? 0) + 1
    this.#asked.set(call, nth)
    if (!('requestedSchema' in params) || nth > MOST_QUESTIONS) return { action: 'decline' }
    const signal = AbortSignal.any([asked, call.over])
    const id = randomUUID()
    const { promise, resolve } = Promise.withResolvers<ElicitResult>()
    const cancel = () => resolve({ action: 'cancel' })
    signal.addEventListener('abort', cancel, { once: true })
    this.#waiting.set(id, resolve)
    const message = params.message.slice(0, MOST_MESSAGE).toWellFormed()
    call.ask({ kind: 'elicit', id, message, schema: { ...(params.requestedSchema as object) } })
    try {
      return signal.aborted ? { action: 'cancel' } : await promise
    } finally {
      this.#waiting.delete(id)
      signal.removeEventListener('abort', cancel)
      call.settled()
    }
  }

  /** Answers a question. 404: it is not asked any more. */
  answer({ id, action, content }: ElicitAnswer): Ok {
    const waiting = this.#waiting.get(id)
    if (!waiting) return refuse('not-found', 'this question is not asked any more')
    waiting({ action, ...(action === 'accept' && content && { content }) })
    return { ok: true }
  }
}
