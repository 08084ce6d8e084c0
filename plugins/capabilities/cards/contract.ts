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
  /** It is on or off. */
  boolean?: boolean
  /** What it is when it is left out. */
  default?: string
  /** It is always this, so nobody is asked. */
  value?: string
  /** Asked for where this condition over the other fields holds. */
  when?: string
  /** The seed of one-time codes. */
  totp?: boolean
  /** A change of it needs a new image of the sandbox. */
  rebuild?: boolean
}
/** A value to choose. */
export interface CardOption {
  value: string
  label: string
}
/** Where a person gets the values that a card asks for. */
export interface CardGuide {
  url?: string
  urlFromField?: string
  path?: string
  linkLabel?: string
  scopes?: string
  steps?: string[]
}
/** Something that can be connected. */
export interface CatalogCard {
  id: string
  name: string
  kind: string
  category: string
  description: string
  hint?: string
  /** The extension that brings the card. */
  extension?: string
  /** A whole SVG document; always drawn inert. */
  art?: string
  logo?: string
  icon?: string
  /** Where a person gets the values. */
  guide?: CardGuide
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
