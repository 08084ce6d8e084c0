import { Refusal, refuse, type Log, type Store } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { Automation } from '../contract.js'
import type { Definition } from '../definitions/definitions.js'
import type { FireClock } from '../schedule/clock.js'
import type { FireChecks } from './checks.js'
import { conversationName, mintedId, slotFireId, type Fire, type FireOrder } from './fire.js'
import type { HeldWakes } from './held-wakes.js'
import { LiveFire, type TurnEnd } from './live-fire.js'
import type { FireRecorder } from './recorder.js'
import type { Turns } from './turns.js'

/** What happens to a fire whose automation runs already. */
export type Overlap = 'drop' | 'queue' | 'replace'

/** The dependencies of fires. */
export interface FiresDeps {
  readonly clock: FireClock
  readonly store: Pick<Store, 'set' | 'delete'>
  readonly log: Log
  readonly turns: Turns
  readonly checks: FireChecks
  readonly recorder: FireRecorder
  readonly held: HeldWakes
  readonly definition: (id: string) => Promise<Definition | undefined>
  readonly changed: (id: string) => void
  /** Called with each fire, before it begins. */
  readonly follow: (live: LiveFire) => void
  readonly signal: AbortSignal
}

export const FIRE_KEY = 'fire/'
/** The most fires of one automation that wait. */
export const MOST_QUEUED = 100
const MOST_EVENTS = 4
const SHARED = 'shared tree'

/** Every fire from its order to its record: one at a time for each automation. */
export class Fires {
  readonly #deps: FiresDeps
  readonly #current = new Map<string, LiveFire>()
  readonly #queues = new Map<string, LiveFire[]>()
  readonly #byRun = new Map<string, LiveFire>()
  readonly #taking = new KeyedMutex()
  /** Turns of automations in the shared tree run one after another. */
  readonly #tree = new KeyedMutex()

  constructor(deps: FiresDeps) {
    this.#deps = deps
  }

  /** The fire of an automation that has not ended. */
  current(id: string): Fire | undefined {
    return this.#current.get(id)?.fire
  }

  busy(id: string): boolean {
    return this.#current.has(id)
  }

  queued(id: string): number {
    return this.#queues.get(id)?.length ?? 0
  }

  /** The fire of a run that has not ended. */
  live(run: string): LiveFire | undefined {
    return this.#byRun.get(run)
  }

