import type { Caller } from '../../../sdk/index.js'
import type { KnownKinds } from '../kinds/kinds.js'
import type { RecordedEntry } from '../records/entries.js'
import { CARDS, CATEGORIES } from './cards.js'
import type { Catalog } from './contract.js'

/** Whether a caller may know what is connected: a maintainer, or another group by itself. */
const mayKnow = ({ role, kind }: Pick<Caller, 'role' | 'kind'>): boolean =>
  kind === 'plugin' || (kind === 'session' && (role === 'maintainer' || role === 'owner'))

/** Every card, with what is connected of it for those who may know. */
export const catalogFor = (
  caller: Pick<Caller, 'role' | 'kind'>,
  entries: readonly RecordedEntry[],
  others: Pick<KnownKinds, 'cards' | 'categories'>,
): Catalog => ({
  cards: [...CARDS, ...others.cards].map(({ id, name, kind, category, description, hint, fields }) => {
    const instances = mayKnow(caller)
      ? entries.filter(entry => (entry.handler?.card?.(entry.config) ?? entry.kind) === id).map(entry => entry.id)
      : []
    return {
      id,
      name,
      kind,
      category,
      description,
      ...(hint !== undefined && { hint }),
      fields: fields.map(field => ({ ...field })),
      singleton: false,
      requires: [],
      available: true,
      connected: instances.length > 0,
      instances,
    }
  }),
  categories: [...CATEGORIES, ...others.categories.filter(({ id }) => CATEGORIES.every(own => own.id !== id))].map(
    category => ({ ...category }),
  ),
})
