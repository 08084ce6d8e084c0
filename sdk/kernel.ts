import type { tags } from 'typia'
import type { Stream } from './contract.js'
import type { Caller, Millis, Ok, Role, Scope, TurnReach } from './types.js'

/** A program of the machine: whether it is installed, and how to install it. */
export interface Program {
  name: string
  present: boolean
  version?: string
  /** The groups that use it. */
  neededBy: string[]
  /** One command line for this operating system. */
  install: string
}

/** One step between listening and being ready. */
export interface BootStep {
  key: string
  label: string
  state: 'pending' | 'running' | 'done' | 'failed'
  ms?: number
  detail?: string
}

/** The progress of the boot steps. */
export interface BootProgress {
  ready: boolean
  startedAt: Millis
  steps: BootStep[]
}

/** A new session; only this answer contains its token. */
export interface OpenedSession {
  token: string
  expiresAt: Millis
  email: string
  id: string
  role: Role
  areas?: string[]
  name?: string
  picture?: string
  renewed: boolean
}

/** A session without its token and hash. */
export interface AccessSession {
  id: string
  email: string
  name?: string
  role: Role
  /** The name that the client sent, else the product of its user agent. */
  device?: string
  via: 'oidc' | 'local' | 'invitation'
  createdAt: Millis
  lastSeenAt: Millis
  expiresAt: Millis
  /** The last source address; only visible to the owner and the session's own person. */
  address?: string
  current: boolean
}

/** A person with a role in this sandbox. */
export interface Member {
  email: string
  role: Role
  /** Ids of the areas they are limited to; absent: the whole workspace. */
  areas?: string[]
  name?: string
  picture?: string
  grantedBy: string
  grantedAt: Millis
  lastSeenAt?: Millis
  /** Whether they have signed in, which pins issuer and subject. */
  bound: boolean
}

/** An invitation that can still be redeemed, without its code. */
export interface Invitation {
  id: string
  role: Exclude<Role, 'owner'>
  areas?: string[]
  note?: string
  createdBy: string
  createdAt: Millis
  expiresAt: Millis
}

/** The members and invitations, as maintainers see them. */
export interface MemberList {
  members: Member[]
  invitations: Invitation[]
}

/** An identity provider that the deployment configures. */
export interface IdentityProvider {
  /** Its name in this sandbox. */
  id: string & tags.Pattern<'^[a-z0-9][a-z0-9-]{0,39}$'>
  label: string & tags.MinLength<1> & tags.MaxLength<80>
  /** Its address, as in the `iss` claim of its tokens: https, or http on this machine. */
  issuer: string
    & tags.Pattern<'^(https://[^\\s/?#@]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?)(/[^\\s?#]*)?$'>
  /** The audiences of its tokens; a token must name one of them. */
  audience: string[] & tags.MinItems<1>
  clientId: string & tags.MinLength<1>
  /** The claim with the e-mail; default: `email`. */
  emailClaim?: string & tags.MinLength<1>
  /** `off`: its sign-in client sets no nonce, so each token is accepted only once and for 10 minutes. */
  nonce?: 'off'
  /**
   * How a page signs in: with an authorization code and PKCE, or with an identity token where the provider requires a
   * client secret for codes; left out: `code`.
   */
  flow?: 'code' | 'id_token'
}

/** A control token without its value and hash. */
export interface TokenRow {
  id: string
  label: string
  scope: Scope
  createdAt: Millis
  createdBy: string
  expiresAt?: Millis
  lastUsedAt?: Millis
  lastUsedFrom?: string
}

/** Identity, version and routes of this daemon. */
export interface KernelInfo {
  sandboxId: string
  workspaceId: string
  version: string
  build: string
  routes: string[]
  shapes: { [id: string]: string }
  wall: 'bwrap' | 'unshare' | 'none'
  boot: BootProgress
}

/** A route of a group, and who may use it; without a role it needs no general credential. */
export interface GroupRoute {
  /** Its method and path. */
  call: string
  id: string
  role?: Role
  tokens?: Scope[]
  /** It serves programs of extensions alone. */
  only?: 'extension'
  /** A turn makes it with its own credential too. */
  turns?: true | 'sandbox'
}

/** A loaded group: the calls it makes, and the routes it serves. */
export interface LoadedGroup {
  name: string
  version: string
  calls: string[]
  routes: GroupRoute[]
}

/** One form of a value, for callers who reach all of these paths. */
export interface PlacedForm {
  within: string[]
  value: unknown
}

/** The forms of a frame for people limited to areas; every path is a real location. */
export interface FrameForms {
  /** Forms of the whole frame: sends the first one that the person reaches, or none. Default: the frame itself. */
  forms?: PlacedForm[]
  /** Forms of each item of a list in the frame: keeps the first one that the person reaches, or drops the item. */
  list?: { field: string; items: PlacedForm[][] }
  /** Sums in the frame, each over the parts whose paths the person reaches. */
  sums?: { fields: string[]; parts: { within: string[]; add: { [field: string]: number } }[] }
}