  /** A fire that the sender named so and that has not ended. */
  once(key: string): LiveFire | undefined {
    return [...this.#byRun.values()].find(({ fire }) => fire.once === key)
  }

  /** Stores a fire and begins it, or lets it wait; undefined: it was dropped. */
  accept({ id }: Automation, order: FireOrder, overlap: Overlap): Promise<LiveFire | undefined> {
    return this.#taking.with(id, async () => {
      const busy = this.#current.has(id)
      if (busy && overlap === 'drop') return undefined
      if (busy && overlap === 'queue' && this.queued(id) >= MOST_QUEUED)
        refuse('too-many', `${MOST_QUEUED} fires of ${id} wait already: try again later`, { retryAfter: 60 })
      if (busy && overlap === 'replace') await this.#makeRoom(id, order.agentId)
      const live = new LiveFire(await this.#made(id, order, busy))
      await this.#keep(live)
      this.#deps.follow(live)
      // What ran may have ended meanwhile.
      if (this.#current.has(id)) this.#enqueue(live)
      else this.#begin(live)
      this.#deps.changed(id)
      return live
    })
  }

  /** The end of a run, if it is that of a fire. */
  settled(run: string, end: TurnEnd): void {
    this.#byRun.get(run)?.settle(end)
  }

  /** A run waits for a person. */
  parked(run: string): void {
    this.#byRun.get(run)?.end.resolve('parked')
  }

  /** Drops what waits behind a running fire. */
  async dropQueued(id: string): Promise<void> {
    const waiting = this.#queues.get(id) ?? []
    this.#queues.delete(id)
    for (const live of waiting) await this.#drop(live, 'the automation was switched off')
  }

  /** Takes up a stored fire after a restart. */
  async recover(fire: Fire): Promise<void> {
    const { automationId: id } = fire
    const live = new LiveFire(fire)
    this.#deps.follow(live)
    this.#byRun.set(fire.run, live)
    if (this.#current.has(id)) return this.#enqueue(live)
    this.#current.set(id, live)
    if (fire.phase === 'queued') return void this.#run(live)
    const { started, open, ...past } = await this.#deps.turns.fate(fire.messageId)
    if (!started && fire.repeated) {
      const detail = 'the sandbox stopped twice before its turn began'
      await this.#deps.recorder.interrupted(live, detail)
      live.settle({ end: 'failed', failure: detail, costUsd: 0 })
      return this.#ended(live)
    }
    if (!started) {
      live.fire = { ...fire, phase: 'checking', cause: 'restart', repeated: true }
      await this.#keep(live)
      return void this.#run(live)
    }
    live.begin()
    const { end } = past
    if (!open) live.settle({ end: end ?? 'interrupted', costUsd: 0, ...past })
    const release = fire.origin ? () => {} : await this.#tree.hold(SHARED)
    void this.#followed(live, release)
  }

  async #made(id: string, order: FireOrder, waits: boolean): Promise<Fire> {
    const at = this.#deps.clock.now()
    const { slot, named = slot ?? at } = order
    const fireId = slot === undefined ? mintedId('f') : slotFireId(id, slot)
    return {
      ...order,
      ...{ id: fireId, automationId: id, at, phase: waits ? 'queued' : 'checking' },
      conversationId: order.conversationId ?? (await this.#freeName(id, named)),
      run: mintedId('r'),
      messageId: mintedId('a'),
    }
  }

  async #freeName(id: string, at: number): Promise<string> {
    const taken = new Set([...this.#byRun.values()].map(({ fire }) => fire.conversationId))
    for (let attempt = 1; ; attempt++) {
      const name = conversationName(id, at, attempt)
      if (!taken.has(name) && !(await this.#deps.turns.exists(name))) return name
    }
  }

  /** A newer event of an agent replaces one that waits; of many the oldest goes. */
  async #makeRoom(id: string, agentId: string | undefined): Promise<void> {
    const waiting = this.#queues.get(id) ?? []
    const same = waiting.find(({ fire }) => fire.agentId === agentId)
    const gone = same ?? (waiting.length >= MOST_EVENTS ? waiting[0] : undefined)
    if (!gone) return
    waiting.splice(waiting.indexOf(gone), 1)
    if (!same) this.#deps.log.warn('an event of the workspace was dropped: too many wait', { automation: id })
    await this.#drop(gone, 'a newer event replaced it')
  }

  #enqueue(live: LiveFire): void {
    const { automationId: id } = live.fire
    this.#byRun.set(live.fire.run, live)
    this.#queues.set(id, [...(this.#queues.get(id) ?? []), live])
    live.started()
  }

  #begin(live: LiveFire): void {
    this.#byRun.set(live.fire.run, live)
    this.#current.set(live.fire.automationId, live)
    void this.#run(live)
  }

  async #run(live: LiveFire): Promise<void> {
    const { signal, log } = this.#deps
    try {
      await this.#checked(live)
    } catch (error) {
      // The next start of the daemon finishes it.
      if (signal.aborted || Refusal.from(error).reason === 'unavailable') return live.outcome.reject(error)
      const known = error instanceof Refusal && error.reason !== 'failed'
      if (!known) log.error('a fire failed because of a bug', { fire: live.fire.id, error: String(error) })
      if (!live.fire.held) await this.#deps.recorder.failed(live, known ? error.message : 'it failed unexpectedly')
      live.outcome.reject(error)
      live.settle({ end: 'failed', failure: Refusal.from(error).message, costUsd: 0 })
      await this.#ended(live)
    }
  }

  async #checked(live: LiveFire): Promise<void> {
    const { checks, recorder, held, definition, signal } = this.#deps
    const { automationId: id, cause, held: wake } = live.fire
    if (live.fire.phase === 'queued') await this.#keep(live, { phase: 'checking' })
    const found = await definition(id)
    const released = cause === 'hand' || wake !== undefined
    if (!found?.accepted || (!found.automation.enabled && !released)) {
      const detail = found ? 'the automation was switched off' : 'the automation is gone'
      return this.#skipped(live, detail)
    }
    const { automation } = found
    failpoint('automations.fire.checking')
    const verdict = await checks.of(automation, live.fire, signal)
    if (verdict.kind === 'skip') {
      await recorder.skipped(live, verdict.detail)
      return this.#skipped(live, verdict.detail)
    }
    if (verdict.kind === 'hold') {
      const { id: heldId } = await held.hold(live.fire, verdict)
      live.hold(heldId)
      return this.#ended(live)
    }
    await this.#keep(live, { phase: 'starting' })
    failpoint('automations.fire.journaled')
    await this.#started(live, automation)
  }

