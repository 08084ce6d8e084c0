import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { BootProgress, BootStep, Domain, OpenedSession, Program, TokenRow } from '../../sdk/kernel.js'
import type { CallerKind, Count, Millis, Ok, Role, Scope, Text } from '../../sdk/types.js'
import type { AgentCard } from '../agents/contract.js'

/** A client's own name for itself. */
export type ClientId = string & tags.MinLength<1> & tags.MaxLength<64>

/** Who asks, as the sandbox sees them. */
export interface Me {
  actor: string
  kind: CallerKind
  role: Role
  scope?: Scope
  areas?: string[]
  sessionId?: string
  name?: string
  picture?: string
}
/** What this daemon is and can do. */
export interface Info {
  version?: string
  /** The same as in `/health`. */
  sandboxId: string
  /** Minted at the first start on a workspace; a new one means: drop every cache. */
  workspaceId: string
  /** Hash of the running code. */
  build: string
  /** `info.version` of the OpenAPI document. */
  contract: string
  /** Operation ids of every call this daemon serves, sorted. */
  routes: string[]
  /** Operation id to a fingerprint of its input and output types. */
  shapes: { [id: string]: string }
  programs: Program[]
  boot: BootProgress
  /** The address of this request. */
  base: string
  me: Me
}
/** An identity provider a person can sign in with. */
export interface SignInProvider {
  id: string
  label: string
  issuer: string
  clientId: string
}
/** What a sign-in page must know before anybody is known. */
export interface SignInOptions {
  claimed: boolean
  /** Whether the built-in local sign-in works at this address. */
  local: boolean
  name?: string
  /** Must be carried by a provider's identity token. */
  nonce: string
  nonceExpiresAt: Millis
  providers: SignInProvider[]
}

/** Versions of domains: each counts up by one with every change. */
export interface Versions {
  [domain: string]: number & tags.Type<'uint64'>
}
/** The beginning of a stream, and of what follows a `resync`. */
export interface HelloEvent {
  kind: 'hello'
  workspaceId: string
  routes: string[]
  shapes: { [id: string]: string }
  build: string
  boot: BootProgress
  /** This run of the daemon. */
  epoch: string
  /** The newest frame of all when this was sent. */
  seq: number & tags.Type<'uint64'>
  /** Everything since the id given follows; otherwise read each domain again whose version differs from yours. */
  resumed: boolean
  /** Every domain this daemon announces. */
  versions: Versions
  me: Me
}
/** Nothing happened for 5 s. */
export interface HeartbeatEvent {
  kind: 'heartbeat'
  at: Millis
  seq: number & tags.Type<'uint64'>
}
/** How far the start has come. */
export interface BootEvent {
  kind: 'boot'
  ready: boolean
  startedAt: Millis
  steps: BootStep[]
}
/** Read these again; bursts are merged. `keys` are the ids that moved, when they are few. */
export interface RuntimeChangedEvent {
  kind: 'runtimeChanged'
  domains: Domain[]
  versions: Versions
  keys?: string[]
}
/** A person who has the sandbox open, and what their client says. */
export interface PresenceUser {
  clientId: string
  email: string
  name?: string
  picture?: string
  role: Role
  idle: boolean
  view?: string
  sessionId?: string
  path?: string
}
/** Everybody who has the sandbox open. */
export interface PresenceEvent {
  kind: 'presence'
  users: PresenceUser[]
}
/** The whole fleet. */
export interface AgentsEvent {
  kind: 'agents'
  agents: AgentCard[]
  /** Only grows; drop what is older than what you hold. */
  rev: Count
}
/** One card that is another, or the id of one that is gone; only with `roster=delta`. */
export interface AgentEvent {
  kind: 'agent'
  rev: Count
  agent?: AgentCard
  removed?: string
}
/** What a badge counts. */
export interface AttentionEvent {
  kind: 'attention'
  cards: Count
  approvals: Count
  needs: Count
  land: Count
  ci: Count
  issues: Count
  /** Left out for control tokens. */
  offload?: Count
}
/** What you hold may be stale: a hello and snapshots follow. */
export interface ResyncEvent {
  kind: 'resync'
  reason: 'slow'
}
/** One event of the sandbox. Ignore a kind you do not know. */
export type SystemEvent =
  | HelloEvent | HeartbeatEvent | BootEvent | RuntimeChangedEvent | PresenceEvent | AgentsEvent | AgentEvent
  | AttentionEvent | ResyncEvent

