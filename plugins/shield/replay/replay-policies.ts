import { PhraseMatcher, type Phrase } from '../../../sdk/node/access/phrase-matcher.js'
import type {
  DetectorId,
  ProviderTrust,
  ReplayedDetector,
  ReplayedRefusal,
  ShieldPolicy,
  ShieldReplay,
} from '../contract.js'
import { findPersonalData, type DecidedPlace } from '../detect/find-personal-data.js'
import { compiledShield, type CompiledShield } from '../policy/compiled-shield.js'
import { shapeOf } from '../tokens/shape.js'

/** What one past conversation sent, and what its provider gets under both policies. */
export interface SentConversation {
  readonly id: string
  readonly provider: string
  readonly was: ProviderTrust
  readonly now: ProviderTrust
  readonly requests: number
  /** Each text with the number of requests before the one that sent it first. */
  readonly texts: readonly { readonly text: string; readonly before: number }[]
}

/** What a replay of two policies works on. */
export interface ReplayedPolicies {
  readonly given: ShieldPolicy
  readonly saved: ShieldPolicy
  readonly stored: readonly Phrase<string>[]
  readonly conversations: readonly SentConversation[]
  /** There is more than these. */
  readonly more: boolean
  readonly longestMs: number
}

interface Counting extends Omit<ReplayedDetector, 'distinct'> {
  readonly values: Set<string>
}

const MOST_HINTS = 5
const MOST_REFUSED = 100

const compiled = (policy: ShieldPolicy): CompiledShield => {
  const done = compiledShield(policy)
  if ('expected' in done) throw new Error(`${done.path}: expected ${done.expected}`)
  return done
}

/** Searches the same texts under both policies. */
export const replayPolicies = (asked: ReplayedPolicies): ShieldReplay => {
  const began = performance.now()
  const stored = new PhraseMatcher(asked.stored)
  const [given, saved] = [compiled(asked.given), compiled(asked.saved)]
  const detectors = new Map<string, Counting>()
  const refused: ReplayedRefusal[] = []
  let [characters, truncated, conversations, requests] = [0, asked.more, 0, 0]
  for (const sent of asked.conversations) {
    if (performance.now() - began > asked.longestMs) {
      truncated = true
      break
    }
    conversations++
    requests += sent.requests
    const kinds = new Set<string>()
    let blockedFrom = sent.now === 'blocked' && asked.given.enabled ? 0 : sent.requests
    for (const { text, before } of sent.texts) {
      if (performance.now() - began > asked.longestMs) {
        truncated = true
        break
      }
      characters += text.length
      const now = placesUnder(text, given, asked.given.enabled && sent.now === 'shielded', stored)
      const past = placesUnder(text, saved, asked.saved.enabled && sent.was === 'shielded', stored)
      for (const kind of compare(text, now, past, detectors)) {
        kinds.add(kind)
        blockedFrom = Math.min(blockedFrom, before)
      }
    }
    if (blockedFrom < sent.requests && refused.length < MOST_REFUSED)
      refused.push({ conversationId: sent.id, requests: sent.requests - blockedFrom, kinds: [...kinds] })
  }
  return {
    ...{ conversations, requests, characters, truncated, refused, ms: Math.round(performance.now() - began) },
    detectors: [...detectors.values()].map(({ values, ...row }) => ({ ...row, distinct: values.size })),
    providers: changedProviders(asked),
  }
}

const placesUnder = (
  text: string,
  policy: CompiledShield,
  shielded: boolean,
  stored: PhraseMatcher<string>,
): readonly DecidedPlace[] =>
  shielded ? findPersonalData(text, { compiled: policy, stored }).filter(({ action }) => action !== 'literal') : []

const keyOf = ({ start, end }: DecidedPlace): string => `${start} ${end}`

/** Counts the differences in one text; returns the words of what would be refused. */
const compare = (
  text: string,
  now: readonly DecidedPlace[],
  past: readonly DecidedPlace[],
  detectors: Map<string, Counting>,
): string[] => {
  const masked = (places: readonly DecidedPlace[]) =>
    new Set(places.filter(({ action }) => action === 'mask').map(keyOf))
  const [maskedNow, maskedPast] = [masked(now), masked(past)]
  const refused: string[] = []
  for (const place of now) {
    const row = rowOf(detectors, place)
    const value = text.slice(place.start, place.end)
    if (!row.values.has(place.normal) && row.hints.length < MOST_HINTS) row.hints.push(shapeOf(value))
    row.values.add(place.normal)
    if (place.action === 'report') row.reported++
    else if (place.action === 'block') {
      row.blocked++
      refused.push(place.kind)
    } else {
      row.masked++
      if (!maskedPast.has(keyOf(place))) row.added++
    }
  }
  for (const place of past)
    if (place.action === 'mask' && !maskedNow.has(keyOf(place))) rowOf(detectors, place).dropped++
  return refused
}

const rowOf = (
  detectors: Map<string, Counting>,
  { detector, source }: { readonly detector: DetectorId; readonly source?: string },
): Counting => {
  const key = `${detector} ${source ?? ''}`
  const row = detectors.get(key) ?? {
    ...{ detector, masked: 0, added: 0, dropped: 0, blocked: 0, reported: 0, hints: [], values: new Set<string>() },
    ...(source !== undefined && { source }),
  }
  detectors.set(key, row)
  return row
}

const changedProviders = ({ conversations }: ReplayedPolicies): ShieldReplay['providers'] => {
  const rows = new Map<string, ShieldReplay['providers'][number]>()
  for (const { provider, was, now, requests } of conversations) {
    if (was === now) continue
    const row = rows.get(provider) ?? { provider, was, now, requests: 0 }
    row.requests += requests
    rows.set(provider, row)
  }
  return [...rows.values()]
}
