import type { tags } from 'typia'
import type { Caller, Millis, Ok, Role, Scope } from './types.js'

/** A program of the machine, whether it is there, and how to install it. */
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

/** How far the start has come. */
export interface BootProgress {
  ready: boolean
  startedAt: Millis
  steps: BootStep[]
}

/** A session as the kernel hands it out: the token is in this answer only. */
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

/** A session as listed: never its token, never its hash. */
export interface AccessSession {
  id: string
  email: string
  name?: string
  role: Role
  /** The name the client gave, else the user agent's product. */
  device?: string
  via: 'oidc' | 'local' | 'invitation'
  createdAt: Millis
  lastSeenAt: Millis
  expiresAt: Millis
  /** The last source address; for the owner and the session's own person only. */
  address?: string
  current: boolean
}

/** A person with a role here. */
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
  /** They have signed in, so issuer and subject are pinned. */
  bound: boolean
}

/** An invitation that can still be redeemed: never its code. */
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
  /** Its address, as its tokens name it: https, or http on this machine. */
  issuer: string
    & tags.Pattern<'^(https://[^\\s/?#@]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d+)?)(/[^\\s?#]*)?$'>
  /** The audiences of its tokens; a token must name one of them. */
  audience: string[] & tags.MinItems<1>
  clientId: string & tags.MinLength<1>
  /** The claim that holds the e-mail; left out: `email`. */
  emailClaim?: string & tags.MinLength<1>
  /** `off`: its sign-in program sets no nonce, so each token counts once and for 10 minutes only. */
  nonce?: 'off'
  /**
   * How a page signs in: with an authorization code and PKCE, or with an identity token where the provider requires a
   * client secret for codes; left out: `code`.
   */
  flow?: 'code' | 'id_token'
}

/** A control token as listed: never its value, never its hash. */
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

/** What this daemon is, as far as the kernel knows. */
export interface KernelInfo {
  sandboxId: string
  workspaceId: string
  version: string
  build: string
  routes: string[]
  shapes: { [id: string]: string }
  boot: BootProgress
}

/** One form of something, for those who reach all of these places. */
export interface PlacedForm {
  within: string[]
  value: unknown
}

/** What people limited to areas get of a frame; every place is a real location. */
export interface FrameForms {
  /** Of the whole frame: the first form that fits, or nothing. Left out: as it is. */
  forms?: PlacedForm[]
  /** Of each item of a list in it: the first of its forms that fits, or nothing. */
  list?: { field: string; items: PlacedForm[][] }
  /** Figures in it, each the sum of the parts whose places are all reached. */
  sums?: { fields: string[]; parts: { within: string[]; add: { [field: string]: number } }[] }
}

/** One frame for the sandbox's event stream. */
export interface LiveFrame {
  /** What people receive. */
  data: { kind: string }
  /** What control tokens receive, where that differs; false: nothing. */
  tokens?: { kind: string } | false
  /** What people limited to areas receive; left out: nothing. */
  limited?: FrameForms
  /** The newest of its kind replaces the one before, and is what a watcher begins with. */
  snapshot?: true
  /** Only for watchers that asked for this mode; the first snapshot of a kind is for all. */
  mode?: string
}

