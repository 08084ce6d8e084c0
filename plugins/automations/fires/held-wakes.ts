import type { Store } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { HeldWake } from '../contract.js'
import type { FireClock } from '../schedule/clock.js'
import { mintedId, type Fire, type StoredWake } from './fire.js'

/** The dependencies of held wakes. */
export interface HeldWakesDeps {
  readonly clock: FireClock
  readonly store: Pick<Store, 'set' | 'delete'>
  /** Called when the time of a wake has come. */
  readonly due: (id: string) => void
  /** Called when a wake is held. */
  readonly held: (wake: HeldWake) => void
  /** Called with the automation whose wakes changed. */
  readonly changed: (automationId: string) => void
}

export const HELD_KEY = 'held/'

/** The wakes that wait for a person or for their time. */
export class HeldWakes {
  readonly #deps: HeldWakesDeps
  readonly #wakes = new Map<string, StoredWake>()
  readonly #timers = new Map<string, () => void>()

  constructor(deps: HeldWakesDeps) {
    this.#deps = deps
  }

  /** The stored wakes, but those that a stored fire released. */
  async load(documents: readonly (readonly [key: string, value: unknown])[], fires: readonly Fire[]): Promise<void> {
    const released = new Set(fires.flatMap(({ held }) => held ?? []))
    for (const [key, value] of documents) {
      if (!key.startsWith(HELD_KEY)) continue
      const id = key.slice(HELD_KEY.length)
      if (released.has(id)) await this.#deps.store.delete(key)
      else this.#wakes.set(id, value as StoredWake)
    }
  }

  /** Begins to count down. */
  start(): void {
    for (const { wake } of this.#wakes.values()) this.#arm(wake)
  }

  end(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  /** Every wake, oldest first. */
  get all(): readonly HeldWake[] {
    return [...this.#wakes.values()].map(({ wake }) => wake).sort((one, other) => one.createdAt - other.createdAt)
  }

  get(id: string): StoredWake | undefined {
    return this.#wakes.get(id)
  }

  /** Whether a fire is held. */
  isHeld(fire: string): boolean {
    return [...this.#wakes.values()].some(stored => stored.fire === fire)
  }

  /** The wake that its sender named so. */
  once(key: string): HeldWake | undefined {
    return [...this.#wakes.values()].find(({ order }) => order.once === key)?.wake
  }

  /** Holds a fire; it is durable when this returns. */
  async hold(fire: Fire, { reason, autoRunAt }: { reason: string; autoRunAt?: number }): Promise<HeldWake> {
    const {
      id,
      automationId,
      at: _at,
      phase: _phase,
      run: _run,
      messageId: _message,
      startedAt: _began,
      ...rest
    } = fire
    const { repeated: _repeated, conversationId, ...order } = rest
    const keeps = order.origin !== undefined && order.cause === 'listener'
    const wake: HeldWake = {
      ...{ id: mintedId('h'), automationId, reason, createdAt: this.#deps.clock.now() },
      ...(order.payload !== undefined && { payload: order.payload }),
      ...(order.origin && { origin: order.origin }),
      ...(order.title !== undefined && { title: order.title }),
      ...(keeps && { conversationId }),
      ...(autoRunAt !== undefined && { autoRunAt }),
    }
    await this.#keep({ wake, fire: id, order: { ...order, ...(keeps && { conversationId }) } })
    failpoint('automations.wake.held')
    this.#deps.held(wake)
    return wake
  }

  /** Lets a wake wait for a person. */
  async wait(id: string, reason: string): Promise<void> {
    const stored = this.#wakes.get(id)
    if (!stored) return
    const { autoRunAt: _time, ...wake } = stored.wake
    await this.#keep({ ...stored, wake: { ...wake, reason } })
  }

  async remove(id: string): Promise<void> {
    const stored = this.#wakes.get(id)
    if (!stored) return
    await this.#deps.store.delete(HELD_KEY + id)
    this.#wakes.delete(id)
    this.#timers.get(id)?.()
    this.#timers.delete(id)
    this.#deps.changed(stored.wake.automationId)
  }

  /** Removes every wake of an automation. */
  async removeOf(automationId: string): Promise<void> {
    for (const { wake } of [...this.#wakes.values()]) if (wake.automationId === automationId) await this.remove(wake.id)
  }

  async #keep(stored: StoredWake): Promise<void> {
    const { id, automationId } = stored.wake
    await this.#deps.store.set(HELD_KEY + id, stored)
    this.#wakes.set(id, stored)
    this.#arm(stored.wake)
    this.#deps.changed(automationId)
  }

  #arm({ id, autoRunAt }: HeldWake): void {
    this.#timers.get(id)?.()
    this.#timers.delete(id)
    if (autoRunAt !== undefined)
      this.#timers.set(
        id,
        this.#deps.clock.at(autoRunAt, () => this.#deps.due(id)),
      )
  }
}
