import type { Host } from '../../sdk/index.js'
import type { KeptEntry, StoredEvent } from './stored.js'

/** How many events of an issue are kept: the first, and the newest. */
export const MOST_KEPT = 200
const MOST_ENTRIES = 2 * MOST_KEPT
/** How long events are kept. */
export const KEPT_MS = 90 * 24 * 3_600_000

/** The events among some entries, each once and with its feedback, the newest first. */
export const eventsIn = (entries: readonly KeptEntry[], now: number): StoredEvent[] => {
  const found = new Map<string, StoredEvent>()
  for (const entry of entries) {
    if ('event' in entry) {
      if (entry.event.receivedAt > now - KEPT_MS && !found.has(entry.event.id)) found.set(entry.event.id, entry.event)
    } else {
      const { event, text } = entry.feedback
      const known = found.get(event)
      if (known) found.set(event, { ...known, feedback: text })
    }
  }
  const events = [...found.values()].sort((one, other) => other.receivedAt - one.receivedAt)
  return events.length > MOST_KEPT ? [...events.slice(0, MOST_KEPT - 1), events.at(-1)!] : events
}

/** The journals with the kept events, one for each issue. */
export class KeptEvents {
  readonly #journal: Host['journal']

  constructor(journal: Host['journal']) {
    this.#journal = journal
  }

  /** The entries of an issue, oldest first. */
  read(issue: string): Promise<KeptEntry[]> {
    return this.#journal.read<KeptEntry>(nameOf(issue))
  }

  /** Adds entries to the `before` ones of an issue and returns how many there are then; drops events not to be kept. */
  async add(issue: string, before: number, entries: readonly KeptEntry[], now: number): Promise<number> {
    if (entries.length === 0) return before
    if (before + entries.length <= MOST_ENTRIES) {
      await this.#journal.append(nameOf(issue), entries)
      return before + entries.length
    }
    return this.#shorten(issue, [...(await this.read(issue)), ...entries], now)
  }

  /** Drops the events of an issue that are too old, and returns how many entries are left. */
  async prune(issue: string, now: number): Promise<number> {
    return this.#shorten(issue, await this.read(issue), now)
  }

  async #shorten(issue: string, entries: readonly KeptEntry[], now: number): Promise<number> {
    const events = eventsIn(entries, now).reverse()
    if (events.length === 0) await this.remove(issue)
    else
      await this.#journal.rewrite(
        nameOf(issue),
        events.map(event => ({ event }) satisfies KeptEntry),
      )
    return events.length
  }

  async remove(issue: string): Promise<void> {
    await this.#journal.remove(nameOf(issue))
  }
}

const nameOf = (issue: string): string => `kept/${issue}`
