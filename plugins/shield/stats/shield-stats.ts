import type { DetectorId, ShieldPolicy, ShieldStats, ShieldSuggestion } from '../contract.js'
import { actionOf } from '../detect/detector-catalogue.js'
import { addCounts, noCounts, type ShieldDayCounts, type FoundCount } from './shield-counts.js'

const MUCH = 50
const MUCH_DISTINCT = 10
const MOST_OF_DOMAIN = 0.5
const UNUSED_MS = 90 * 86_400_000
const MOST_SUGGESTIONS = 20

/** What was counted on some days, as people read it. */
export const shieldStats = (
  days: ReadonlyMap<string, ShieldDayCounts>,
  suggestions: ShieldSuggestion[],
): ShieldStats => {
  const all = sumOf(days)
  const providers = Object.entries(all.providers)
  const sum = (field: 'trusted' | 'masked' | 'refused') => providers.reduce((total, [, each]) => total + each[field], 0)
  const [trusted, shielded, blocked] = [sum('trusted'), sum('masked'), sum('refused')]
  const times = all.ms.toSorted((one, other) => one - other)
  const at = (part: number): number => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0
  return {
    requests: { total: trusted + shielded + blocked, shielded, trusted, blocked },
    masked: maskedIn(all.found),
    restored: all.restored,
    unrestored: all.unrestored,
    perProvider: providers.map(([provider, { trusted: plain, masked, refused, places }]) => ({
      ...{ provider, requests: plain + masked + refused, masked: places, blocked: refused },
    })),
    perDay: [...days].map(([day, { providers: of }]) => ({
      day,
      masked: Object.values(of).reduce((total, { places }) => total + places, 0),
      blocked: Object.values(of).reduce((total, { refused }) => total + refused, 0),
    })),
    overheadMs: { p50: at(0.5), p95: at(0.95) },
    suggestions,
  }
}

/** What a person might change, by what was counted in the last 90 days. */
export const suggestionsOf = (
  days: ReadonlyMap<string, ShieldDayCounts>,
  policy: ShieldPolicy,
  since: { readonly [source: string]: number },
  now: number,
): ShieldSuggestion[] => {
  const { found, domains } = sumOf(days)
  return [...reportsMuch(found, policy), ...ownDomain(found, domains), ...unused(found, policy, since, now)].slice(
    0,
    MOST_SUGGESTIONS,
  )
}

const sumOf = (days: ReadonlyMap<string, ShieldDayCounts>): ShieldDayCounts => {
  const all = noCounts()
  for (const counts of days.values()) addCounts(all, counts)
  return all
}

const maskedIn = (found: readonly FoundCount[]): ShieldStats['masked'] => {
  const rows = new Map<string, { kind: string; detector: DetectorId; count: number; values: Set<string> }>()
  for (const { kind, detector, masked, count, values } of found) {
    if (!masked) continue
    const row = rows.get(`${kind} ${detector}`) ?? { kind, detector, count: 0, values: new Set<string>() }
    row.count += count
    for (const value of values) row.values.add(value)
    rows.set(`${kind} ${detector}`, row)
  }
  return [...rows.values()].map(({ values, ...row }) => ({ ...row, distinct: values.size }))
}

const reportsMuch = (found: readonly FoundCount[], policy: ShieldPolicy): ShieldSuggestion[] =>
  found.flatMap(({ detector, source, masked, count, values }): ShieldSuggestion[] => {
    const reports = !masked && actionOf(policy, detector) === 'report' && detector !== 'pattern'
    if (!reports || count < MUCH || values.length < MUCH_DISTINCT) return []
    const text = `The detector ${detector} only reports, and found ${count} places: consider masking them.`
    return [{ kind: 'mask', detector, count, distinct: values.length, text, ...(source !== undefined && { source }) }]
  })

const ownDomain = (found: readonly FoundCount[], domains: ShieldDayCounts['domains']): ShieldSuggestion[] => {
  const addresses = found.filter(({ detector }) => detector === 'email')
  const total = addresses.reduce((sum, { count }) => sum + count, 0)
  const distinct = new Set(addresses.flatMap(({ values }) => values)).size
  const most = Object.values(domains).toSorted((one, other) => other.count - one.count)[0]
  if (!most || most.count < MUCH || most.count < total * MOST_OF_DOMAIN) return []
  const text =
    `${most.count} of ${total} mail addresses have one domain (${most.hint}): `
    + 'if it is yours, allow it as @domain, so that it is no longer masked.'
  return [{ kind: 'allow', detector: 'email', count: most.count, distinct, hint: most.hint, text: text.slice(0, 300) }]
}

const unused = (
  found: readonly FoundCount[],
  { lists, patterns }: ShieldPolicy,
  since: { readonly [source: string]: number },
  now: number,
): ShieldSuggestion[] => {
  const entries = [
    ...lists.map(({ id, label }) => ({ id, label, detector: 'list' as const })),
    ...patterns.map(({ id, label }) => ({ id, label, detector: 'pattern' as const })),
  ]
  return entries.flatMap(({ id, label, detector }): ShieldSuggestion[] => {
    const isOld = now - (since[`${detector} ${id}`] ?? now) >= UNUSED_MS
    if (!isOld || found.some(each => each.detector === detector && each.source === id)) return []
    const text = `The ${detector} ${label} found nothing in 90 days: consider removing it.`
    return [{ kind: 'unused', detector, source: id, count: 0, distinct: 0, text }]
  })
}
