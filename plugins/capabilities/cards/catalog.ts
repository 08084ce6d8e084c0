import type { Caller } from '../../../sdk/index.js'
import { knowsConnections } from '../../../sdk/node/access/knows-connections.js'
import type { KnownKinds } from '../kinds/kinds.js'
import type { RecordedEntry } from '../records/entries.js'
import { looksOf } from './card-looks.js'
import { CATEGORIES } from './cards.js'
import type { BroughtCard, OfferedCards } from './offered-cards.js'
import type { CardCategory, Catalog } from './contract.js'

/** Every card, with what is connected of it for those who may know. */
export const catalogFor = (
  caller: Pick<Caller, 'role' | 'kind'>,
  entries: readonly RecordedEntry[],
  offered: Pick<OfferedCards, 'all' | 'categories'>,
  others: Pick<KnownKinds, 'cards' | 'categories'>,
): Catalog => ({
  cards: [...offered.all, ...others.cards].map(card => {
    const { id, name, kind, category, description, fields, singleton = false, requires = [], ...more } = card
    const given: Partial<BroughtCard> = more
    const own = given.extension === undefined ? looksOf(id) : undefined
    const { hint, extension, art, logo, icon, guide }: Partial<BroughtCard> = { ...own, ...given }
    const instances = knowsConnections(caller)
      ? entries.filter(entry => (entry.handler?.card?.(entry.config) ?? entry.kind) === id).map(entry => entry.id)
      : []
    return {
      id,
      name,
      kind,
      category,
      description,
      ...(hint !== undefined && { hint }),
      ...(extension !== undefined && { extension }),
      ...(art !== undefined && { art }),
      ...(logo !== undefined && { logo }),
      ...(icon !== undefined && { icon }),
      ...(guide && { guide: { ...guide } }),
      fields: fields.map(field => ({ ...field })),
      singleton,
      requires: [...requires],
      available: true,
      connected: instances.length > 0,
      instances,
    }
  }),
  categories: categoriesOf(offered, others),
})

const categoriesOf = (
  offered: Pick<OfferedCards, 'categories'>,
  others: Pick<KnownKinds, 'categories'>,
): CardCategory[] => {
  const known = [...CATEGORIES, ...others.categories.filter(({ id }) => CATEGORIES.every(own => own.id !== id))]
  return [...known, ...offered.categories(known)].map(category => ({ ...category }))
}
