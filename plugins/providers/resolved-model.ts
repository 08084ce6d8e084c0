import { refuse } from '../../sdk/index.js'
import type { ModelRow } from '../endpoints/contract.js'
import type { ProviderCatalogue } from './contract.js'

const MOST_NEAR = 5

/** The pairs of letters of a text, for a comparison that forgives small differences. */
const pairsOf = (text: string): Set<string> => {
  const bare = text.toLowerCase().replace(/[^a-z0-9]/g, '')
  return new Set(Array.from({ length: Math.max(0, bare.length - 1) }, (_, at) => bare.slice(at, at + 2)))
}

const likeness = (one: ReadonlySet<string>, other: ReadonlySet<string>): number =>
  (2 * [...one].filter(pair => other.has(pair)).length) / Math.max(1, one.size + other.size)

/** The ids most like a wanted one, the nearest first. */
const nearIds = (wanted: string, models: readonly ModelRow[]): string[] => {
  const pairs = pairsOf(wanted)
  return models
    .map(({ id }) => ({ id, like: likeness(pairs, pairsOf(id)) }))
    .filter(({ like }) => like > 0.3)
    .sort((a, b) => b.like - a.like)
    .slice(0, MOST_NEAR)
    .map(({ id }) => id)
}

/** The wanted model of a catalogue, else its default; never another one in place of a wanted one. */
export const resolvedModel = (
  label: string,
  { models, default: first }: ProviderCatalogue,
  wanted: string | undefined,
): ModelRow => {
  const found = models.find(({ id }) => id === (wanted ?? first))
  if (found) return found
  if (wanted === undefined) return refuse('not-found', `${label} offers no model: name one`)
  const near = nearIds(wanted, models)
  const others = near.length > 0 ? near : first ? [first] : []
  const named = others.length > 0 ? `: it has ${others.join(', ')}` : ''
  return refuse('not-found', `${label} does not offer the model ${wanted.slice(0, 200)}${named}`)
}
