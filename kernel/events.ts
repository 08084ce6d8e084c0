import type { Context } from '../sdk/contract.js'
import type { Answer } from '../sdk/host.js'
import type { StartGroup } from './calls.js'

/** The context of requests that the kernel itself makes to a plugin. */
export const KERNEL: Context = {
  caller: { kind: 'plugin', actor: 'sandbox:kernel', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
}

/** Delivers events to the plugins that listen, and collects the contributions of plugins to a point. */
export class EventBus {
  readonly #listeners = new Map<string, Map<string, Answer>>()
  readonly #points = new Map<string, Map<string, Answer>>()
  /** The groups to start, by event and by point. */
  readonly #wakes = {
    events: new Map<string, Map<string, StartGroup>>(),
    points: new Map<string, Map<string, StartGroup>>(),
  }
  /** Announced events, sent again to each group that starts later. */
  readonly #lasting = new Map<string, unknown>()
  /** Groups that never ran in this data folder. */
  readonly #new = new Set<string>()

  /** @param failed Called when a listener or contributor threw; the others still run. */
  constructor(readonly failed: (plugin: string, what: string, error: unknown) => void) {}

  /** Sets the events and points that start a group; `isNew` says that it never ran in this data folder. */
  declare(
    plugin: string,
    on: { events: readonly string[]; points: readonly string[] },
    start: StartGroup,
    isNew = false,
  ): void {
    if (isNew) this.#new.add(plugin)
    for (const event of on.events) entry(this.#wakes.events, event).set(plugin, start)
    for (const point of on.points) entry(this.#wakes.points, point).set(plugin, start)
  }

  on(event: string, plugin: string, into: Answer): void {
    entry(this.#listeners, event).set(plugin, into)
  }

  emit(event: string, data: unknown): void {
    for (const [plugin, start] of this.#wakes.events.get(event) ?? []) {
      // It has nothing to go on with.
      if (this.#lasting.has(event) && this.#new.has(plugin)) continue
      start().then(
        () => this.#send(plugin, event, data),
        error => this.failed(plugin, event, error),
      )
    }
    for (const plugin of this.#listeners.get(event)?.keys() ?? [])
      if (!this.#wakes.events.get(event)?.has(plugin)) this.#send(plugin, event, data)
  }

  /** Emits an event that happens once. It starts no new group; groups that start later receive it when they start. */
  announce(event: string, data: unknown): void {
    this.#lasting.set(event, data)
    this.emit(event, data)
  }

  /** Sends the events announced so far to a group that has just started. */
  started(plugin: string): void {
    const wasNew = this.#new.delete(plugin)
    for (const [event, data] of this.#lasting)
      if (wasNew || !this.#wakes.events.get(event)?.has(plugin)) this.#send(plugin, event, data)
  }

  contribute(point: string, plugin: string, into: Answer): void {
    entry(this.#points, point).set(plugin, into)
  }

  /** Whether a group adds to a point. */
  gives(point: string, plugin: string): boolean {
    return (this.#wakes.points.get(point)?.has(plugin) || this.#points.get(point)?.has(plugin)) ?? false
  }

  async collect(point: string, by?: string): Promise<unknown[]> {
    const starts = this.#wakes.points.get(point) ?? new Map<string, StartGroup>()
    const plugins = new Set([...starts.keys(), ...(this.#points.get(point)?.keys() ?? [])])
    const given = [...plugins].map(async plugin => {
      try {
        await starts.get(plugin)?.(by)
        const into = this.#points.get(point)?.get(plugin)
        return into ? [await into('plugin.contribution', { point }, KERNEL)] : []
      } catch (error) {
        this.failed(plugin, point, error)
        return []
      }
    })
    return (await Promise.all(given)).flat()
  }

  /** Stops events and points from starting this group. */
  close(plugin: string): void {
    for (const starts of [...this.#wakes.events.values(), ...this.#wakes.points.values()]) starts.delete(plugin)
  }

  /** Deletes what a group registered while it ran. */
  drop(plugin: string): void {
    for (const listeners of this.#listeners.values()) listeners.delete(plugin)
    for (const givers of this.#points.values()) givers.delete(plugin)
  }

  #send(plugin: string, event: string, data: unknown): void {
    this.#listeners
      .get(event)
      ?.get(plugin)?.('plugin.event', { event, data }, KERNEL)
      .catch(error => this.failed(plugin, event, error))
  }
}

const entry = <V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> =>
  map.get(key) ?? map.set(key, new Map()).get(key)!
