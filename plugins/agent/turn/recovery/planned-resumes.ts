import type { Log } from '../../../../sdk/index.js'
import type { Conversation, Stopped } from '../../contract.js'
import type { Conversations } from '../../conversations/conversations.js'
import type { Engine } from '../engine.js'
import type { Frame, RunEnd } from '../frames/frames.js'
import type { KeyedMutex } from '../../../../sdk/node/concurrency/keyed-mutex.js'
import { OUTAGE_TIMES, mayResume, outageNotice, waitAfter, type OutagePlans, type OutageTimes } from './outage.js'
import type { Queue } from '../../queue/queue.js'
import type { Resumable } from '../run-entry.js'
import type { Turn } from '../turn.js'

/** The dependencies of resuming turns after an outage. */
export interface PlannedResumesDeps {
  readonly engine: () => Pick<Engine, 'live' | 'start' | 'stop' | 'closing'>
  readonly conversations: Conversations
  readonly queue: Queue
  readonly decisions: KeyedMutex
  readonly log: Pick<Log, 'info' | 'error'>
  /** Called when a conversation has changed. */
  readonly changed: (conversationId: string) => void
  /** The setting for conversations without their own choice (`resumeAfterOutage`). */
  readonly setting: () => Promise<boolean>
  readonly signal: AbortSignal
}

/** The try that tests whether a provider is available again. */
interface Probe {
  readonly conversationId: string
  readonly run: string
  readonly at: number
  started: boolean
}

/** Resumes turns that an outage ended: one at a time until their provider answers, then all. */
export class PlannedResumes implements OutagePlans {
  readonly #deps: PlannedResumesDeps
  readonly #times: OutageTimes
  readonly #timers = new Map<string, NodeJS.Timeout>()
  /** By provider. */
  readonly #probes = new Map<string, Probe>()