/** The kernel's own powers, for the plugins whose manifest names them. */
export interface Kernel {
  /** What this daemon is and how far its start has come. */
  'kernel.info'(): KernelInfo
  /**
   * Restarts the daemon, a moment after the call was answered; streams end with the reason. `restarting` is false if
   * the daemon runs inside another program.
   */
  'kernel.restart'(input: { reason: 'restarting' | 'restored' }): { restarting: boolean }
  /**
   * Whether the caller being served may use a route, by the access its manifest names; `message` says what would do.
   */
  'kernel.access.admits'(input: { call: string }): { admits: boolean; message?: string }
  /** The addresses this daemon listens on: never a target of a request on behalf of others. */
  'kernel.listeners'(): { listeners: { host: string; port: number }[] }
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
   * Codes are used up in the very write that grants. `claimNeeded`: an unowned sandbox asks them for the claim code.
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
  /** Gives the session presented a new secret and a later end. */
  'kernel.session.renew'(input: { token: string; address: string }): OpenedSession
  /**
   * Ends sessions: one by id, all of one person, or all. Answers how many, and how many of them would have outlived the
   * daemon.
   */
  'kernel.session.revoke'(input: { id?: string; email?: string }): { revoked: number; lasting: number }
  /** The active sessions of one person, or all; the newest use first. */
  'kernel.session.list'(input: { email?: string }): { sessions: AccessSession[] }
  /** Everybody with a role here, the owner first, and the open invitations. */
  'kernel.members.list'(): MemberList
  /** Gives a person a role, or limits them to areas; what they no longer reach is closed. */
  'kernel.members.grant'(input: { email: string; role: Role; areas?: string[]; by: string }): Ok
  /**
   * Limits people to areas and to no others, all of them in one step; without `areas` lifts the limit of that person.
   */
  'kernel.members.limit'(input: { people: { email: string; areas?: string[] }[] }): Ok
  /** Makes an invitation; its code is in this answer only. */
  'kernel.members.invite'(input: { role: Role; areas?: string[]; note?: string; expiresAt?: number; by: string }): {
    id: string
    code: string
    expiresAt: Millis
  }
  /** Takes a person's access away, with all their sessions, or withdraws an invitation. */
  'kernel.members.remove'(input: { email?: string; invitation?: string }): Ok
  /** Mints a control token; its value is in this answer only. */
  'kernel.token.mint'(input: { label: string; scope: Scope; expiresAt?: number; createdBy: string }): {
    id: string
    token: string
  }
  /** Every token not revoked; expired ones for 30 days. Newest first. */
  'kernel.token.list'(): { tokens: TokenRow[] }
  /** Makes a token unusable at once. */
  'kernel.token.revoke'(input: { id: string }): Ok
  /**
   * Mints a ticket for the person whose call is served: for any socket, or for one purpose, and there for anything or
   * for one name. It is good for 30 s and once, a bundle's for an hour and often, one for events for 12 hours and
   * often; the ticket is in this answer only.
   */
  'kernel.ticket.mint'(input: { purpose?: string; name?: string }): { ticket: string; expiresAt: Millis }
  /**
   * Takes a ticket and answers who it stands for, with role and areas as they are now, and whether it was shown for the
   * first time. A route whose manifest names a ticket is given that caller without asking.
   */
  'kernel.ticket.redeem'(input: { ticket: string; purpose: string; name: string; address: string }): {
    caller: Caller
    first: boolean
  }
  /** Reports that a person's reach changed: ends their streams, sockets and tickets. */
  'kernel.members.moved'(input: { email: string }): Ok
  /**
   * Tells watchers to read a domain again; `key` is the id that changed. The domain is one the caller's manifest
   * declares.
   *
   * `within` are the real locations of what the key names: people limited to areas get the keys whose locations they
   * reach completely; without locations, only that something changed.
   */
  'kernel.events.publish'(input: { domain: string; key?: string; within?: string[] }): Ok
  /** Replaces the values that the daemon's own logs show as references only. */
  'kernel.redact.values'(input: { values: { name: string; value: string }[] }): Ok
  /** Puts frames on the sandbox's event stream, in order and with no other between them. */
  'kernel.events.show'(input: { frames: LiveFrame[] }): Ok
}

/** The kernel's events, which every plugin receives. */
export interface KernelEvents {
  /**
   * An invalid credential was presented from an address. Further ones of an address over its limit are refused
   * unchecked and not reported.
   */
  'credential.refused': { address: string; credential: string }
  /** Every boot step has ended. */
  'daemon.ready': { ms: number }
  /** A credential ended, or a person's access shrank; end everything that relies on it. */
  'credential.ended': { sessionId?: string; tokenId?: string; email?: string }
}
