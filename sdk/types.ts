import type { tags } from 'typia'

/** Milliseconds since the epoch. */
export type Millis = number & tags.Type<'uint64'>

/** A number of bytes. */
export type Size = number & tags.Type<'uint64'>

/** A whole number from 0. */
export type Count = number & tags.Type<'uint32'>

/** A whole number from 1. */
export type Positive = number & tags.Type<'uint32'> & tags.Minimum<1>

/** Text of at least one character. */
export type Text = string & tags.MinLength<1>

/** The answer of a call that has nothing to tell but that it is done. */
export interface Ok {
  ok: true
}

/** How far a person reaches, least first. */
export type Role = 'viewer' | 'collaborator' | 'maintainer' | 'owner'

/** How far a control token reaches. */
export type Scope = 'editor' | 'read' | 'drive' | 'land'

/** What stands behind a call. `plugin` is a group acting by itself. */
export type CallerKind = 'session' | 'token' | 'turn' | 'extension' | 'run' | 'plugin'

/** Who is behind a call; never sent whole to a client. */
export interface Caller {
  readonly kind: CallerKind
  /** For showing only: an e-mail, `token:<label>`, `conversation:<id>`, `extension:<id>` or `sandbox:<what>`. */
  readonly actor: string
  readonly role: Role
  readonly scope?: Scope
  readonly tokenId?: string
  readonly sessionId?: string
  readonly email?: string
  readonly name?: string
  readonly picture?: string
  readonly areas?: readonly string[]
}

/** What a routed call may know of its request. */
export interface HttpFacts {
  /** The address of the socket's far end, or of the client a trusted proxy names. */
  readonly address: string
  /**
   * The address links name: the public one where one is configured, else the one this request was sent to, such as
   * `http://127.0.0.1:8787`.
   */
  readonly base: string
  /** Both ends are on this machine and no forwarding header is present. */
  readonly local: boolean
  /** The port of the socket's far end, where that is on this machine. */
  readonly nearPort?: number
  /** A forwarding header is present, believed or not. */
  readonly forwarded?: true
  /** Whatever it carries can be read on its way, and the deployment did not allow that. */
  readonly plain?: true
  readonly bearer?: string
  readonly userAgent?: string
  /** The encodings that the client accepts for what it downloads (`accept-encoding`; RFC 9110, section 12.5.3). */
  readonly acceptEncoding?: string
  /** The part that is asked for, and the tag it counts for (`range`, `if-range`; RFC 9110, section 14). */
  readonly range?: string
  readonly ifRange?: string
  /** The tags that a write may find in force (`if-match`; RFC 9110, section 13.1.1). */
  readonly ifMatch?: string
  /** The id of the event that a client of a cut stream saw last. */
  readonly lastEventId?: string
}
