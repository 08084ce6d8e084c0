import type { ExitCountry } from '../contract.js'

const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'code' })

/** The English name of a country; its letters where it has none. */
export const countryName = (country: string): string => names.of(country) ?? country

/** The countries of servers, best supplied first; each server counts by what it carries. */
export const supplyOf = (servers: readonly { readonly country: string; readonly weight: number }[]): ExitCountry[] => {
  const all = servers.reduce((sum, { weight }) => sum + weight, 0)
  const found = new Map<string, { servers: number; weight: number }>()
  for (const { country, weight } of servers) {
    const before = found.get(country) ?? { servers: 0, weight: 0 }
    found.set(country, { servers: before.servers + 1, weight: before.weight + weight })
  }
  return [...found]
    .map(([country, each]) => ({
      ...{ country, countryName: countryName(country), servers: each.servers },
      share: all > 0 ? each.weight / all : each.servers / servers.length,
    }))
    .sort(
      (one, other) => other.share - one.share || other.servers - one.servers || (one.country < other.country ? -1 : 1),
    )
}

/** A list without counts, for a provider that never answered. */
export const builtIn = (countries: string): ExitCountry[] =>
  countries.split(' ').map(country => ({ country, countryName: countryName(country), servers: 0, share: 0 }))