export interface System {
  /**
   * Say what this daemon is, including the calls it serves.
   *
   * A newer client reads from it what it may offer. Answered from memory, before the start is done too.
   */
  'GET /info'(): Info

  /** Tell a sign-in page what it can offer: providers, whether there is an owner, whether local sign-in works here. */
  'GET /system/sign-in'(): SignInOptions

  /**
   * Turn a proof into a session, or renew the session presented.
   *
   * `login` is a one-time code that `sandbox login` prints; a bearer session is renewed: same id, new token, and the old
   * token works 10 more minutes. The token is in this answer only.
   */
  'POST /system/session'(input: {
    claim?: string & tags.MinLength<1> & tags.MaxLength<64>
    login?: string & tags.MinLength<1> & tags.MaxLength<128>
    invite?: string & tags.MinLength<1> & tags.MaxLength<128>
    name?: string & tags.MinLength<1> & tags.MaxLength<80>
    device?: string & tags.MinLength<1> & tags.MaxLength<120>
  }): OpenedSession

  /**
   * End sessions: this one, one by id, or every session of one person.
   *
   * An empty body ends every session of the sandbox, the caller's too. Streams of an ended session close within 1 s.
   * Repeating is harmless.
   */
  'POST /system/sessions/revoke'(input: { current?: true; id?: Text; email?: Text }): { ok: true; revoked: number }

  /**
   * Mint a control token for a program.
   *
   * The token is in this answer only. Labels need not be unique and decide nothing. At most 100 tokens are active.
   */
  'POST /system/control/tokens'(input: {
    label: string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[^\\x00-\\x1f]+$'>
    scope: Scope
    expiresAt?: Millis
  }): { id: string; token: string }

  /**
   * Follow everything that happens in the sandbox.
   *
   * It begins with `hello` and the snapshots; every event has an id, and a stream that was cut goes on after
   * `last-event-id` without a gap (`after` is the same for clients that cannot set headers). `clientId` puts a person's
   * connection on the presence roster; without it, or with a token, the caller watches unseen. A reader that falls
   * behind gets `resync` and begins anew. A credential that ends gets `error` with its status, a daemon that stops
   * sends `done` with the milliseconds after which to connect again.
   */
  'GET /events'(input: {
    clientId?: ClientId
    roster?: 'snapshot' | 'delta'
    after?: string & tags.MaxLength<64>
  }): Stream<SystemEvent, { reason: 'stopping'; retryMs: Count }>

  /**
   * Replace what the presence roster says about one's own open stream.
   *
   * A field left out is cleared. A `clientId` that is unknown or somebody else's is ignored. Nothing is stored.
   */
  'POST /system/presence'(input: {
    clientId: ClientId
    idle: boolean
    view?: string & tags.MaxLength<80>
    sessionId?: string & tags.MaxLength<64>
    path?: string & tags.MaxLength<400>
  }): Ok

  /** List every token not revoked, newest first, never with its value; expired ones stay 30 days. */
  'GET /system/control/tokens'(): { tokens: TokenRow[] }

  /** Make a token unusable at once and close its streams; a turn it started goes on. */
  'DELETE /system/control/tokens/{id}'(input: { id: Text }): Ok
}

export interface SystemEvents {
  'token.minted': { id: string; label: string; scope: Scope; by: string }
}

export const system: Contract<System> = {
  schema: () => typia.json.application<System>(),
  request: typia.misc.createValidatePrune<Requests<System>>(),
  reply: () => typia.createValidate<Replies<System>>(),
}
