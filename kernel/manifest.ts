import typia, { type tags } from 'typia'
import type { Role, Scope } from '../sdk/types.js'

type Slug = string & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>

/**
 * A type of body besides JSON. `text` becomes the input field `text`; the fields of a form, and the files of a
 * multipart form, become input fields; `bytes` become a file in the field `bytes`, with the other fields in the query;
 * `raw` takes a body of any type as text in the field `body`, with the other fields in the query; `binary` does the
 * same with a body of any type and encoding, in base64.
 */
export type BodyForm = 'text' | 'form' | 'multipart' | 'bytes' | 'raw' | 'binary'

/** The body that a call takes; default: JSON of at most 1 MiB. */
export interface BodyAccess {
  /** The largest body in bytes. */
  body?: number & tags.Type<'uint32'>
  /** The types of body that the call takes besides JSON. */
  forms?: BodyForm[]
}

/** The ticket that a route takes. */
export interface TicketAccess {
  for: Slug
  /** The query field whose value the ticket may be bound to. */
  name?: string
  /** The least role that the person must have when the ticket is used. */
  role: Role
  /** How long the ticket can be used, any number of times; default: once, within 30 s. */
  lastsSeconds?: number & tags.Type<'uint32'>
}

/** A route without a general credential; the call checks its own proof. */
export interface OpenAccess extends BodyAccess {
  /** The published operation id, `group.name`. */
  id: string
  open: true
  /** Takes a ticket in the query field `ticket` and serves the person who asked for it. */
  ticket?: TicketAccess
  /** Answers before the start is done. */
  early?: true
  /**
   * A public page, `GET /x/{name}/{path}`: `path` is the rest of the path with its slashes, which may be empty.
   * Nothing else is served below its first segment.
   */
  publicPage?: true
  /** Headers of the request that become input fields. */
  headers?: Slug[]
  /**
   * Pages of every origin may make the call, without credentials and with the headers named here; the call judges their
   * origin itself. These headers become input fields.
   */
  anyOrigin?: { headers: Slug[] }
  /**
   * Pages of the origins that this call of the group admits may make the call, those of no other one, nor programs
   * without an origin. It gets the path parameters, `origin` and the call that was asked.
   */
  ownOrigins?: { by: string }
}

/** Who may use a route. */
export interface RouteAccess extends BodyAccess {
  /** The published operation id, `group.name`. */
  id: string
  /** The least role of a person. */
  role: Role
  /** The scopes of control tokens that may make the call; empty: people only (the trust surface). */
  tokens: Scope[]
  /** Serves extensions alone, whose manifests name the route. */
  only?: 'extension'
  /**
   * A turn makes the call with its own credential too, for its own conversation; the handler holds it to that.
   * `sandbox`: only one whose persona has that power, and the handler asks the group of turns first.
   */
  turns?: true | 'sandbox'
  /** Accepts a ticket in the query field `ticket` in place of a credential. */
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
  /**
   * Starts with the daemon, because it works without being called. `"used"`: only if it ran before in this data folder,
   * because all that it could go on with is what it stored.
   */
  boot?: true | 'used'
  /** The events that start it; once started, it may also listen to others. */
  events?: string[]
  /** The points it contributes to; collecting one of them starts it. */
  points?: string[]
  /** Packages the group's own code imports. */
  libraries: string[]
  /** The domains that it announces in `runtimeChanged`. */
  domains: Slug[]
  /** Its frequently changing domains: announced at most every 2 s, the others every 250 ms. */
  slowDomains?: Slug[]
  /** Programs of the machine that it needs or can use. */
  programs: string[]
  permissions: Permissions
  /** The paths that it answers besides its routes. */
  subtrees?: import('./extensions/subtree-access.js').Subtree[]
  routes: { [call: string]: CallAccess }
}

const parse = typia.json.createValidateParse<PluginManifest>()

/** Parses a manifest; throws an error that names the file and the field. */
export const parseManifest = (text: string, file: string): PluginManifest => {
  const result = parse(text)
  if (result.success) return result.data
  throw new Error(`${file}: ${result.errors[0]?.path.replace('$input.', '')}: expected ${result.errors[0]?.expected}`)
}