/** One frame for the event stream of the sandbox. */
export interface LiveFrame {
  /** The form for people. */
  data: { kind: string }
  /** The form for control tokens, if different; false: they do not receive it. */
  tokens?: { kind: string } | false
  /** The forms for people limited to areas; absent: they do not receive it. */
  limited?: FrameForms
  /** A snapshot: only the newest of its kind is kept, and watchers receive it first. */
  snapshot?: true
  /** Only for watchers of this mode; the first snapshot of a kind is for all watchers. */
  mode?: string
}

/** A served route as its manifest declares it. */
export interface ServedRoute {
  /** The operation id. */
  id: string
  /** Left out: an open route. */
  role?: Role
  tokens?: Scope[]
  /** It serves programs of extensions alone. */
  only?: 'extension'
}

/** A route that an extension's process may call. */
export interface ExtensionReach {
  /** Its operation id. */
  route: string
  /** The entries of the manifest that reach it, such as `GET /areas/{id}`. */
  entries: string[]
}

/** A call of a route for an extension. */
export interface ExtensionCall {
  /** `<publisher>.<name>` */
  extension: string
  /** The most that it may do: owner routes are never reached. */
  role: Exclude<Role, 'owner'>
  /** The route as it is declared, such as `GET /areas/{id}`. */
  call: string
  input: object
}

/** What became of the requests of one route since the start. */
export interface CallFigure {
  /** The route as it is declared, such as `GET /areas/{id}`. */
  call: string
  group: string
  /** How many were answered with each status. */
  statuses: { status: number; count: number }[]
  /** How many were answered with a value, and how long these took together: streams and sockets have no time. */
  timed: number
  seconds: number
  /** The number of answers within each bound. */
  within: { seconds: number; count: number }[]
}

/** What the kernel counted since the start. */
export interface KernelFigures {
  calls: CallFigure[]
  /** Streams and WebSockets that are open now. */
  streams: number
  sockets: number
}

