import type { Context } from '../sdk/contract.js'
import type { Answer } from '../sdk/host.js'

/** The context of what the kernel itself asks of a plugin. */
export const KERNEL: Context = {
  caller: { kind: 'plugin', actor: 'sandbox:kernel', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
}

/** Facts that happened, told to every plugin that listens; and points, where many add what one collects. */
export class EventBus {
  readonly #listeners = new Map<string, Map<string, Answer>>()
  readonly #points = new Map<string, Map<string, Answer>>()

  /** @param failed Told of a listener or contributor that threw; the others are not held up. */
  constructor(readonly failed: (plugin: string, what: string, error: unknown) => void) {}

  on(event: string, plugin: string, into: Answer): void {
    entry(this.#listeners, event).set(plugin, into)
  }

  emit(event: string, data: unknown): void {
    for (const [plugin, into] of this.#listeners.get(event) ?? []) {
      into('plugin.event', { event, data }, KERNEL).catch(error => this.failed(plugin, event, error))
    }
  }

  contribute(point: string, plugin: string, into: Answer): void {
    entry(this.#points, point).set(plugin, into)
  }

  async collect(point: string): Promise<unknown[]> {
    const given = [...(this.#points.get(point) ?? [])].map(async ([plugin, into]) => {
      try {
        return [await into('plugin.contribution', { point }, KERNEL)]
      } catch (error) {
        this.failed(plugin, point, error)
        return []
      }
    })
    return (await Promise.all(given)).flat()
  }

  drop(plugin: string): void {
    for (const listeners of this.#listeners.values()) listeners.delete(plugin)
    for (const givers of this.#points.values()) givers.delete(plugin)
  }
}

const entry = (map: Map<string, Map<string, Answer>>, key: string): Map<string, Answer> =>
  map.get(key) ?? map.set(key, new Map()).get(key)!
