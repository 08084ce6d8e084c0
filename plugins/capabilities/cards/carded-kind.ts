import { refuse } from '../../../sdk/index.js'
import type { ShownConfig } from '../records/contract.js'
import type { KindHandler, OpenEntry } from '../records/kinds.js'
import { assertFields, unfolded, withoutCard, type OfferedCards } from './offered-cards.js'

const NAMED = 'card'

/** A kind whose connections are made from fields of its own, or from the card of an extension that stands for them. */
export const cardedKind = (
  kind: KindHandler,
  cards: Pick<OfferedCards, 'brought' | 'mark'>,
  own: readonly string[],
): KindHandler => {
  const cardOf = (config: ShownConfig) => cards.brought(kind.kind, config)
  /** The fields of the kind itself; undefined: nothing offers the card. */
  const unfold = (entry: OpenEntry): OpenEntry | undefined => {
    if (entry.config[NAMED] === undefined) return entry
    const card = cardOf(entry.config)
    return card && unfolded(entry, card)
  }
  const whole = (entry: OpenEntry): OpenEntry =>
    unfold(entry)
    ?? refuse(
      'not-found',
      `there is no card ${JSON.stringify(String(entry.config[NAMED]).slice(0, 60))} of kind ${kind.kind}: `
        + 'see GET /capabilities/catalog',
    )
  return {
    kind: kind.kind,
    ...(kind.largestSecret !== undefined && { largestSecret: kind.largestSecret }),
    ...(kind.applyMs !== undefined && { applyMs: kind.applyMs }),
    // Of a card that nobody offers now, what is stored is known by its marker.
    secretFields: config =>
      config[NAMED] === undefined
        ? kind.secretFields(config)
        : (cardOf(config)?.fields.flatMap(({ key, secret, totp }) => (secret || totp ? [key] : [])) ?? []),
    mainSecret: config =>
      config[NAMED] === undefined
        ? kind.mainSecret(config)
        : cardOf(config)?.fields.find(({ secret, totp }) => secret && !totp)?.key,
    label: config => (config[NAMED] === undefined ? kind.label(config) : cardOf(config)?.name),
    card: config => (config[NAMED] === undefined ? kind.card?.(config) : String(config[NAMED])),
    seedField: config => cardOf(config)?.fields.find(({ totp }) => totp)?.key,
    mark: config => cards.mark(kind.kind, config),
    unfold,
    check: async entry => {
      const card = cardOf(entry.config)
      if (card) assertFields(card, entry, NAMED)
      else {
        const other = Object.keys({ ...entry.config, ...entry.secrets }).find(
          key => key !== NAMED && !own.includes(key),
        )
        if (entry.config[NAMED] === undefined && other !== undefined)
          refuse('invalid', `config.${other}: expected only ${own.join(', ')} for a connection of kind ${kind.kind}`)
      }
      await kind.check(whole(entry))
    },
    apply: (entry, report, signal) => kind.apply(whole(entry), report, signal),
    probe: async (entry, signal, thorough) => {
      const found = unfold(entry)
      return found ? kind.probe(found, signal, thorough) : withoutCard()
    },
    recorded: async entry => kind.recorded?.(whole(entry)),
    ...(kind.release && { release: id => kind.release!(id) }),
    forget: async id => kind.forget?.(id),
    rename: async (id, to) => kind.rename?.(id, to),
    busy: id => kind.busy?.(id) ?? false,
    ...(kind.actions && {
      actions: {
        check: (entry, action, asks) => kind.actions!.check(whole(entry), action, asks),
        carryOut: (entry, action, attempt) => kind.actions!.carryOut(whole(entry), action, attempt),
      },
    }),
    tools: id => kind.tools?.(id),
  }
}
