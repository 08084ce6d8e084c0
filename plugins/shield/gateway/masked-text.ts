import { findPersonalData, type DecidedPlace, type Searching } from '../detect/find-personal-data.js'
import type { TokenTable } from '../tokens/token-table.js'

/** A text as it may leave, and what was found in it. */
export interface MaskedText {
  readonly masked: string
  readonly places: readonly DecidedPlace[]
  /** How often each token is in it. */
  readonly uses: { readonly [token: string]: number }
}

/** Whether a token stands for a finding. */
export const isMasked = ({ action }: DecidedPlace): boolean => action === 'mask' || action === 'literal'

/** Replaces personal data in a text by tokens; new values take new tokens. */
export const maskedText = (text: string, searching: Omit<Searching, 'known'>, table: TokenTable): MaskedText => {
  const places = findPersonalData(text, { ...searching, known: table.known })
  const uses: { [token: string]: number } = {}
  let masked = ''
  let from = 0
  for (const place of places) {
    if (!isMasked(place)) continue
    const token = table.tokenFor(place, text.slice(place.start, place.end), Date.now())
    masked += text.slice(from, place.start) + token
    from = place.end
    uses[token] = (uses[token] ?? 0) + 1
  }
  return { masked: from === 0 ? text : masked + text.slice(from), places, uses }
}
