import typia, { type tags } from 'typia'
import type { Role, Scope } from '../sdk/types.js'

type Slug = string & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>

/**
 * How a body beside JSON comes: a text is the field `text`; of a form each field, and each file of one in parts, is a
 * field; bytes are a file, the field `bytes`, and the other fields come in the query.
 */
export type BodyForm = 'text' | 'form' | 'multipart' | 'bytes'

/** What body a call takes, where it is not JSON of at most 1 MiB. */
export interface BodyAccess {
  /** The largest body in bytes. */
  body?: number & tags.Type<'uint32'>
  /** The forms of body the call takes beside JSON. */
  forms?: BodyForm[]
}

/** The ticket a route takes. */
export interface TicketAccess {
  for: Slug
  /** The query field whose value the ticket may be bound to. */
  name?: string
  /** The least role the person has when the ticket is shown. */
  role: Role
  /** How long it is good, any number of times; left out: 30 s and once. */
  lastsSeconds?: number & tags.Type<'uint32'>
}

/** A route that asks for no general credential; the call checks what it needs itself. */
export interface OpenAccess extends BodyAccess {
  /** The published operation id, `group.name`. */
  id: string
  open: true
  /** Takes a ticket in the query field `ticket`, and is then served for the person it stands for. */
  ticket?: TicketAccess
  /** Answers before the start is done. */
  early?: true
}

/** Who may use a route. */
export interface RouteAccess extends BodyAccess {
  /** The published operation id, `group.name`. */
  id: string
  /** The least role of a person. */
  role: Role
  /** The scopes of a control token that reach the call; none: the trust surface. */
  tokens: Scope[]
  /** Takes a ticket in the query field `ticket` from who sends no credential. */
  ticket?: TicketAccess
  /** Answers before the start is done. */
  early?: true
  /** Answers carry an ETag and `if-none-match` is honoured (RFC 9110, section 13). */
  etag?: true
}

export type CallAccess = OpenAccess | RouteAccess

/** The calls a plugin makes: `daemon` must be served at start, `late` may be absent when used. */
export interface Permissions {
  daemon: string[]
  late: string[]
}

/** A group's manifest: who it is, what it may call, and who may call it. */
export interface PluginManifest {
  publisher: 'sandbox'
  name: Slug
  version: string
  label: string
  summary: string
  /** The module, from the program's root. */
  entry: string
  /** Its calls without a route. */
  calls: string[]
  /** Started with the daemon: it has work of its own that no call, event or point asks for. */
  boot?: true
  /** The events that start it when it is not started yet; once started it may listen to others too. */
  events?: string[]
  /** The points it adds to; collecting one of them starts it. */
  points?: string[]
  /** Packages the group's own code imports. */
  libraries: string[]
  /** Domains of `runtimeChanged` it announces. */
  domains: Slug[]
  /** Those of them that change all the time: announced at most every 2 s, the others every 250 ms. */
  slowDomains?: Slug[]
  /** Programs of the machine it needs or can use. */
  programs: string[]
  permissions: Permissions
  routes: { [call: string]: CallAccess }
}

const parse = typia.json.createValidateParse<PluginManifest>()

/** The manifest a file's text holds; throws a sentence that names the file and the field. */
export const parseManifest = (text: string, file: string): PluginManifest => {
  const result = parse(text)
  if (result.success) return result.data
  const [first] = result.errors
  throw new Error(`${file}: ${first?.path.replace('$input.', '')}: expected ${first?.expected}`)
}
