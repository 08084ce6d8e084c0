import type { Host } from '../../../../sdk/index.js'
import type { ConnectTools } from '../../tools/tool.js'
import type { Turn } from '../turn.js'

/** How long a person has for the form, a sign-in included. */
const FINISH_MS = 15 * 60_000

/** Has people connect what turns need. */
export class ConnectOffers {
  readonly #host: Pick<Host, 'call' | 'serves'>
  readonly #waiting = new Set<() => void>()

  constructor(host: Pick<Host, 'call' | 'serves' | 'on'>) {
    this.#host = host
    host.on('capability.connected', () => {
      for (const look of this.#waiting) look()
    })
  }

  /** What a turn can ask to have connected. */
  of(turn: Pick<Turn, 'log' | 'record' | 'forgetAnswer'>): ConnectTools {
    const cards = async () => [...(await this.#host.call('GET /capabilities/catalog')).cards]
    return {
      served: () => this.#host.serves('GET /capabilities/catalog'),
      cards,
      finished: async (requestId, signal) => {
        const asked = turn.record.card(requestId)?.row.card
        if (asked?.kind !== 'capability_offer') throw new Error(`${requestId} offers no connection`)
        const { card, connected = [] } = asked.offer
        const added = async () =>
          (await cards()).find(({ id }) => id === card)?.instances.find(id => !connected.includes(id))
        const id = await this.#once(added, AbortSignal.any([signal, AbortSignal.timeout(FINISH_MS)]))
        if (signal.aborted) return undefined
        const outcome = id === undefined ? { outcome: 'unfinished' as const } : { outcome: 'connected' as const, id }
        turn.log.push({ kind: 'capability_outcome', requestId, ...outcome })
        await turn.forgetAnswer(requestId)
        return id
      },
    }
  }

  /** What `find` finds at last, after any number of changes; undefined once the signal is aborted. */
  async #once(find: () => Promise<string | undefined>, signal: AbortSignal): Promise<string | undefined> {
    for (;;) {
      const change = Promise.withResolvers<void>()
      const resolve = () => change.resolve()
      this.#waiting.add(resolve)
      signal.addEventListener('abort', resolve, { once: true })
      try {
        const found = await find()
        if (found !== undefined || signal.aborted) return found
        await change.promise
      } finally {
        this.#waiting.delete(resolve)
        signal.removeEventListener('abort', resolve)
      }
    }
  }
}