/** The calls of the kernel, for plugins that declare them. */
export interface Kernel {
  /** Identity, version and routes of this daemon, and its boot progress. */
  'kernel.info'(): KernelInfo
  /**
   * Restarts the daemon 200 ms after the answer; streams end with the reason. `restarting` is false if the daemon runs
   * inside another program.
   */
  'kernel.restart'(input: { reason: 'restarting' | 'restored' }): { restarting: boolean }
  /** How many requests each route got, how they were answered and how long that took. */
  'kernel.figures'(): KernelFigures
  /** Whether the caller may use a route, by the access in its manifest; `message` says what is needed. */
  'kernel.access.admits'(input: { call: string }): { admits: boolean; message?: string }
  /** The loaded groups with their routes. */
  'kernel.groups'(): { groups: LoadedGroup[] }
  /**
   * The addresses that this daemon listens on, to exclude as targets of outgoing requests, and its process. The first
   * is that of the calls.
   */
  'kernel.listeners'(): { listeners: { host: string; port: number }[]; pid: number }
  /**
   * Replaces the addresses that a group listens on, or with `programs` those of programs that it runs for the daemon,
   * such as local models, which the daemon itself asks.
   */
  'kernel.listeners.set'(input: { name: string; listeners: { host: string; port: number }[]; programs?: boolean }): Ok
  /** Whether the sandbox has an owner, and how people sign in. */
  'kernel.identity.state'(): {
    claimed: boolean
    local: boolean
    claim: 'first' | 'code'
    providers: IdentityProvider[]
  }
  /**
   * Signs a person in with a login code, an identity confirmed by a provider, or an invitation.
   *
   * A code is deleted in the same write that grants access. `claimNeeded`: a sandbox without an owner requires the
   * claim code.
   */
  'kernel.session.open'(input: {
    login?: string
    person?: { issuer: string; subject: string; email: string; name?: string; picture?: string }
    claim?: string
    invite?: string
    name?: string
    claimNeeded?: boolean
    device: string
    address: string
  }): { session: OpenedSession; did?: 'claimed' | 'joined' }
  /** Gives a session a new secret and a later expiry. */
  'kernel.session.renew'(input: { token: string; address: string }): OpenedSession
  /**
   * Ends sessions: one by id, all of one person, or all. Returns their number; `lasting` counts those that would have
   * survived a restart.
   */
  'kernel.session.revoke'(input: { id?: string; email?: string }): { revoked: number; lasting: number }
  /** The active sessions of one person, or all; most recently used first. */
  'kernel.session.list'(input: { email?: string }): { sessions: AccessSession[] }
  /** All members, the owner first, and the open invitations. */
  'kernel.members.list'(): MemberList
  /** Gives a person a role, and limits them to areas; ends streams and sockets when their access shrinks. */
  'kernel.members.grant'(input: { email: string; role: Role; areas?: string[]; by: string }): Ok
  /** Sets the areas of people, all in one step; without `areas` the person reaches the whole workspace. */
  'kernel.members.limit'(input: { people: { email: string; areas?: string[] }[] }): Ok
  /** Makes an invitation; only this answer contains its code. */
  'kernel.members.invite'(input: { role: Role; areas?: string[]; note?: string; expiresAt?: number; by: string }): {
    id: string
    code: string
    expiresAt: Millis
  }
  /** Removes a person with all their sessions, or withdraws an invitation. */
  'kernel.members.remove'(input: { email?: string; invitation?: string }): Ok
  /** Mints a control token; only this answer contains its value. */
  'kernel.token.mint'(input: { label: string; scope: Scope; expiresAt?: number; createdBy: string }): {
    id: string
    token: string
  }
  /** All tokens that were not revoked, newest first; expired ones for 30 days. */
  'kernel.token.list'(): { tokens: TokenRow[] }
  /** Revokes a token immediately. */
  'kernel.token.revoke'(input: { id: string }): Ok
  /**
   * Mints a ticket for the person whose call is served: for any WebSocket, or for one purpose and optionally one name.
   * It is valid once and for 30 s; for bundles any number of times for 1 hour, for events any number of times for 12
   * hours. Only this answer contains it.
   */
  'kernel.ticket.mint'(input: { purpose?: string; name?: string }): { ticket: string; expiresAt: Millis }
  /**
   * Redeems a ticket: returns its person with current role and areas, and whether this is its first use. Routes that
   * declare a ticket in their manifest do not need this call.
   */
  'kernel.ticket.redeem'(input: { ticket: string; purpose: string; name: string; address: string }): {
    caller: Caller
    first: boolean
  }
  /** Reports that a person's reach changed: ends their streams, sockets and tickets. */
  'kernel.members.moved'(input: { email: string }): Ok
  /**
   * Notifies watchers of a change in a domain, which the caller's manifest must declare; `key` is the changed id.
   *
   * `within` are the real locations of the key. People limited to areas receive a key only if they reach all its
   * locations; without locations they receive only the domain.
   */
  'kernel.events.publish'(input: { domain: string; key?: string; within?: string[] }): Ok
  /** Replaces the secret values that the daemon's logs show as references. */
  'kernel.redact.values'(input: { values: { name: string; value: string }[] }): Ok
  /** Publishes frames on the event stream, in order and with no other frame between them. */
  'kernel.events.show'(input: { frames: LiveFrame[] }): Ok
  /** The frames of the event stream from now on, as control tokens receive them. */
  'kernel.events.watch'(): Stream<{ kind: string }>
  /** Who may use a route, and whether it streams; nothing if no group serves it. */
  'kernel.route'(input: { call: string }): { access?: ServedRoute }
  /** Makes a call for an extension, whose input is checked; bytes are answered whole. */
  'kernel.extension.call'(input: ExtensionCall): { value: unknown }
  /** The events of a call that streams, made for an extension. */
  'kernel.extension.stream'(input: ExtensionCall): Stream<unknown>
  /**
   * Mints the credential of one process of an extension, which reaches these routes and nothing else. It is in memory
   * alone; only this answer contains it.
   */
  'kernel.extension.mint'(input: { extension: string; reach: ExtensionReach[] }): { id: string; token: string }
  /** Ends the credential of a process, with its streams. */
  'kernel.extension.end'(input: { id: string }): Ok
  /**
   * Mints the credential of a turn: it makes the calls whose manifest lets turns make them, for this conversation, as
   * far as its reach goes. It is in memory alone; only this answer contains it.
   */
  'kernel.turn.mint'(input: { conversationId: string; reach?: TurnReach }): { id: string; token: string }
  /** Takes the sandbox's reads and the network from the credential of a turn, for as long as it lasts. */
  'kernel.turn.narrow'(input: { id: string }): Ok
  /** Ends the credential of a turn, with its streams. */
  'kernel.turn.end'(input: { id: string }): Ok
  /**
   * Mints the credential of a run of the command-line tool: it reaches what the person whose call is served may do at
   * that moment, but for the calls that no control token reaches. It is in memory alone; only this answer contains it.
   */
  'kernel.run.mint'(): { id: string; token: string }
  /** Ends the credential of a run, with its streams. */
  'kernel.run.end'(input: { id: string }): Ok
  /** The pieces of the body of a request below a subtree, once. */
  'kernel.subtree.body'(input: { body: number }): Stream<{ bytes: Uint8Array }>
}

/** The kernel's events, which every plugin receives. */
export interface KernelEvents {
  /**
   * An address presented an invalid credential. Not emitted for an address over its limit, whose credentials are
   * refused unchecked.
   */
  'credential.refused': { address: string; credential: string }
  /** The process of an extension used an entry of its manifest. */
  'extension.reached': { extension: string; entry: string }
  /** All boot steps have ended. It starts a group only if it ran before in this data folder. */
  'daemon.ready': { ms: number }
  /** A credential ended, or a person's access was reduced; end everything that depends on it. */
  'credential.ended': { sessionId?: string; tokenId?: string; email?: string }
}
