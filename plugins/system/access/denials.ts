import type { Host } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'

const WINDOW = 10 * 60_000
const ADDRESSES = 10_000

interface Streak {
  since: number
  further: number
  credential: string
}

/**
 * Merges consecutive failures of an address into two entries: the first at once, the rest together at the end of a
 * period.
 */
export class Denials {
  readonly #tell: (address: string, credential: string, count: number) => void
  readonly #now: () => number
  readonly #streaks = new Map<string, Streak>()

  constructor(tell: (address: string, credential: string, count: number) => void, now: () => number) {
    this.#tell = tell
    this.#now = now
  }

  /** Counts a credential that was refused. */
  add(address: string, credential: string): void {
    this.sweep()
    const found = this.#streaks.get(address)
    if (found) {
      found.further += 1
      found.credential = credential
      return
    }
    if (this.#streaks.size >= ADDRESSES) this.#end(this.#streaks.keys().next().value!)
    this.#streaks.set(address, { since: this.#now(), further: 0, credential })
    this.#tell(address, credential, 1)
  }

  /** Reports the counts of ended periods, oldest first; with `all` those of every address. */
  sweep(all = false): void {
    for (const [address, { since }] of this.#streaks) {
      // A clock that was set back ends a period.
      if (!all && this.#now() - since < WINDOW && since <= this.#now()) return
      this.#end(address)
    }
  }

  #end(address: string): void {
    const { further, credential } = this.#streaks.get(address)!
    this.#streaks.delete(address)
    if (further > 0) this.#tell(address, credential, further)
  }
}

/** Records refused credentials; the returned function counts a refusal of this group. */
export const recordDenials = (
  host: Pick<Host, 'call' | 'serves' | 'log' | 'on' | 'signal' | 'stopping'>,
): Denials['add'] => {
  const write = (address: string, credential: string, count: number) =>
    record(host, {
      type: 'access.denied',
      direction: 'in',
      outcome: 'error',
      actor: 'stranger',
      source: 'access.denied',
      extra: { address, credential, count },
    })
  const writing = new Set<Promise<void>>()
  const denials = new Denials((address, credential, count) => {
    const written = write(address, credential, count).finally(() => writing.delete(written))
    writing.add(written)
  }, Date.now)
  host.on('credential.refused', ({ address, credential }) => denials.add(address, credential))
  const timer = setInterval(() => denials.sweep(), WINDOW / 10).unref()
  host.signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  host.stopping(async () => {
    denials.sweep(true)
    await Promise.all(writing)
  })
  return (address, credential) => denials.add(address, credential)
}
