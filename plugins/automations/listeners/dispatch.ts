import type { Host, Store } from '../../../sdk/index.js'
import { digest, type FirstAnswers } from '../../../sdk/node/access/first-answers.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { record } from '../../../sdk/node/record/record.js'
import type { Automation, DispatchFrame, ListenerMessage, ListenerTrigger, WebhookFired } from '../contract.js'
import type { StoredDefinitions } from '../definitions/definitions.js'
import type { Fire } from '../fires/fire.js'
import type { Fires } from '../fires/fires.js'
import type { HeldWakes } from '../fires/held-wakes.js'
import type { LiveFire, TurnEnd } from '../fires/live-fire.js'
import { WEBCHAT } from '../webchat/strangers.js'

interface Thread {
  readonly conversationId: string
  readonly turns: number
}

/** The dependencies of messages from outside. */
export interface DispatchDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly store: Pick<Store, 'set' | 'delete'>
  readonly definitions: () => Promise<Pick<StoredDefinitions, 'all'>>
  readonly fires: Fires
  readonly held: HeldWakes
  readonly answers: FirstAnswers<WebhookFired>
}

const KEY = 'thread/'
const MOST_TURNS = 200
const MOST_PAYLOAD = 64_000

interface Begun {
  readonly id: string
  readonly live: LiveFire
}

/** Fires listener automations for messages from outside. */
export class Dispatch {
  readonly #deps: DispatchDeps
  readonly #threads = new Map<string, Thread>()
  readonly #turns = new KeyedMutex()
  /** Fires whose words are streamed to their sender. */
  readonly #streamed = new Set<string>()

  constructor(deps: DispatchDeps) {
    this.#deps = deps
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.filter(([key]) => key.startsWith(KEY))
    for (const [key, value] of found) this.#threads.set(key.slice(KEY.length), value as Thread)
  }

