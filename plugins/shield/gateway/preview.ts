import { TokenRestorer } from '../../../sdk/node/access/token-restorer.js'
import type { Finding, ShieldPreview } from '../contract.js'
import type { DecidedPlace, Searching } from '../detect/find-personal-data.js'
import type { TokenTable } from '../tokens/token-table.js'
import { isMasked, maskedText } from './masked-text.js'
import type { DecidedTrust } from './trust.js'

/** What would leave of a text for a provider that is shielded, and the text restored from it. */
export const previewOf = (
  text: string,
  trust: DecidedTrust['trust'],
  searching: Omit<Searching, 'known'>,
  table: TokenTable,
): Omit<ShieldPreview, 'ms'> => {
  if (trust === 'trusted') return { trust, masked: text, findings: [], blocked: false, restored: text }
  const { masked, places } = maskedText(text, searching, table)
  const spellings = spellingsIn(text, places, table)
  const restored = new TokenRestorer(token => spellings.get(token)?.shift(), 'plain').whole(masked)
  return {
    ...{ trust, masked, restored },
    findings: places.flatMap(place => findingOf(place, text, table)),
    blocked: trust === 'blocked' || places.some(({ action }) => action === 'block'),
  }
}

/** How each token's value is spelled in the text, in order: two spellings of a value have one token. */
const spellingsIn = (text: string, places: readonly DecidedPlace[], table: TokenTable): Map<string, string[]> => {
  const spellings = new Map<string, string[]>()
  for (const place of places) {
    if (!isMasked(place)) continue
    const value = text.slice(place.start, place.end)
    const token = table.tokenFor(place, value, 0)
    spellings.set(token, [...(spellings.get(token) ?? []), value])
  }
  return spellings
}

const findingOf = (place: DecidedPlace, text: string, table: TokenTable): Finding[] => {
  const { action, detector, kind, start, end, confidence, source } = place
  if (action === 'literal') return []
  const token = action === 'mask' ? table.tokenFor(place, text.slice(start, end), 0) : ''
  return [{ detector, kind, start, end, token, action, confidence, ...(source !== undefined && { source }) }]
}
