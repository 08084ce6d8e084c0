import type { PhraseMatcher } from '../../../sdk/node/access/phrase-matcher.js'
import { tokenPlaces } from '../../../sdk/node/access/token-restorer.js'
import type { DetectorAction, FindingConfidence } from '../contract.js'
import { actionFor, LITERAL, type CompiledShield } from '../policy/compiled-shield.js'
import { scannedPlaces, type Candidate } from './candidate.js'

/** A stored value in one of its forms, by the name of its secret. */
export type StoredForms = PhraseMatcher<string>

/** A finding, and what is done with it. */
export interface DecidedPlace extends Candidate {
  readonly action: Exclude<DetectorAction, 'off'> | 'literal'
}

/** What a text is searched with. */
export interface Searching {
  readonly compiled: CompiledShield
  readonly stored: StoredForms
  /** What is a token in the conversation already, in further spellings. */
  readonly known?: PhraseMatcher<Candidate>
}

const SURENESS: readonly FindingConfidence[] = ['checksum', 'exact', 'pattern', 'context']

/** The findings of a text in order, without overlaps: the longest holds, then the surest. */
export const findPersonalData = (text: string, { compiled, stored, known }: Searching): DecidedPlace[] => {
  const literals = tokenPlaces(text).map(({ start, end }): DecidedPlace => ({
    ...{ start, end, detector: 'pattern', kind: LITERAL, confidence: 'exact', action: 'literal' },
    normal: `${LITERAL} ${text.slice(start, end)}`,
  }))
  const found = [...scanned(text, compiled), ...storedIn(text, stored)]
  for (const { start, end, id } of known?.places(text) ?? []) found.push({ ...id, start, end })
  const decided = found.flatMap((place): Allowable[] => {
    const action = actionFor(compiled, place)
    if (action === 'off') return []
    return [{ ...place, action: compiled.allows(place, text.slice(place.start, place.end)) ? 'allowed' : action }]
  })
  const masked = decided.filter(({ action }) => action !== 'report')
  const reported = decided.filter(({ action }) => action === 'report')
  // What is only reported never hides what is masked.
  // What is allowed holds its place until here, so that no part of it is masked.
  return withoutOverlaps([literals, masked, reported]).filter(isDecided)
}

type Allowable = Omit<DecidedPlace, 'action'> & { readonly action: DecidedPlace['action'] | 'allowed' }

const isDecided = (place: Allowable): place is DecidedPlace => place.action !== 'allowed'

const scanned = (text: string, { scans, lists, patterns }: CompiledShield): Candidate[] => {
  const found = scans.flatMap(scan => scannedPlaces(text, scan))
  for (const { start, end, id: list } of lists.places(text)) {
    const value = text.slice(start, end)
    found.push({
      ...{ start, end, detector: 'list', kind: list.kind, confidence: 'exact', source: list.id },
      normal: list.caseSensitive ? value : value.toLowerCase(),
    })
  }
  for (const { pattern, regex } of patterns) {
    const matcher = regex.matcher(text)
    while (matcher.find()) {
      const [start, end] = [matcher.start(), matcher.end()]
      if (start === end) continue
      found.push({
        ...{ start, end, detector: 'pattern', kind: pattern.kind, confidence: 'pattern', source: pattern.id },
        normal: text.slice(start, end).trim(),
      })
    }
  }
  return found
}

const storedIn = (text: string, stored: StoredForms): Candidate[] =>
  stored.places(text).map(({ start, end }): Candidate => ({
    ...{ start, end, detector: 'secret-stored', kind: 'SECRET', confidence: 'exact' },
    normal: text.slice(start, end),
  }))

const withoutOverlaps = (ranks: readonly (readonly Allowable[])[]): Allowable[] => {
  const kept: Allowable[] = []
  for (const places of ranks) {
    const sorted = places.toSorted(
      (one, other) =>
        other.end - other.start - (one.end - one.start)
        || SURENESS.indexOf(one.confidence) - SURENESS.indexOf(other.confidence)
        || one.start - other.start,
    )
    const before = kept.toSorted((one, other) => one.start - other.start)
    const rank = new Ranges(before)
    for (const place of sorted) if (rank.add(place)) kept.push(place)
  }
  return kept.sort((one, other) => one.start - other.start)
}

/** Ranges that do not overlap, in order. */
class Ranges {
  readonly #sorted: { readonly start: number; readonly end: number }[]

  constructor(sorted: readonly { readonly start: number; readonly end: number }[]) {
    this.#sorted = [...sorted]
  }

  /** Adds a range unless it overlaps one. */
  add({ start, end }: { readonly start: number; readonly end: number }): boolean {
    let [low, high] = [0, this.#sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#sorted[middle]!.end <= start) low = middle + 1
      else high = middle
    }
    const next = this.#sorted[low]
    if (next && next.start < end) return false
    this.#sorted.splice(low, 0, { start, end })
    return true
  }
}
