import type { Store } from '../../../sdk/index.js'
import type { ProviderDefinition } from '../../providers/contract.js'
import type { StandingRefusal } from '../contract.js'

/** A refusal, and when it falls. */
interface KeptRefusal extends StandingRefusal {
  readonly until: number
}
/** A refusal as a turn met it. */
export interface MetRefusal {
  readonly provider: string
  readonly account?: string
  readonly kind: StandingRefusal['kind']
  readonly message: string
  /** Of a limit: when it opens again. */
  readonly resetsAt?: number
}

const KEY = 'refusals/'
const STANDS_MS = 7 * 86_400_000
/** How long a limit counts of which nobody says when it opens again. */
const LIMIT_MS = 900_000

/** The kind of a refusal: as the definition reads the provider's words, else as the turn understood it. */
const kindOf = ({ message, kind }: MetRefusal, { refusals = [] }: Pick<ProviderDefinition, 'refusals'>) =>
  refusals.find(({ match }) => message.toLowerCase().includes(match.toLowerCase()))?.kind ?? kind

/** The last refusal of each provider and of each account, while it stands. */
export class Refusals {
  readonly #store: Pick<Store, 'get' | 'set' | 'delete' | 'all'>
  readonly #kept = new Map<string, KeptRefusal>()

  constructor(store: Pick<Store, 'get' | 'set' | 'delete' | 'all'>) {
    this.#store = store
  }

  async load(): Promise<void> {
    for (const [key, value] of await this.#store.all<KeptRefusal>(KEY)) this.#kept.set(key.slice(KEY.length), value)
  }

  /** The refusal that stands for an account, or for a whole provider. */
  read(provider: string, account?: string): (StandingRefusal & { until: number }) | undefined {
    const found = this.#kept.get(nameOf(provider, account))
    return found && found.until > Date.now() ? { ...found } : undefined
  }

  async record(met: MetRefusal, definition: Pick<ProviderDefinition, 'refusals'>): Promise<StandingRefusal> {
    const { provider, account, message, resetsAt } = met
    const at = Date.now()
    const kind = kindOf(met, definition)
    const until = kind === 'limit' ? (resetsAt ?? at + LIMIT_MS) : at + STANDS_MS
    const kept = { at, kind, message, ...(account !== undefined && { account }), until }
    await this.#keep(nameOf(provider), kept)
    if (account !== undefined) await this.#keep(nameOf(provider, account), kept)
    return kept
  }

  /** Forgets what an account was refused, and with it what the provider refused last if that was this. */
  async clear(provider: string, account?: string): Promise<boolean> {
    const names = [
      ...(account !== undefined ? [nameOf(provider, account)] : []),
      ...(this.#kept.get(nameOf(provider))?.account === account ? [nameOf(provider)] : []),
    ].filter(name => this.#kept.has(name))
    for (const name of names) {
      this.#kept.delete(name)
      await this.#store.delete(KEY + name)
    }
    return names.length > 0
  }

  async #keep(name: string, refusal: KeptRefusal): Promise<void> {
    this.#kept.set(name, refusal)
    await this.#store.set(KEY + name, refusal)
  }
}

const nameOf = (provider: string, account?: string): string =>
  account === undefined ? provider : `${provider}/${account}`
