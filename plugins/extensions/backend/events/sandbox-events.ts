import type { Host } from '../../../../sdk/index.js'
import { refuse, ignored } from '../../../../sdk/index.js'
import type { ExtensionRecords } from '../../runtime.js'
import type { ExtensionBackend } from '../backend.js'
import { deny } from '../../../../sdk/node/extension/denied.js'
import type { HostHandlers } from '../operations.js'
import type { PublishedEvents } from './published-events.js'

type Listener = (event: object) => void

const MOST_SUBSCRIPTIONS = 100
/** The maximum number of unread events of an extension; further ones are dropped. */
const MOST_UNTAKEN = 64
const RETRY_MS = 1_000
/** Kinds of events that are sent only while somebody watches the board. */
const OF_BOARD = new Set(['agent', 'agents', 'attention'])

/** The events of the sandbox, received once for all extensions, and those that extensions publish. */
export class SandboxEvents {
  readonly #host: Pick<Host, 'call' | 'log' | 'serves'>
  readonly #listeners = new Map<string, Set<Listener>>()
  #watching: AbortController | undefined
  #board: AbortController | undefined

  constructor(host: Pick<Host, 'call' | 'log' | 'serves'>, published: PublishedEvents) {
    this.#host = host
    published.onPublished = (id, { name, data }) => this.#notify(`ext.${id}.${name}`, { name, data })
  }

  /** Calls the listener with each event of a kind until the answered function is called. */
  on(kind: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(kind) ?? new Set()
    this.#listeners.set(kind, listeners)
    listeners.add(listener)
    if (!this.#watching && !kind.startsWith('ext.')) void this.#watch()
    if (!this.#board && OF_BOARD.has(kind)) void this.#attend()
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(kind)
      const left = [...this.#listeners.keys()]
      if (!left.some(other => OF_BOARD.has(other))) this.#leave()
      if (!left.some(other => !other.startsWith('ext.'))) this.close()
    }
  }

  close(): void {
    this.#leave()
    this.#watching?.abort()
    this.#watching = undefined
  }

  #leave(): void {
    this.#board?.abort()
    this.#board = undefined
  }

  /** Has the board read though no client may watch it. */
  async #attend(): Promise<void> {
    const { signal } = (this.#board = new AbortController())
    if (!(await this.#host.serves('stream.board'))) return
    try {
      for await (const _ of await this.#host.call('stream.board', undefined, { signal })) continue
    } catch (error) {
      if (!signal.aborted) this.#host.log.warn('watching the board failed', { error: String(error) })
    }
  }

  async #watch(): Promise<void> {
    const watching = (this.#watching = new AbortController())
    while (!watching.signal.aborted) {
      try {
        for await (const event of await this.#host.call('kernel.events.watch', undefined, { signal: watching.signal }))
          this.#notify(event.kind, event)
      } catch (error) {
        if (!watching.signal.aborted) this.#host.log.warn('watching events failed', { error: String(error) })
      }
      if (!watching.signal.aborted) await new Promise(resolve => setTimeout(resolve, RETRY_MS).unref())
    }
  }

  #notify(kind: string, event: object): void {
    for (const listener of this.#listeners.get(kind) ?? []) listener(event)
  }
}

/** The operations that subscribe one backend, and the function that ends its subscriptions. */
export const eventOperations = (
  events: SandboxEvents,
  backend: ExtensionBackend,
  records: Pick<ExtensionRecords, 'used'>,
): {
  readonly handlers: Pick<HostHandlers, `events.${'on' | 'off'}` | `files.${'watch' | 'unwatch'}`>
  readonly end: () => void
} => {
  const watches = new Map<number, () => void>()
  const subscriptions = new Map<number, () => void>()
  let untaken = 0
  const send = (subscription: number) => (event: object) => {
    const link = backend.process?.link
    if (!link || untaken >= MOST_UNTAKEN) return
    untaken++
    link
      .request('event', { subscription, event })
      .catch(ignored('its process has ended'))
      .finally(() => untaken--)
  }
  const changed = (watch: number, glob: string) => (event: object) => {
    const seen = backend.entries.watched(glob, event)
    if (seen.length > 0)
      void backend.process?.link.request('files', { watch, paths: seen }).catch(ignored('its process has ended'))
  }
  return {
    handlers: {
      'events.on': ({ subscription, kind }) => {
        const entry = backend.entries.event(kind) ?? deny(`event:${kind}`)
        if (subscriptions.has(subscription) || subscriptions.size >= MOST_SUBSCRIPTIONS)
          refuse('too-many', `expected at most ${MOST_SUBSCRIPTIONS} subscriptions`)
        subscriptions.set(subscription, events.on(kind, send(subscription)))
        records.used(backend.extension.id, entry)
        return {}
      },
      'events.off': ({ subscription }) => {
        subscriptions.get(subscription)?.()
        subscriptions.delete(subscription)
        return {}
      },
      'files.watch': ({ watch, glob }) => {
        if (!backend.entries.mayWatch(glob)) deny(`fs:read:${glob}`)
        if (watches.has(watch) || watches.size >= MOST_SUBSCRIPTIONS)
          refuse('too-many', `expected at most ${MOST_SUBSCRIPTIONS} watches`)
        watches.set(watch, events.on('workspaceChanged', changed(watch, glob)))
        return {}
      },
      'files.unwatch': ({ watch }) => {
        watches.get(watch)?.()
        watches.delete(watch)
        return {}
      },
    },
    end: () => {
      for (const off of watches.values()) off()
      for (const off of subscriptions.values()) off()
      subscriptions.clear()
    },
  }
}
