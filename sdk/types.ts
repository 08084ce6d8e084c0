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

/**
 * At most so many characters: code points, as JSON Schema counts them (2020-12 validation, section 6.3.1), so that an
 * emoji is one.
 */
export type MostCharacters<Most extends number> = tags.TagBase<{
  target: 'string'
  kind: 'mostCharacters'
  value: Most
  validate: `[...$input].length <= ${Most}`
  exclusive: ['maxLength', 'mostCharacters']
  schema: { maxLength: Most }
}>

/** The SHA-256 of what somebody looks at, in hex. */
export type ContentDigest = string & tags.MinLength<64> & tags.MaxLength<64> & tags.Pattern<'^[0-9a-f]*$'>

/** The answer of a call that returns no data. */
export interface Ok {
  ok: true
}

/** One side of a comparison, as a file in a folder that the asking group named. */
export interface SideFile {
  /** Absent: it is larger than was asked for. */
  file?: string
  size?: Size
  /** The SHA-256 of its bytes. */
  hash?: string
  /** The id of its git object. */
  blob?: string
}

/** Both sides of a comparison; a missing side means added or deleted. */
export interface SidePair {
  path: string
  /** The name of the earlier side, where it is another one. */
  from?: string
  before?: SideFile
  after?: SideFile
}

/** A changed file: which sides it has, and the ids of their git objects where they have one. */
export interface ChangedSides {
  path: string
  from?: string
  /** Absent: not looked at. */
  binary?: boolean
  before?: { blob?: string }
  after?: { blob?: string }
}

/** The roles of people, least first. */
export type Role = 'viewer' | 'collaborator' | 'maintainer' | 'owner'

/** The scopes of control tokens. */
export type Scope = 'editor' | 'read' | 'drive' | 'land'

/** The kind of caller; `plugin` is a group acting by itself. */
export type CallerKind = 'session' | 'token' | 'turn' | 'extension' | 'run' | 'plugin'

/** What a turn reaches with its own credential, beyond what every turn does. */
export interface TurnReach {
  /** It reads what a control token of scope `read` reads, and asks for what changes the network. */
  readonly sandbox: boolean
  /** The connections that it may use: those of its persona; left out: all. */
  readonly capabilities?: readonly string[]
  /** Whether it acts with accounts of people: connections of the kinds `browser` and `identity`. */
  readonly accounts: boolean
}

/** The caller of a call; never sent whole to a client. */
export interface Caller {
  readonly kind: CallerKind
  /** For display only: an e-mail, `token:<label>`, `conversation:<id>`, `extension:<id>` or `sandbox:<what>`. */
  readonly actor: string
  readonly role: Role
  readonly scope?: Scope
  readonly tokenId?: string
  readonly sessionId?: string
  readonly email?: string
  readonly name?: string
  readonly picture?: string
  readonly areas?: readonly string[]
  /** The conversation of a turn that calls with its own credential; nothing of another one is within its reach. */
  readonly conversationId?: string
  readonly turn?: TurnReach
}

/** Facts of the HTTP request of a call. */
export interface HttpFacts {
  /** The peer's address, or the client's address that a trusted proxy forwards. */
  readonly address: string
  /**
   * The base address for links: the configured public one, else the one this request was sent to, such as
   * `http://127.0.0.1:8787`.
   */
  readonly base: string
  /** Whether client and daemon are on this machine, without a forwarding header. */
  readonly local: boolean
  /** The peer's port, if the peer is on this machine. */
  readonly nearPort?: number
  /** A forwarding header is present, trusted or not. */
  readonly forwarded?: true
  /** The request came over plain HTTP from another machine, and the deployment does not allow that. */
  readonly plain?: true
  readonly bearer?: string
  readonly userAgent?: string
  /** The media types that the client accepts (`accept`; RFC 9110, section 12.5.1). */
  readonly accept?: string
  /** The encodings that the client accepts for a download (`accept-encoding`; RFC 9110, section 12.5.3). */
  readonly acceptEncoding?: string
  /** Only the head of the answer is sent: the request is `HEAD`. */
  readonly headOnly?: true
  /** The tags of what the client already has (`if-none-match`; RFC 9110, section 13.1.2). */
  readonly ifNoneMatch?: string
  /** The request names the host of public files and pages, at which nothing else is answered. */
  readonly publicHost?: true
  /** The requested range, and the tag that it applies to (`range`, `if-range`; RFC 9110, section 14). */
  readonly range?: string
  readonly ifRange?: string
  /** The tags that the current version must match for a write (`if-match`; RFC 9110, section 13.1.1). */
  readonly ifMatch?: string
  /** The id of the last event that a resuming client received. */
  readonly lastEventId?: string
  /** The sender's key of this request: the same one again asks for the first answer. */
  readonly idempotencyKey?: string
  /** How the body is compressed (`content-encoding`), of a call that takes it as it is. */
  readonly contentEncoding?: string
  /** The origin of the page that made the request. */
  readonly pageOrigin?: string
}
