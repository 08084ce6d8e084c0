import type { CapabilityId } from '../records/contract.js'

/** One field of a card's form. */
export interface CardField {
  key: string
  label: string
  placeholder?: string
  hint?: string
  /** Its value is a secret. */
  secret?: boolean
  optional?: boolean
  multiline?: boolean
  options?: CardOption[]
}
/** A value to choose. */
export interface CardOption {
  value: string
  label: string
}
/** Something that can be connected. */
export interface CatalogCard {
  id: string
  name: string
  kind: string
  category: string
  description: string
  hint?: string
  fields: CardField[]
  /** There can be one connection of it only. */
  singleton: boolean
  /** The kinds that must be connected first. */
  requires: string[]
  /** Whether this machine can serve it. */
  available: boolean
  /** Why not. */
  reason?: string
  connected: boolean
  instances: CapabilityId[]
}
/** A group of cards. */
export interface CardCategory {
  id: string
  label: string
  hint: string
}
/** Everything that can be connected. */
export interface Catalog {
  cards: CatalogCard[]
  categories: CardCategory[]
}

/** What can be connected. */
export interface CatalogCalls {
  /**
   * List every card that could be connected, with its form.
   *
   * Whether it is connected is said to maintainers only: others, and tokens, find no instance.
   */
  'GET /capabilities/catalog'(): Catalog
}