  constructor(deps: PlannedResumesDeps, times: OutageTimes = OUTAGE_TIMES) {
    this.#deps = deps
    this.#times = times
    deps.signal.addEventListener('abort', () => this.#timers.forEach(timer => clearTimeout(timer)), { once: true })
  }

  /** Resumes what the last daemon had planned. */
  begin(): void {
    for (const [id] of this.#deps.queue.resumables) this.#schedule(id)
  }

  /** Adds to an outage error whether and when the turn is resumed; returns other frames unchanged. */
  async told(turn: Turn, frame: Frame): Promise<Frame> {
    if (frame.kind !== 'error' || frame.code !== 'provider-outage' || turn.record.failure) return frame
    const armed = await this.#armed(this.#deps.conversations.find(turn.conversationId))
    return outageNotice(frame, turn.message, armed, this.#times, Date.now())
  }

  /** Called when a turn has ended and is stored. */
  settled({ conversationId, run, entry }: Turn, end: RunEnd): void {
    const { provider } = entry.fields
    if (this.#probes.get(provider)?.run === run) this.#probes.delete(provider)
    for (const [id, { at }] of this.#of(provider)) {
      if (end === 'completed' && at !== undefined) this.#attend(id, true)
      else this.#schedule(id)
    }
    this.#schedule(conversationId)
  }

  /** Stores whether turns of a conversation are resumed; undefined: the setting decides. */
  choose(id: string, wanted: boolean | undefined): Promise<void> {
    const { conversations, decisions } = this.#deps
    return decisions.with(conversations.get(id).id, async () => {
      conversations.get(id)
      await conversations.change(id, { resumeAfterOutage: wanted })
      await this.#weigh(id, true)
    })
  }

  /** Drops planned resumes that a changed setting disables. */
  async recheck(): Promise<void> {
    const { decisions, log, queue } = this.#deps
    for (const [id] of queue.resumables) {
      await decisions
        .with(id, () => this.#weigh(id, false))
        .catch(error =>
          log.error('a planned resume could not be checked again', { conversation: id, error: String(error) }),
        )
    }
  }

  /** Stops a conversation's turn and drops its planned resume. */
  async stop(id: string): Promise<Stopped['stopped']> {
    const planned = await this.#halt(id)
    const ran = await this.#deps.engine().stop(id)
    // A turn that was failing during the stop may have planned a resume.
    await this.#halt(id)
    return ran ? 'turn' : planned ? 'resume' : 'nothing'
  }

  async #halt(id: string): Promise<boolean> {
    const { conversations, decisions, queue } = this.#deps
    if (queue.resumable(id)?.at === undefined) return false
    return decisions.with(id, async () => {
      if (queue.resumable(id)?.at === undefined) return false
      await queue.resume(id)
      await conversations.update(id, { lastEnd: 'stopped', failure: undefined, updatedAt: Date.now() })
      return true
    })
  }

  /** Drops a plan that is disabled, and with `picksUp` plans an enabled one. */
  async #weigh(id: string, picksUp: boolean): Promise<void> {
    const { changed, conversations, engine, queue } = this.#deps
    const found = queue.resumable(id)
    if (!found || engine().live(id)) return
    const armed = await this.#armed(conversations.find(id))
    if (armed === (found.at !== undefined) || (armed && !picksUp)) return
    const { at: _planned, ...rest } = found
    const tries = (found.message.resumed?.tries ?? 1) - 1
    await queue.resume(id, armed ? { ...rest, at: found.failedAt + waitAfter(tries, this.#times) } : rest)
    this.#schedule(id)
    changed(id)
  }

  async #armed(conversation: Conversation | undefined): Promise<boolean> {
    if (conversation?.resumeAfterOutage !== undefined) return conversation.resumeAfterOutage
    try {
      return await this.#deps.setting()
    } catch (error) {
      this.#deps.log.error('reading the setting for resumes after an outage failed: turns are not resumed', {
        error: String(error),
      })
      return false
    }
  }

  /** The resumable turns of a provider. */
  #of(provider: string): (readonly [id: string, resumable: Resumable])[] {
    return this.#deps.queue.resumables.filter(([id, resumable]) => this.#providerOf(id, resumable) === provider)
  }

  #providerOf(id: string, { message }: Resumable): string {
    return message.input.agent ?? this.#deps.conversations.find(id)?.provider ?? ''
  }

  /** Schedules the next check of a conversation. */
  #schedule(id: string, notBefore = 0): void {
    clearTimeout(this.#timers.get(id))
    this.#timers.delete(id)
    const found = this.#deps.queue.resumable(id)
    if (!found || this.#deps.signal.aborted) return
    const over = (found.message.resumed?.since ?? found.failedAt) + this.#times.mostMs
    const moment = Math.max(Math.min(found.at ?? over, over), notBefore)
    this.#timers.set(
      id,
      setTimeout(() => this.#attend(id, false), Math.min(Math.max(0, moment - Date.now()), this.#times.mostMs)),
    )
  }

  #attend(id: string, answered: boolean): void {
    void this.#deps.decisions
      .with(id, () => this.#resume(id, answered))
      .catch(error => {
        this.#deps.log.error('a turn could not be resumed after an outage', { conversation: id, error: String(error) })
        this.#schedule(id, Date.now() + this.#times.probeMs)
      })
  }

  /** Resumes a due turn; `answered`: its provider is back, so at once. */
  async #resume(id: string, answered: boolean): Promise<void> {
    const { changed, conversations, engine, queue } = this.#deps
    const found = queue.resumable(id)
    if (!found || engine().live(id) || engine().closing) return
    const { at, failedAt, message } = found
    const { tries = 1, since = failedAt } = message.resumed ?? {}
    const now = Date.now()
    const conversation = conversations.find(id)
    if (!conversation || !mayResume(tries - 1, since, now, this.#times)) {
      await queue.resume(id)
      return changed(id)
    }
    if (at === undefined || (!answered && at > now && at - now <= this.#times.mostMs)) return this.#schedule(id)
    if (!(await this.#armed(conversation))) return this.#weigh(id, false)
    const provider = this.#providerOf(id, found)
    const busy = answered ? undefined : this.#busyUntil(provider, now)
    if (busy !== undefined) return this.#schedule(id, busy)
    const probe: Probe = { conversationId: id, run: message.run, at: now, started: false }
    if (!answered) this.#probes.set(provider, probe)
    try {
      const { run, messageId } = message
      const row = queue.known(messageId) ?? { run, conversationId: id, messageId, delivery: 'started', at: message.at }
      await queue.accept({ row, message })
      engine().start(message)
      probe.started = true
    } catch (error) {
      if (this.#probes.get(provider) === probe) this.#probes.delete(provider)
      throw error
    }
    this.#deps.log.info('a turn is resumed after an outage', {
      run: message.run,
      conversation: id,
      attempt: message.resumed?.attempt,
      answered,
    })
  }

  /** Until when a running try delays others of its provider; a parked or long one shows that the provider answers. */
  #busyUntil(provider: string, now: number): number | undefined {
    const probe = this.#probes.get(provider)
    if (!probe) return undefined
    const turn = this.#deps.engine().live(probe.conversationId)
    const over = probe.at + this.#times.probeMs
    const runs = !probe.started || (turn?.run === probe.run && turn.state !== 'parked')
    return runs && over > now ? over : undefined
  }
}
