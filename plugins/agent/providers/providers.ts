import { refuse } from '../../../sdk/index.js'
import type { Log, Store } from '../../../sdk/index.js'
import type { ProviderAdapter } from './adapter.js'
import type { ProviderRefusal } from '../contract.js'
import type { ConnectedProviders } from './connected-providers.js'
import { refusalKind } from './refusal-kinds.js'
import type { Command, Frame } from '../turn/frames/frames.js'

const REFUSALS = 'refusals'
const USED = 'providers'
const COMMANDS = 'commands/'

/** The providers of turns, the commands each last published, and the last account each refused. */
export class Providers {
  readonly #store: Pick<Store, 'get' | 'set'>
  readonly #log: Pick<Log, 'warn'>
  readonly #adapters: Map<string, ProviderAdapter>
  /** The ids of those that need no connection. */
  readonly #fixed: ReadonlySet<string>
  readonly #connected: readonly ConnectedProviders[]
  readonly #commands = new Map<string, Command[]>()
  /** The connected providers that conversations have used. */
  readonly #used = new Set<string>()
  #default: string | undefined
  #refusals: { [provider: string]: ProviderRefusal } = {}

  constructor(
    store: Pick<Store, 'get' | 'set'>,
    log: Pick<Log, 'warn'>,
    adapters: readonly ProviderAdapter[],
    connected: readonly ConnectedProviders[] = [],
  ) {
    this.#connected = connected
    this.#store = store
    this.#log = log
    this.#adapters = new Map(adapters.map(adapter => [adapter.id, adapter]))
    this.#fixed = new Set(this.#adapters.keys())
  }

  async load(): Promise<void> {
    this.#refusals = (await this.#store.get<{ [provider: string]: ProviderRefusal }>(REFUSALS)) ?? {}
    for (const id of (await this.#store.get<string[]>(USED)) ?? []) this.#used.add(id)
    for (const id of this.#adapters.keys()) await this.#loadCommands(id)
  }

  /** Looks up these providers, and those that were used before, so that a message can name one of their models. */
  async recover(ids: readonly string[]): Promise<void> {
    for (const id of new Set([...this.#used, ...ids]))
      await this.refresh(id).catch(error =>
        this.#log.warn('refreshing a provider failed', { id, error: String(error) }),
      )
  }

  /** Looks up a connected provider, without an id the default one; call it before `get`. */
  async refresh(id: string | undefined): Promise<void> {
    if (id === undefined) return this.#refreshDefault()
    if (this.#fixed.has(id)) return
    const kind = this.#connected.find(({ prefix }) => id.startsWith(prefix))
    if (!kind) return
    const adapter = await kind.find(id.slice(kind.prefix.length))
    this.#note(id, adapter !== undefined)
    if (!adapter) return void this.#adapters.delete(id)
    if (!this.#adapters.has(id)) await this.#loadCommands(id)
    this.#adapters.set(id, adapter)
  }

  #note(id: string, used: boolean): void {
    if (this.#used.has(id) === used) return
    if (used) this.#used.add(id)
    else this.#used.delete(id)
    this.#keep(USED, [...this.#used])
  }

  /** A single connected agent or model server is the default; several have no default. */
  async #refreshDefault(): Promise<void> {
    const ids = await Promise.all(
      this.#connected.map(async ({ prefix, ready }) => (await ready()).map(name => prefix + name)),
    )
    const [only, ...others] = ids.flat()
    this.#default = others.length === 0 ? only : undefined
    if (this.#default !== undefined) await this.refresh(this.#default)
  }

  async #loadCommands(id: string): Promise<void> {
    const commands = await this.#store.get<Command[]>(COMMANDS + id)
    if (commands) this.#commands.set(id, commands)
  }

  /** A provider by id, or the default one. */
  get(id?: string): ProviderAdapter {
    if (id === undefined) return this.#adapters.get(this.#default ?? '') ?? this.#adapters.values().next().value!
    return (
      this.#adapters.get(id)
      ?? refuse(
        'unprocessable',
        `there is no provider ${JSON.stringify(id.slice(0, 120))}: expected ${[...this.#adapters.keys()].join(' or ')}`,
      )
    )
  }

  find(id: string): ProviderAdapter | undefined {
    return this.#adapters.get(id)
  }

  /** The providers that need no connection. */
  get builtIn(): ProviderAdapter[] {
    return [...this.#adapters.values()].filter(({ id }) => this.#fixed.has(id))
  }

  /** The first provider that has a model. */
  serving(model: string): ProviderAdapter | undefined {
    return [...this.#adapters.values()].find(({ models }) => models.includes(model))
  }

  /** The shortcut commands that a provider last published. */
  commands(id?: string): Command[] {
    const adapter = this.get(id)
    return [...(this.#commands.get(adapter.id) ?? adapter.commands)]
  }

  get refusals(): { [provider: string]: ProviderRefusal } {
    return structuredClone(this.#refusals)
  }

  /** Records the commands and refusals in a frame of a provider's turn; `on` is the account of its conversation. */
  heard(provider: string, frame: Frame, on?: { provider: string; id: string }): void {
    if (frame.kind === 'commands') {
      if (this.#adapters.get(provider)?.ofTree) return
      this.#commands.set(provider, frame.items)
      return this.#keep(COMMANDS + provider, frame.items)
    }
    const kind = frame.kind === 'error' ? refusalKind(frame.code) : undefined
    if (frame.kind !== 'error' || !kind) return
    const account = on?.provider === provider && { account: on.id }
    this.#refusals = { ...this.#refusals, [provider]: { at: Date.now(), kind, message: frame.message, ...account } }
    this.#keep(REFUSALS, this.#refusals)
  }

  /** A provider answered a turn: clears its last refusal. */
  answered(provider: string): void {
    if (!this.#refusals[provider]) return
    const { [provider]: _over, ...rest } = this.#refusals
    this.#refusals = rest
    this.#keep(REFUSALS, rest)
  }

  #keep(key: string, value: unknown): void {
    this.#store
      .set(key, value)
      .catch(error => this.#log.warn('storing what a provider published failed', { key, error: String(error) }))
  }
}
