import { randomBytes } from 'node:crypto'
import { Refusal, type Host } from '../../../sdk/index.js'
import type { Hidden } from '../../../sdk/node/access/mask-forms.js'
import { Masker } from '../../../sdk/node/access/masker.js'
import { isBoundTo, type BoundTarget, type BoundTraffic } from '../../../sdk/node/network/bound-traffic.js'
import { written, type Target } from '../../../sdk/node/network/host-form.js'
import type { BoundSecret, SecretLane } from '../../secrets/contract.js'

/** Who uses stored values. */
export interface ReferenceUser {
  readonly conversationId: string
  readonly run: string
  readonly persona?: string
  /** The connections whose fields may be used; default: all. */
  readonly capabilities?: string[]
}

/** The dependencies of filling in bound values. */
export interface BoundValuesDeps {
  readonly host: Pick<Host, 'call' | 'serves'>
  /** Whether `networkAllow` names a target: only there a value is sent without TLS. */
  readonly named: (target: Target) => Promise<boolean>
  /** Called once a turn for each value whose placeholder went to a host that the value is not bound to. */
  readonly misdirected: (user: ReferenceUser, name: string, host: string, sentence: string) => void
}

interface Placeholder extends BoundSecret {
  readonly lane: SecretLane
}

/** A value as the proxy reads it in bodies: in bytes, one a character, of each coding that answers have. */
const inBytes = (name: string, value: string): Hidden[] => {
  const wide = Buffer.from(value, 'utf16le')
  const codings = [Buffer.from(value), wide, Buffer.from(wide).swap16()]
  return [{ name, value }, ...codings.map(bytes => ({ name, value: bytes.toString('latin1') }))]
}

interface Masked {
  readonly key: string
  readonly masker: Masker
}

/** The placeholders of one turn. */
export class TurnPlaceholders implements BoundTraffic {
  readonly #deps: BoundValuesDeps
  readonly #user: ReferenceUser
  readonly #known = new Map<string, Placeholder>()
  readonly #noted = new Set<string>()
  readonly #told = new Set<string>()
  readonly #maskers = new Map<string, Masked>()
  /** The random seed that they are derived from. */
  readonly seed = randomBytes(32).toString('base64url')

  constructor(deps: BoundValuesDeps, user: ReferenceUser) {
    this.#deps = deps
    this.#user = user
  }

  /** Adds values whose placeholders the turn gets. */
  add(bound: readonly BoundSecret[], lane: SecretLane): void {
    for (const each of bound) this.#known.set(each.placeholder, { ...each, lane })
  }

  opens(host: string): boolean {
    return this.#boundTo(host).length > 0
  }

  async fill(placeholders: readonly string[], to: BoundTarget): Promise<ReadonlyMap<string, string>> {
    const values = new Map<string, string>()
    for (const placeholder of placeholders) {
      const known = this.#known.get(placeholder)
      if (!known) continue
      const why = await this.#whyNot(known, to)
      const value = why === undefined ? await this.#value(known, to) : undefined
      if (value === undefined) this.#tell(known, to, why ?? 'it was removed or bound to other hosts meanwhile')
      else values.set(placeholder, value)
    }
    return values
  }

  async masker(host: string): Promise<Masker> {
    const names = new Set(this.#boundTo(host).map(({ name }) => name))
    const { values, revision } = await this.#deps.host.call('secrets.values')
    const key = `${revision} ${[...names].join(' ')}`
    const known = this.#maskers.get(host)
    if (known?.key === key) return known.masker
    const hidden = values.filter(({ name }) => names.has(name)).flatMap(({ name, value }) => inBytes(name, value))
    const masker = new Masker(hidden)
    this.#maskers.set(host, { key, masker })
    return masker
  }

  #boundTo(host: string): Placeholder[] {
    return [...this.#known.values()].filter(({ hosts }) => isBoundTo(hosts, host))
  }

  async #whyNot({ hosts }: Placeholder, to: BoundTarget): Promise<string | undefined> {
    if (!isBoundTo(hosts, to.host)) return `it is bound to ${hosts.slice(0, 5).join(', ')}`
    if (to.secure || (await this.#deps.named(to))) return undefined
    return 'it goes there only over TLS, and without it only to hosts that networkAllow names'
  }

  async #value({ name, lane }: Placeholder, { host, method }: BoundTarget): Promise<string | undefined> {
    const noted = this.#noted.has(`${name} ${host}`)
    const detail = `${method} ${host}`.slice(0, 80)
    const { value } = await this.#deps.host.call('secrets.atHost', { ...this.#user, name, host, lane, detail, noted })
    if (value !== undefined) this.#noted.add(`${name} ${host}`)
    return value
  }

  #tell({ name }: Placeholder, to: BoundTarget, why: string): void {
    const told = `${name} ${to.host}`
    if (this.#told.has(told)) return
    this.#told.add(told)
    const sentence = `a request to ${written(to)} carries a placeholder in place of {{secret:${name}}}: ${why}`
    this.#deps.misdirected(this.#user, name, written(to), sentence)
  }
}

/** The placeholders of live turns for values that are bound to hosts. */
export class BoundValues {
  readonly #deps: BoundValuesDeps
  readonly #turns = new Map<string, TurnPlaceholders>()

  constructor(deps: BoundValuesDeps) {
    this.#deps = deps
  }

  /** The placeholders of a turn, which hold until it ends. */
  of({ ended, ...user }: ReferenceUser & { readonly ended: Promise<void> }): TurnPlaceholders {
    const { conversationId } = user
    const placeholders = new TurnPlaceholders(this.#deps, user)
    this.#turns.set(conversationId, placeholders)
    void ended.then(() => this.#turns.get(conversationId) === placeholders && this.#turns.delete(conversationId))
    return placeholders
  }

  /** The values to fill into the requests of a conversation now. */
  traffic(conversationId: string): BoundTraffic | undefined {
    return this.#turns.get(conversationId)
  }

  /** Whether the sandbox has a bound value, so that programs must trust the proxy that ends their TLS. */
  async some(): Promise<boolean> {
    const { host } = this.#deps
    if (!(await host.serves('secrets.names'))) return false
    // Without its group, as while the daemon stops, no value is filled in.
    return host.call('secrets.names').then(
      ({ bound }) => bound,
      error => Refusal.from(error).reason !== 'unavailable' && Promise.reject(error),
    )
  }
}
