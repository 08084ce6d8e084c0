import type { Off } from './node/extension/host.js'
import type { UiEvents, UiHost, UiModule, UiRequest, UiSettings, UiSurface, UiTheme } from './ui-host.js'

/** What a page is started with. */
export interface PageStart {
  readonly id: string
  readonly surface: UiSurface
  readonly theme: UiTheme
  readonly settings: UiSettings
}

/** What the console sends to a page. */
export type ConsoleMessage =
  | { readonly kind: 'answer'; readonly ask: number; readonly value?: unknown }
  | { readonly kind: 'refused'; readonly ask: number; readonly message: string; readonly reason?: string }
  | { readonly kind: 'event'; readonly name: keyof UiEvents; readonly value: unknown }
  | { readonly kind: 'ping' }

/** What a page sends to the console: each message is JSON text of at most 8 MiB. */
export type PageMessage =
  | { readonly kind: 'call'; readonly ask: number; readonly entry: string; readonly input?: unknown }
  | { readonly kind: 'fetch'; readonly ask: number; readonly path: string; readonly request: UiRequest }
  | { readonly kind: 'read'; readonly ask: number; readonly from: number; readonly to: number }
  | { readonly kind: 'badge'; readonly count: number }
  | { readonly kind: 'resize'; readonly height: number }
  | { readonly kind: 'open'; readonly place: string }
  | { readonly kind: 'active' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'pong' }

/** The part of a `MessagePort` that a page uses. */
export interface PagePort {
  postMessage(message: string): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  start(): void
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** The host of a page whose console is at the other end of a port. */
export const pageHost = (port: PagePort, start: PageStart): UiHost => {
  const send = (message: PageMessage): void => port.postMessage(JSON.stringify(message))
  const waiting = new Map<number, Waiting>()
  const listeners = new Map<keyof UiEvents, Set<(value: never) => void>>()
  const now = { surface: start.surface, theme: start.theme, settings: start.settings }
  let asked = 0
  const ask = (message: (ask: number) => PageMessage): Promise<unknown> =>
    new Promise((resolve, reject) => {
      asked += 1
      send(message(asked))
      waiting.set(asked, { resolve, reject })
    })
  const settle = (number: number): Waiting | undefined => {
    const found = waiting.get(number)
    waiting.delete(number)
    return found
  }
  const hear = (message: ConsoleMessage): void => {
    if (message.kind === 'ping') send({ kind: 'pong' })
    else if (message.kind === 'answer') settle(message.ask)?.resolve(message.value)
    else if (message.kind === 'refused')
      settle(message.ask)?.reject(Object.assign(new Error(message.message), { reason: message.reason }))
    else {
      if (message.name in now) Object.assign(now, { [message.name]: message.value })
      for (const listener of listeners.get(message.name) ?? []) listener(message.value as never)
    }
  }
  port.addEventListener('message', ({ data }) => hear(data as ConsoleMessage))
  return {
    id: start.id,
    get surface() {
      return now.surface
    },
    get theme() {
      return now.theme
    },
    get settings() {
      return now.settings
    },
    call: (entry, ...[input]) =>
      ask(number => ({ kind: 'call', ask: number, entry, ...(input !== undefined && { input }) })) as never,
    fetch: (path, request = {}) => ask(number => ({ kind: 'fetch', ask: number, path, request })),
    read: (from, to) => ask(number => ({ kind: 'read', ask: number, from, to })) as Promise<Uint8Array>,
    on: (event, listener): Off => {
      const all = listeners.get(event) ?? new Set()
      listeners.set(event, all.add(listener as (value: never) => void))
      return () => void all.delete(listener as (value: never) => void)
    },
    badge: count => send({ kind: 'badge', count }),
    resize: height => send({ kind: 'resize', height }),
    open: place => send({ kind: 'open', place }),
  }
}

/** Runs the module of a page, and tells the console how that went. */
export const activatePage = async (
  port: PagePort,
  start: PageStart,
  load: () => Promise<Partial<UiModule>>,
): Promise<void> => {
  const send = (message: PageMessage): void => port.postMessage(JSON.stringify(message))
  const host = pageHost(port, start)
  port.start()
  try {
    const module = await load()
    if (typeof module.activate !== 'function') throw new Error('the page does not export activate(host)')
    await module.activate(host)
    send({ kind: 'active' })
  } catch (error) {
    send({ kind: 'failed', message: (error instanceof Error ? error.message : String(error)).slice(0, 1000) })
  }
}
