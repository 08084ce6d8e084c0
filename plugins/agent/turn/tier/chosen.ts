import type { EntryFields, ProviderChoice } from '../run-entry.js'

/** What a turn was asked to run on, also while it runs on a fast model. */
export const chosenBy = (fields: Pick<EntryFields, 'tier'> & ProviderChoice): ProviderChoice => {
  const { tier } = fields
  return tier?.routed !== undefined && fields.model === tier.routed ? tier.chosen : fields
}
