import { signal, type Signal } from '@preact/signals-core'

/** An answer of the daemon as a page shows it. */
export interface QueryState<T> {
  readonly data?: T
  readonly error?: unknown
  /** The time of the data; it is older than a change if `stale`. */
  readonly at?: number
  readonly stale: boolean
}

interface Entry {
  readonly state: Signal<QueryState<unknown>>
  readonly domains: ReadonlySet<string>
  read: () => Promise<unknown>
  watchers: number
  reading: boolean
  again: boolean
}

const entries = new Map<string, Entry>()
/** Unwatched entries are kept for returning to a page. */
const KEPT = 50

/** How often everything was read again: what is too large to be kept here follows it. */
export const refetchedAll = signal(0)

const read = async (entry: Entry): Promise<void> => {
  if (entry.reading) {
    entry.again = true
    return
  }
  entry.reading = true
  do {
    entry.again = false
    try {
      entry.state.value = { data: await entry.read(), at: Date.now(), stale: false }
    } catch (error) {
      entry.state.value = { ...entry.state.value, error, stale: true }
    }
  } while (entry.again)
  entry.reading = false
}

const trim = (): void => {
  const idle = [...entries].filter(([, { watchers }]) => watchers === 0)
  for (const [key] of idle.slice(0, Math.max(0, idle.length - KEPT))) entries.delete(key)
}

/**
 * Watches an answer: it is read now, and again when one of its domains changes.
 *
 * @returns The function that ends the watching.
 */
export const watchQuery = <T>(
  key: string,
  domains: readonly string[],
  reader: () => Promise<T>,
): { readonly state: Signal<QueryState<T>>; readonly stop: () => void } => {
  const entry = entries.get(key) ?? {
    state: signal<QueryState<unknown>>({ stale: true }),
    domains: new Set(domains),
    read: reader,
    watchers: 0,
    reading: false,
    again: false,
  }
  entries.delete(key)
  entries.set(key, entry)
  entry.read = reader
  entry.watchers += 1
  void read(entry)
  return {
    state: entry.state as Signal<QueryState<T>>,
    stop: () => {
      entry.watchers -= 1
      trim()
    },
  }
}

/** Refetches the visible queries of these domains; the others are refetched when they are shown next. */
export const refetch = (domains: ReadonlySet<string> | 'all'): void => {
  if (domains === 'all') refetchedAll.value += 1
  for (const entry of entries.values()) {
    if (domains !== 'all' && ![...entry.domains].some(domain => domains.has(domain))) continue
    entry.state.value = { ...entry.state.peek(), stale: true }
    if (entry.watchers > 0) void read(entry)
  }
}

/** Forgets every answer. */
export const dropQueries = (): void => {
  for (const [key, entry] of entries) {
    entry.state.value = { stale: true }
    if (entry.watchers === 0) entries.delete(key)
    else void read(entry)
  }
}
