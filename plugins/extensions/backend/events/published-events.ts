import { refuse } from '../../../../sdk/index.js'

/** An event that an extension published. */
export interface PublishedEvent {
  readonly name: string
  readonly data: unknown
}

const MOST_BYTES = 16 * 1024
const PER_SECOND = 20
/** The maximum number of unread events of a slow reader; older ones are dropped. */
const WAITING = 64

interface Reader {
  readonly waiting: PublishedEvent[]
  wake: () => void
}

/** The events that extensions publish, for other extensions and readers of `GET /x/<id>/_events`. */
export class PublishedEvents {
  readonly #readers = new Map<string, Set<Reader>>()
  readonly #sent = new Map<string, { at: number; count: number }>()
  /** Called with each event. */
  onPublished: (id: string, event: PublishedEvent) => void = () => {}

  publish(id: string, event: PublishedEvent): void {
    const size = Buffer.byteLength(JSON.stringify(event.data) ?? '')
    if (size > MOST_BYTES) refuse('too-large', `data: expected at most ${MOST_BYTES} bytes, found ${size}`)
    const now = performance.now()
    const sent = this.#sent.get(id)
    if (!sent || now - sent.at >= 1_000) this.#sent.set(id, { at: now, count: 1 })
    else if (++sent.count > PER_SECOND) refuse('too-many', `expected at most ${PER_SECOND} events a second`)
    for (const reader of this.#readers.get(id) ?? []) {
      reader.waiting.push(event)
      if (reader.waiting.length > WAITING) reader.waiting.shift()
      reader.wake()
    }
    this.onPublished(id, event)
  }

  /** The events of an extension from now on, as data of a stream. */
  async *read(id: string, signal: AbortSignal): AsyncGenerator<{ data: PublishedEvent }, void> {
    const reader: Reader = { waiting: [], wake: () => {} }
    const readers = this.#readers.get(id) ?? new Set()
    this.#readers.set(id, readers)
    readers.add(reader)
    const stop = () => reader.wake()
    signal.addEventListener('abort', stop, { once: true })
    try {
      while (!signal.aborted) {
        for (let event = reader.waiting.shift(); event; event = reader.waiting.shift()) yield { data: event }
        if (signal.aborted || reader.waiting.length > 0) continue
        await new Promise<void>(resolve => (reader.wake = resolve))
      }
    } finally {
      signal.removeEventListener('abort', stop)
      readers.delete(reader)
      if (readers.size === 0) this.#readers.delete(id)
    }
  }
}
