import type { Log, Store } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { Automation, ScheduleTrigger } from '../contract.js'
import type { StoredDefinitions } from '../definitions/definitions.js'
import type { FireClock } from './clock.js'
import { nextTime } from './cron.js'
import { afterRestart, decided, freshSlots, scheduleKey, type Slots } from './slots.js'

/** The dependencies of the scheduler. */
export interface SchedulerDeps {
  readonly clock: FireClock
  readonly store: Pick<Store, 'set' | 'delete'>
  readonly log: Pick<Log, 'error'>
  readonly definitions: () => Promise<Pick<StoredDefinitions, 'all'>>
  /** Whether an automation runs now. */
  readonly busy: (id: string) => boolean
  /** Stores the fire of a time; with `done`, which resolves when it is over. Undefined: it runs already. */
  readonly fire: (automation: Automation, slot: number) => Promise<{ readonly done: Promise<void> } | undefined>
  readonly changed: (id: string) => void
}

const KEY = 'slots/'
/** How often the file is read again for edits. */
const REFRESH_MS = 60_000

/** Fires schedules at their times: each time is decided on once, durably, before anything of it runs. */
export class Scheduler {
  readonly #deps: SchedulerDeps
  readonly #slots = new Map<string, Slots>()
  readonly #timers = new Map<string, () => void>()
  readonly #turns = new KeyedMutex()
  readonly #draining = new Set<string>()
  #ended = false

  constructor(deps: SchedulerDeps) {
    this.#deps = deps
  }

  /** The stored slots, with the times whose fires are stored too: these are decided. */
  load(documents: readonly (readonly [key: string, value: unknown])[], fired: ReadonlyMap<string, number[]>): void {
    for (const [key, value] of documents) {
      if (!key.startsWith(KEY)) continue
      const [id, slots] = [key.slice(KEY.length), value as Slots]
      const times = fired.get(id) ?? []
      const claims = slots.claims.filter(slot => !times.includes(slot))
      this.#slots.set(id, { ...slots, claims, last: Math.max(slots.last, ...times) })
    }
  }

  /** Begins to fire. */
  async start(): Promise<void> {
    const { all } = await this.#deps.definitions()
    for (const [id, { automation }] of all) {
      const slots = this.#slots.get(id)
      if (slots && automation.trigger.kind === 'schedule')
        this.#slots.set(id, afterRestart(slots, automation.trigger, this.#deps.clock.now()))
    }
    await this.refresh()
  }

  end(): void {
    this.#ended = true
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  /** Reads the definitions again and follows them. */
  async refresh(): Promise<void> {
    const { all } = await this.#deps.definitions()
    for (const id of new Set([...this.#slots.keys(), ...all.keys()])) await this.#converge(id, scheduleIn(all, id))
    this.#arm('', this.#deps.clock.now() + REFRESH_MS, () => this.refresh())
  }

  /** When it fires next. */
  next(id: string, trigger: ScheduleTrigger): number | undefined {
    const now = this.#deps.clock.now()
    const slots = this.#slots.get(id)
    const after = slots?.key === scheduleKey(trigger) && !slots.idle ? Math.max(now, slots.last) : now
    return nextTime(trigger, after)
  }

  missed(id: string): number {
    return this.#slots.get(id)?.missed ?? 0
  }

  #converge(id: string, active: Automation | undefined): Promise<void> {
    return this.#turns.with(id, async () => {
      const slots = this.#slots.get(id)
      const trigger = active?.trigger
      if (!active || trigger?.kind !== 'schedule') {
        this.#timers.get(id)?.()
        this.#timers.delete(id)
        if (slots && !slots.idle) await this.#keep(id, { ...slots, claims: [], idle: true })
        return
      }
      if (!slots || slots.idle || slots.key !== scheduleKey(trigger))
        await this.#keep(id, { ...freshSlots(trigger, this.#deps.clock.now()), missed: 0 })
      await this.#decide(active, trigger)
    })
  }

  /** Deletes what is stored of an automation. */
  forget(id: string): Promise<void> {
    return this.#turns.with(id, async () => {
      this.#timers.get(id)?.()
      this.#timers.delete(id)
      this.#slots.delete(id)
      await this.#deps.store.delete(KEY + id)
    })
  }

  async #decide(automation: Automation, trigger: ScheduleTrigger): Promise<void> {
    const { clock, busy, changed } = this.#deps
    const { id } = automation
    const slots = this.#slots.get(id)!
    const now = clock.now()
    const next = decided(slots, trigger, now, busy(id) || slots.claims.length > 0 || this.#draining.has(id))
    if (next) {
      await this.#keep(id, next)
      failpoint('automations.slot.claimed')
      changed(id)
    }
    const at = nextTime(trigger, Math.max(now, this.#slots.get(id)!.last))
    if (at === undefined) this.#timers.delete(id)
    else this.#arm(id, at, () => this.#due(id))
    if (this.#slots.get(id)!.claims.length > 0 && !this.#draining.has(id)) void this.#drain(id)
  }

  async #due(id: string): Promise<void> {
    const { all } = await this.#deps.definitions()
    await this.#converge(id, scheduleIn(all, id))
  }

  /** Fires what is claimed, one after the other. */
  async #drain(id: string): Promise<void> {
    this.#draining.add(id)
    try {
      for (;;) {
        const [slot] = this.#slots.get(id)?.claims ?? []
        if (slot === undefined || this.#ended) return
        const automation = scheduleIn((await this.#deps.definitions()).all, id)
        const fired = automation && (await this.#deps.fire(automation, slot))
        await this.#turns.with(id, async () => {
          const slots = this.#slots.get(id)
          if (!slots) return
          const claims = slots.claims.filter(claim => claim !== slot)
          await this.#keep(id, { ...slots, claims, missed: slots.missed + (fired ? 0 : 1) })
        })
        await fired?.done
      }
    } catch (error) {
      if (!this.#ended) this.#deps.log.error('firing a schedule failed', { automation: id, error: String(error) })
    } finally {
      this.#draining.delete(id)
    }
  }

  #arm(key: string, when: number, work: () => Promise<void>): void {
    this.#timers.get(key)?.()
    if (this.#ended) return
    const run = () =>
      void work().catch(error => {
        if (this.#ended) return
        this.#deps.log.error('a schedule failed; it is tried again', { automation: key, error: String(error) })
        this.#arm(key, this.#deps.clock.now() + REFRESH_MS, work)
      })
    this.#timers.set(key, this.#deps.clock.at(when, run))
  }

  async #keep(id: string, slots: Slots): Promise<void> {
    await this.#deps.store.set(KEY + id, slots)
    this.#slots.set(id, slots)
  }
}

const scheduleIn = (all: StoredDefinitions['all'], id: string): Automation | undefined => {
  const found = all.get(id)
  const active = found?.accepted && found.automation.enabled && found.automation.trigger.kind === 'schedule'
  return active ? found.automation : undefined
}
