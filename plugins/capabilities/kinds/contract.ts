import type { CardCategory, CardField, CardGuide } from '../cards/contract.js'
import type { ApplyLog, ApplyStatus, ShownConfig } from '../records/contract.js'

/** A connection with the values of its secret fields: never shown, never logged. */
export interface KindEntry {
  id: string
  config: ShownConfig
  secrets: { [field: string]: string }
}
/** A step of connecting; the last one is the status. */
export type KindStep = ApplyLog | ApplyStatus

/** The card of a kind, with the form that connects it. */
export interface KindCard {
  /** The kind, unless the card has a name of its own. */
  id?: string
  name: string
  /** The id of a category: one of the catalogue's, or that of `category`. */
  category: string
  description: string
  hint?: string
  /** A whole SVG document. */
  art?: string
  guide?: CardGuide
  fields: CardField[]
  /** There can be one connection of it only. */
  singleton?: true
  /** The kinds that must be connected first. */
  requires?: string[]
}
/**
 * The calls that serve a kind, by name: calls between groups, of the group that contributes it. What they throw is the
 * answer to the request, so they refuse as the calls of capabilities declare it.
 */
export interface KindCalls {
  /** Takes a `KindEntry` and answers `Ok`; refuses what cannot work, before anything is tried. */
  check: string
  /**
   * Takes a `KindEntry` and answers a stream of `KindStep`: connects for real. It is recorded afterwards; when that or
   * this fails, `forget` follows for a new connection.
   */
  apply: string
  /** Takes `{ id, config }` and answers a `CapabilityStatus` within 2 s. */
  status: string
  /** Takes `{ id }` and answers `Ok`, before the record is removed; refuses (409) what cannot be removed now. */
  release?: string
  /** Takes `{ id }` and answers `Ok`: removes what is kept of it beside the record. Nothing there is fine. */
  forget: string
  /** Takes `{ id, to }` and answers `Ok`: carries what is kept to another id; refuses (409) what cannot be carried. */
  rename: string
  /** Takes `{ id, config, secrets, action }` and answers what carries the action out, or why nothing does. */
  checkAction?: string
  /** Takes that with `idempotencyKey`, and answers an `ActionEnd`: does what a person approved, once. */
  carryOut?: string
}

/** A kind whose connections capabilities keeps: the record in its file, the secrets in the vault. */
export interface StoredKind {
  storedBy: 'capabilities'
  kind: string
  card: KindCard
  /** The category of the card, unless the catalogue has it. */
  category?: CardCategory
  /** The secret field that a new secret replaces when none is named; the secret fields are those of the card. */
  mainSecret?: string
  /** The largest value of a secret field in characters, 65536 unless set. */
  largestSecret?: number
  /** How long connecting may take in ms, 60000 unless set. */
  applyMs?: number
  calls: KindCalls
}
/** A kind whose connections its group keeps itself, with `capabilities.put` and `capabilities.drop`. */
export interface GroupKeptKind {
  storedBy: 'group'
  kind: string
  calls: {
    /** Takes `{ id, kind, config }` as a person gave it, stores it and answers a `CapabilityStatus`. */
    connect: string
    /** Takes `{ id }` and answers a `CapabilityStatus`. */
    status: string
  }
}
/**
 * A kind of connections that another group serves. The group must not call capabilities while it starts: its calls of
 * capabilities belong into handlers and after `daemon.ready`.
 */
export type ContributedKind = StoredKind | GroupKeptKind