  async #started(live: LiveFire, automation: Automation): Promise<void> {
    const { turns, held, recorder, changed, clock, signal } = this.#deps
    // The sender does not wait for its place behind other automations.
    if (!live.fire.origin && this.#tree.held(SHARED)) live.started()
    const release = live.fire.origin ? () => {} : await this.#tree.hold(SHARED, signal)
    try {
      await turns.start(automation, live.fire)
    } catch (error) {
      release()
      const heldBy = error instanceof Refusal && error.detail.fields?.heldBy
      if (!heldBy || live.fire.held) throw error
      const { id } = await held.hold(live.fire, {
        reason: `the budget ${String(heldBy)}: ${Refusal.from(error).message}`,
      })
      live.hold(id)
      return this.#ended(live)
    }
    failpoint('automations.fire.started')
    await this.#keep(live, { phase: 'running', startedAt: clock.now() })
    await recorder.fired(live)
    live.begin()
    changed(live.fire.automationId)
    await this.#followed(live, release)
  }

  #skipped(live: LiveFire, detail: string): Promise<void> {
    live.outcome.resolve({ kind: 'skipped', detail })
    live.settle({ end: 'stopped', failure: detail, costUsd: 0 })
    return this.#ended(live)
  }

  /** Waits for the end of the turn and records it. */
  async #followed(live: LiveFire, release: () => void): Promise<void> {
    try {
      const end = await live.settled
      await this.#deps.recorder.ended(live, end)
    } finally {
      release()
    }
    await this.#ended(live)
  }

  /** Forgets a fire that is over, and begins the next one. */
  async #ended(live: LiveFire): Promise<void> {
    const { automationId: id, run } = live.fire
    await live.told
    await this.#deps.store.delete(FIRE_KEY + live.fire.id)
    this.#byRun.delete(run)
    const [next, ...waiting] = this.#queues.get(id) ?? []
    if (waiting.length > 0) this.#queues.set(id, waiting)
    else this.#queues.delete(id)
    if (this.#current.get(id) === live) this.#current.delete(id)
    if (next) this.#begin(next)
    this.#deps.changed(id)
    live.over.resolve()
  }

  async #drop(live: LiveFire, detail: string): Promise<void> {
    this.#byRun.delete(live.fire.run)
    await this.#deps.recorder.skipped(live, detail)
    live.settle({ end: 'stopped', failure: detail, costUsd: 0 })
    await live.told
    await this.#deps.store.delete(FIRE_KEY + live.fire.id)
    live.over.resolve()
  }

  async #keep(live: LiveFire, change: Partial<Fire> = {}): Promise<void> {
    live.fire = { ...live.fire, ...change }
    await this.#deps.store.set(FIRE_KEY + live.fire.id, live.fire)
  }
}
