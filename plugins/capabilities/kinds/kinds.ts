import { refuse, Refusal, type Host } from '../../../sdk/index.js'
import type { ActionCarrier, ActionEnd } from '../actions/contract.js'
import type { ConnectionCard } from '../cards/cards.js'
import type { CardCategory } from '../cards/contract.js'
import { CAPABILITIES_FILE } from '../records/capability-file.js'
import type { CapabilityStatus } from '../records/contract.js'
import type { ForwardedKind } from '../records/forwards.js'
import type { KindActions, KindHandler, OpenEntry } from '../records/kinds.js'
import type { GroupKeptKind, KindEntry, KindStep, StoredKind } from './contract.js'

/** Who serves the kinds of connections that are known. */
export interface KnownKinds {
  readonly handlers: ReadonlyMap<string, KindHandler>
  /** The kinds whose connections another group keeps. */
  readonly forwards: ReadonlyMap<string, ForwardedKind>
  /** Cards of the kinds of other groups, and their categories. */
  readonly cards: readonly ConnectionCard[]
  readonly categories: readonly CardCategory[]
}

type KindsHost = Pick<Host, 'collect' | 'through'>

/** The kinds that this group serves, and those that other groups contribute. */
export class Kinds {
  readonly #host: KindsHost
  readonly #own: KnownKinds

  constructor(host: KindsHost, own: readonly KindHandler[]) {
    this.#host = host
    this.#own = { handlers: new Map(own.map(one => [one.kind, one])), forwards: new Map(), cards: [], categories: [] }
  }

  /** What serves these kinds; the other groups are asked only where one of them is not this group's own. */
  async of(kinds: Iterable<string>): Promise<KnownKinds> {
    return [...kinds].every(kind => this.#own.handlers.has(kind)) ? this.#own : this.all()
  }

  /** Refuses what is not of this kind for the id of a connection whose entry was changed by hand: its secrets stay. */
  async assertUnclaimed(id: string, kind?: string): Promise<void> {
    for (const handler of this.#own.handlers.values())
      if (handler.kind !== kind && (await handler.claims?.(id)))
        refuse(
          'conflict',
          `${id} is of kind ${handler.kind}, and its entry in ${CAPABILITIES_FILE} was removed or changed by hand: `
            + 'put it back, or choose another id',
        )
  }

  /** Every kind; the first of two contributions to one kind counts. */
  async all(): Promise<KnownKinds> {
    const handlers = new Map(this.#own.handlers)
    const forwards = new Map<string, ForwardedKind>()
    const cards: ConnectionCard[] = []
    const categories: CardCategory[] = []
    for (const given of (await this.#host.collect('capabilities.kinds')).flat()) {
      if (handlers.has(given.kind) || forwards.has(given.kind)) continue
      if (given.storedBy === 'group') {
        forwards.set(given.kind, forwardOf(this.#host, given))
        continue
      }
      handlers.set(given.kind, handlerOf(this.#host, given))
      cards.push({ ...given.card, id: given.card.id ?? given.kind, kind: given.kind })
      if (given.category && categories.every(({ id }) => id !== given.category!.id)) categories.push(given.category)
    }
    return { handlers, forwards, cards, categories }
  }
}

/** A call that a contribution names; its group answers in the shape that `KindCalls` asks for. */
const ask = async <T>(host: KindsHost, call: string, input: object, signal?: AbortSignal): Promise<T> =>
  (await host.through('capabilities.kinds', call, input, signal && { signal })) as T

const forwardOf = (host: KindsHost, { calls }: GroupKeptKind): ForwardedKind => ({
  apply: async given => ({ status: await ask<CapabilityStatus>(host, calls.connect, given), log: [] }),
  status: id => ask<CapabilityStatus>(host, calls.status, { id }),
})

const contributedActions = (host: KindsHost, check: string, carryOut: string): KindActions => ({
  check: async ({ id, config, secrets }, action) =>
    ask<ActionCarrier>(host, check, { id, config: { ...config }, secrets, action }).catch((error: unknown) => ({
      problem: Refusal.from(error).message,
    })),
  carryOut: ({ id, config, secrets }, action, { idempotencyKey, signal }) =>
    ask<ActionEnd>(host, carryOut, { id, config: { ...config }, secrets, action, idempotencyKey }, signal),
})

const handlerOf = (host: KindsHost, given: StoredKind): KindHandler => {
  const { kind, card, mainSecret, calls, largestSecret, applyMs } = given
  const { release } = calls
  const secret = card.fields.filter(field => field.secret).map(({ key }) => key)
  const known = card.fields.map(({ key }) => key)
  const whole = ({ id, config, secrets }: OpenEntry): KindEntry => ({ id, config: { ...config }, secrets })
  return {
    kind,
    ...(largestSecret !== undefined && { largestSecret }),
    ...(applyMs !== undefined && { applyMs }),
    ...(card.singleton && { singleton: true as const }),
    ...(card.requires && { requires: card.requires }),
    secretFields: () => secret,
    mainSecret: () => mainSecret,
    label: () => undefined,
    card: () => card.id ?? kind,
    check: async entry => {
      const other = Object.keys({ ...entry.config, ...entry.secrets }).find(field => !known.includes(field))
      if (other !== undefined)
        refuse('invalid', `config.${other}: expected only ${known.join(', ')} for a connection of kind ${kind}`)
      await ask(host, calls.check, whole(entry))
    },
    apply: async (entry, report, signal) => {
      let status: CapabilityStatus | undefined
      for await (const step of await ask<AsyncIterable<KindStep>>(host, calls.apply, whole(entry), signal)) {
        if (step.kind === 'log') report(step.message)
        else status = step.status
      }
      return status ?? { state: 'error', detail: 'its group did not say how it is', checkedAt: Date.now() }
    },
    probe: ({ id, config }, signal) => ask<CapabilityStatus>(host, calls.status, { id, config: { ...config } }, signal),
    ...(release !== undefined && { release: id => ask<void>(host, release, { id }) }),
    forget: id => ask<void>(host, calls.forget, { id }),
    rename: (id, to) => ask<void>(host, calls.rename, { id, to }),
    ...(calls.checkAction !== undefined
      && calls.carryOut !== undefined && { actions: contributedActions(host, calls.checkAction, calls.carryOut) }),
  }
}
