import { refuse, type Context } from '../../../sdk/index.js'
import { Failures } from '../../../sdk/node/access/failures.js'
import { digest, type FirstAnswers } from '../../../sdk/node/access/first-answers.js'
import type { OwnTokens } from '../../../sdk/node/access/own-tokens.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { Automation, AutomationsCalls, WebhookFired } from '../contract.js'
import type { Input } from '../../../sdk/index.js'
import type { Definition } from '../definitions/definitions.js'
import type { Fires } from '../fires/fires.js'
import type { FireOutcome, LiveFire } from '../fires/live-fire.js'
import type { HeldWakes } from '../fires/held-wakes.js'

/** The dependencies of webhooks. */
export interface WebhooksDeps {
  readonly now: () => number
  readonly tokens: OwnTokens
  readonly answers: FirstAnswers<WebhookFired>
  readonly fires: Fires
  readonly held: HeldWakes
  readonly definition: (id: string) => Promise<Definition | undefined>
}

/** The first answer to a call, and the fire that it began. */
interface Begun {
  readonly answer: WebhookFired
  readonly live?: LiveFire
}

type Call = Input<AutomationsCalls, 'POST /automations/{id}/fire'>

const MINUTE = 60_000
const MOST_CALLS = 60
const MOST_WRONG = 10
const MOST_KEY = 128

/** Calls of webhooks: each with its own token. */
export class Webhooks {
  readonly #deps: WebhooksDeps
  readonly #wrong: Failures
  readonly #calls: Failures
  readonly #turns = new KeyedMutex()

  constructor(deps: WebhooksDeps) {
    this.#deps = deps
    this.#wrong = new Failures(MOST_WRONG, MINUTE, deps.now)
    this.#calls = new Failures(MOST_CALLS, MINUTE, deps.now)
  }

  async fire(call: Call, { http, signal }: Pick<Context, 'http' | 'signal'>): Promise<WebhookFired> {
    const { address = 'unknown', bearer, idempotencyKey } = http ?? {}
    const automation = await this.#admitted(call, address, bearer)
    if (idempotencyKey === undefined) return this.#waited(call, await this.#fired(automation, call, address), signal)
    if (idempotencyKey.length < 1 || idempotencyKey.length > MOST_KEY)
      refuse('invalid', `idempotency-key: expected 1 to ${MOST_KEY} characters, found ${idempotencyKey.length}`)
    const once = digest('webhook', call.id, idempotencyKey)
    const first = await this.#turns.with(once, () => this.#first(automation, call, address, once))
    const answer = await this.#waited(call, first, signal)
    if (answer.step !== undefined && answer.step !== 'timeout') await this.#deps.answers.keep(once, answer)
    return answer
  }

  /** The automation, if the sender has its token. */
  async #admitted({ id, token }: Call, address: string, bearer: string | undefined): Promise<Automation> {
    const { tokens, definition } = this.#deps
    const given = token ?? bearer ?? ''
    const right = tokens.holds(id, given)
    // The right token is never refused: many senders may share an address with one that guesses.
    const wait = right ? undefined : this.#wrong.wait(address)
    if (wait !== undefined)
      refuse('too-many', `${MOST_WRONG} wrong tokens within a minute: try again later`, { retryAfter: wait })
    const found = await definition(id)
    const isWebhook = found?.automation.trigger.kind === 'event' && tokens.of(id) !== undefined
    if (!isWebhook || !right) this.#wrong.add(address)
    if (!isWebhook) return refuse('not-found', 'there is no webhook of this id')
    if (!right)
      return refuse('unauthenticated', given ? 'the token is wrong' : 'no token: send it in the query field token')
    if (!found.accepted || !found.automation.enabled) return refuse('conflict', `the automation ${id} is switched off`)
    const late = this.#calls.wait(id)
    if (late !== undefined)
      return refuse('too-many', `${MOST_CALLS} calls within a minute: try again later`, { retryAfter: late })
    this.#calls.add(id)
    await tokens.used(id, address)
    return found.automation
  }

  /** The first answer to a key; after a crash that of what its fire became. */
  async #first(automation: Automation, call: Call, address: string, once: string): Promise<Begun> {
    const { answers, fires, held } = this.#deps
    const known = answers.of(once)
    const live = known?.run === undefined ? undefined : fires.live(known.run)
    if (known) return { answer: known, ...(live && { live }) }
    const begun = this.#left(once, held.once(once)?.id) ?? (await this.#fired(automation, call, address, once))
    await answers.keep(once, begun.answer)
    return begun
  }

  /** What a crash left of the first call. */
  #left(once: string, held: string | undefined): Begun | undefined {
    if (held !== undefined) return { answer: { ok: true, held } }
    const live = this.#deps.fires.once(once)
    if (!live) return undefined
    const { conversationId, run } = live.fire
    return { answer: { ok: true, conversationId, run }, live }
  }

  async #fired(automation: Automation, { body }: Call, from: string, once?: string): Promise<Begun> {
    const { id } = automation
    const origin = { automationId: id, provider: 'webhook' }
    const order = { cause: 'webhook', by: from, foreign: `the webhook ${id}`, origin } as const
    const live = await this.#deps.fires.accept(
      automation,
      { ...order, ...(body && { payload: body }), ...(once !== undefined && { once }) },
      'queue',
    )
    return { answer: answerOf(await live!.outcome.promise), live: live! }
  }

  /** Waits for the end of the turn, where the sender does. */
  async #waited({ wait }: Call, { answer, live }: Begun, signal: AbortSignal): Promise<WebhookFired> {
    const { run, step } = answer
    if (wait === undefined || run === undefined || step !== undefined || !live) return answer
    return { ...answer, ...(await endWithin(live, wait * 1000, signal)) }
  }
}

const answerOf = (outcome: FireOutcome): WebhookFired => {
  switch (outcome.kind) {
    case 'started':
      return { ok: true, conversationId: outcome.conversationId, run: outcome.run }
    case 'held':
      return { ok: true, held: outcome.id }
    case 'skipped':
      return { ok: true, skipped: outcome.detail }
  }
}

/** How the turn of a fire ends within a time. */
const endWithin = async (
  live: LiveFire,
  ms: number,
  signal: AbortSignal,
): Promise<Pick<WebhookFired, 'step' | 'report'>> => {
  const late = Promise.withResolvers<'timeout'>()
  const give = () => late.resolve('timeout')
  const timer = setTimeout(give, ms)
  signal.addEventListener('abort', give, { once: true })
  try {
    const end = await Promise.race([live.end.promise, late.promise])
    if (end === 'timeout' || end === 'parked') return { step: end }
    const { report, failure = report } = end
    if (end.end === 'completed') return { step: 'completed', ...(report !== undefined && { report }) }
    return { step: 'failed', ...(failure !== undefined && { report: failure }) }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', give)
  }
}