  /** Fires what a message matches; the replies are delivered when their turns have ended. */
  async dispatch(message: ListenerMessage): Promise<string[]> {
    return (await this.#begun(message)).matched
  }

  /** Fires what a message matches, and streams what the agents say. */
  async *stream(message: ListenerMessage, signal: AbortSignal): AsyncGenerator<DispatchFrame, void> {
    const { matched, begun } = await this.#begun(message, true)
    yield { matched }
    const frames: DispatchFrame[] = []
    let wake = Promise.withResolvers<void>()
    let open = begun.length
    const push = (frame: DispatchFrame) => {
      frames.push(frame)
      wake.resolve()
    }
    for (const one of begun)
      void this.#followed(one, push, signal).finally(() => {
        open--
        push({ automationId: one.id, end: true })
      })
    while (open > 0 || frames.length > 0) {
      yield* frames.splice(0)
      if (open === 0 && frames.length === 0) return
      await wake.promise
      wake = Promise.withResolvers<void>()
    }
  }

  /** The turn of a fire has ended: its reply goes back where the message came from. */
  replied({ id, cause, origin, visit }: Fire, { end, report, failure }: TurnEnd): void {
    const { host } = this.#deps
    const streams = this.#streamed.delete(id)
    const text = end === 'completed' ? report : failure
    if (streams || visit || !origin?.channelId || origin.provider === 'webhook' || cause === 'hand' || !text) return
    const { provider, channelId } = origin
    const deliver = async () => {
      if (await host.serves('extensions.deliver')) await host.call('extensions.deliver', { provider, channelId, text })
    }
    void deliver().catch(error => host.log.warn('delivering a reply failed', { provider, error: String(error) }))
  }

  /** Forgets the conversations of an automation. */
  async forget(id: string): Promise<void> {
    for (const key of [...this.#threads.keys()].filter(each => each.startsWith(`${id}/`))) {
      this.#threads.delete(key)
      await this.#deps.store.delete(KEY + key)
    }
  }

  async #begun(message: ListenerMessage, streams = false): Promise<{ matched: string[]; begun: Begun[] }> {
    const { host, definitions } = this.#deps
    const { provider, channelId, author, content, type } = message
    const { all } = await definitions()
    const matching = [...all.values()].filter(
      ({ automation, accepted }) => accepted && automation.enabled && matches(automation.trigger, message),
    )
    const matched = matching.map(({ automation }) => automation.id)
    await record(host, {
      ...{ type: 'message.received', direction: 'in', audience: 'viewer', outcome: 'ok' },
      ...{ provider, channelId, author: author.name, content, source: provider, automationIds: matched },
      extra: { type },
    })
    const begun: Begun[] = []
    for (const { automation } of matching) {
      const live = await this.#fired(automation, message)
      if (!live) continue
      begun.push({ id: automation.id, live })
      if (streams) this.#streamed.add(live.fire.id)
    }
    return { matched, begun }
  }

  /** Fires one automation, in the conversation of its channel and thread; undefined: the message is known. */
  #fired(automation: Automation, message: ListenerMessage): Promise<LiveFire | undefined> {
    const { fires, held, answers, store } = this.#deps
    const { provider, channelId, author, content, extra } = message
    const { id } = automation
    const key = `${id}/${digest(provider, channelId, String(extra?.threadId ?? ''))}`
    const once = digest('message', id, provider, channelId, message.id)
    return this.#turns.with(key, async () => {
      if (answers.of(once) ?? fires.once(once) ?? held.once(once)) return undefined
      const thread = this.#threads.get(key)
      const goesOn = thread && thread.turns < MOST_TURNS ? thread : undefined
      const live = await fires.accept(
        automation,
        {
          ...{ cause: 'listener', by: author.name, foreign: `a message of ${provider}`, once },
          payload: payloadOf(message),
          origin: { automationId: id, provider, channelId, author: author.name },
          ...(content.trim() && { title: content.trim().split('\n', 1)[0]!.slice(0, 80) }),
          ...(goesOn && { conversationId: goesOn.conversationId }),
        },
        'queue',
      )
      const { conversationId } = live!.fire
      const next = { conversationId, turns: (goesOn?.turns ?? 0) + 1 }
      await store.set(KEY + key, next)
      this.#threads.set(key, next)
      return live
    })
  }

  /** Streams the words of one fire; its end, and why it failed. */
  async #followed({ id, live }: Begun, push: (frame: DispatchFrame) => void, signal: AbortSignal): Promise<void> {
    try {
      const outcome = await live.outcome.promise
      if (outcome.kind === 'skipped') return push({ automationId: id, failed: outcome.detail })
      await live.begun
      if (live.isHeld) return void this.#streamed.delete(live.fire.id)
      const { conversationId, run } = live.fire
      for await (const { text } of await this.#deps.host.call('agent.words', { conversationId, run }, { signal }))
        push({ automationId: id, delta: text })
      const end = await live.settled
      if (end.end !== 'completed') push({ automationId: id, failed: end.failure ?? `the turn was ${end.end}` })
    } catch (error) {
      if (!signal.aborted) push({ automationId: id, failed: error instanceof Error ? error.message : 'it failed' })
    }
  }
}

/** Whether a message fires a listener. */
const matches = (trigger: Automation['trigger'], message: ListenerMessage): trigger is ListenerTrigger => {
  // An extension does not speak for visitors.
  if (trigger.kind !== 'listener' || trigger.provider !== message.provider || trigger.provider === WEBCHAT) return false
  const { channelId, eventType, branch, mentioned } = trigger
  return (
    (channelId === undefined || channelId === message.channelId)
    && (eventType === undefined || eventType === message.type)
    && (branch === undefined || branch === message.branch)
    && (mentioned === undefined || mentioned === (message.mentioned ?? false))
  )
}

/** A message as its turn and its guard see it. */
const payloadOf = ({ content, author, history, ...rest }: ListenerMessage): string =>
  JSON.stringify({ author, content, ...rest, ...(history && { history }) }, undefined, 1).slice(0, MOST_PAYLOAD)
