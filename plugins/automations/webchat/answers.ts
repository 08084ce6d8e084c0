import type { Host } from '../../../sdk/index.js'
import { digest } from '../../../sdk/node/access/first-answers.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { record } from '../../../sdk/node/record/record.js'
import type { Automation } from '../contract.js'
import type { Definition } from '../definitions/definitions.js'
import type { Visit } from '../fires/fire.js'
import type { Fires } from '../fires/fires.js'
import type { HeldWakes } from '../fires/held-wakes.js'
import type { LiveFire, TurnEnd } from '../fires/live-fire.js'
import { WEBCHAT } from './strangers.js'
import { isAnswered, type VisitorLine, type VisitorThread, type VisitorThreads } from './threads.js'
import { NO_ANSWER, WAITS } from './visitor-words.js'

/** The dependencies of answers. */
export interface VisitAnswersDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'signal'>
  readonly now: () => number
  readonly definition: (id: string) => Promise<Definition | undefined>
  readonly threads: VisitorThreads
  readonly fires: Pick<Fires, 'accept' | 'once'>
  readonly held: Pick<HeldWakes, 'once' | 'get'>
}

const MOST_TURNS = 200
const TITLE = 80

/** Has visitors' messages answered: each by one fire, whose words go to its thread. */
export class VisitAnswers {
  readonly #deps: VisitAnswersDeps
  readonly #asking = new KeyedMutex()

  constructor(deps: VisitAnswersDeps) {
    this.#deps = deps
  }

  /** Fires the automation for a message of a thread. */
  async ask(
    automation: Automation,
    { id: threadId, automationId }: VisitorThread,
    seq: number,
    line: VisitorLine,
    again = false,
  ): Promise<void> {
    const { fires, threads } = this.#deps
    const thread = threads.get(automationId, threadId)
    if (!thread) return
    const goesOn = thread.conversationId !== undefined && thread.turns < MOST_TURNS
    const { payload, by, page, text } = line
    const live = await fires
      .accept(
        automation,
        {
          ...{ cause: 'listener', by, foreign: `a visitor of ${page}, who may be anybody`, payload },
          origin: { automationId, provider: WEBCHAT, channelId: threadId, author: by },
          title: [...text.trim().split('\n', 1)[0]!].slice(0, TITLE).join('') || automationId,
          once: onceOf(thread, seq),
          ...(goesOn && { conversationId: thread.conversationId! }),
          visit: { thread: threadId, seq, ...(again && { again: true as const }) },
        },
        'queue',
      )
      .catch(error => {
        this.#deps.host.log.warn('a visitor cannot be answered', { automation: automationId, error: String(error) })
        return undefined
      })
    if (!live) return void (await this.#say(automationId, { thread: threadId, seq }, NO_ANSWER))
    const { conversationId } = live.fire
    await threads.change(thread, { conversationId, turns: (goesOn ? thread.turns : 0) + 1 })
  }

  /** Asks once more for a message that a stop of the sandbox left without an answer, unless it is being answered. */
  askAgain(thread: VisitorThread, seq: number): Promise<void> {
    const once = onceOf(thread, seq)
    // The start of the sandbox and the end of what was cut both ask.
    return this.#asking.with(once, () => this.#askedAgain(thread, seq, once))
  }

  async #askedAgain(thread: VisitorThread, seq: number, once: string): Promise<void> {
    const { threads, fires, held, definition } = this.#deps
    if (fires.once(once) ?? held.once(once)) return
    const lines = await threads.lines(thread)
    const line = lines[seq - 1]
    if (line?.from !== 'visitor' || isAnswered(lines, seq)) return
    const found = await definition(thread.automationId)
    if (found?.accepted && found.automation.enabled) return this.ask(found.automation, thread, seq, line, true)
    await this.#say(thread.automationId, { thread: thread.id, seq }, NO_ANSWER)
  }

  /** Begins to carry what the turn of a fire says to its thread. */
  follow(live: LiveFire): void {
    const { visit, automationId } = live.fire
    if (!visit) return
    live.told = this.#followed(live, automationId, visit).catch(error => this.#failed(automationId, error))
  }

  #failed(automationId: string, error: unknown): void {
    const { host } = this.#deps
    if (host.signal.aborted) return
    host.log.error('answering a visitor failed', { automation: automationId, error: String(error) })
  }

  /** A person rejected what was held for a visitor. */
  async rejected(automationId: string, visit: Visit): Promise<void> {
    await this.#say(automationId, visit, NO_ANSWER)
  }

  async #followed(live: LiveFire, automationId: string, visit: Visit): Promise<void> {
    const { threads, host, held } = this.#deps
    const thread = threads.get(automationId, visit.thread)
    if (!thread) return
    await live.begun
    if (live.isHeld) return this.#wait(automationId, visit)
    const { conversationId, run, held: wake } = live.fire
    let spoken = ''
    try {
      const words = await host.call('agent.words', { conversationId, run }, { signal: host.signal })
      for await (const { text } of words) {
        spoken += text
        threads.say(thread, visit.seq, text)
      }
    } catch (error) {
      host.log.warn('the words of an answer are not followed', { automation: automationId, error: String(error) })
    }
    const end = await live.settled
    if (host.signal.aborted) return
    // What a person allowed could not begin, and waits for a person again.
    if (live.fire.phase !== 'running' && wake !== undefined && held.get(wake)) return
    // A stop of the sandbox cut it: it is asked once more, when its fire is over.
    if (end.end === 'interrupted' && !visit.again) {
      threads.unsay(thread)
      void live.over.promise
        .then(() => this.askAgain(thread, visit.seq))
        .catch(error => this.#failed(automationId, error))
      return
    }
    await this.#say(automationId, visit, answerOf(end, spoken))
  }

  async #wait(automationId: string, { thread: id, seq }: Visit): Promise<void> {
    const { threads, now } = this.#deps
    const thread = threads.get(automationId, id)
    if (thread) await threads.add(thread, { from: 'sandbox', text: WAITS, at: now(), answers: seq })
  }

  /** Writes an answer, once for each message. */
  async #say(automationId: string, { thread: id, seq }: Visit, text: string): Promise<void> {
    const { threads, now, host } = this.#deps
    const thread = threads.get(automationId, id)
    if (!thread || isAnswered(await threads.lines(thread), seq)) return
    await threads.add(thread, { from: 'agent', text, at: now(), answers: seq })
    await record(host, {
      ...{ type: 'message.sent', direction: 'out', audience: 'viewer', outcome: 'ok' },
      ...{ provider: WEBCHAT, content: text, automationIds: [automationId] },
      ...(thread.conversationId !== undefined && { conversationId: thread.conversationId }),
    })
  }
}

/** The key of the fire of a message. */
const onceOf = ({ automationId, journal }: VisitorThread, seq: number): string =>
  digest('visit', automationId, journal, String(seq))

/** All that was said; a visitor gets no reason why there is nothing. */
const answerOf = ({ end, report = '' }: TurnEnd, spoken: string): string => {
  if (end !== 'completed') return NO_ANSWER
  const said = spoken.trim()
  return (said.endsWith(report.trim()) ? said : report.trim()) || NO_ANSWER
}
