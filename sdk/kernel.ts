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

/** What a ticket lets in to: one of the sockets, or the download of a bundle. */
export type TicketPurpose = 'terminal' | 'browser' | 'bundle'

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

/** What can be read again when `runtimeChanged` names it; closed: a group adds its domains here first. */
export type Domain =
  | 'terminals' | 'browsers' | 'subagents' | 'panels' | 'ports' | 'index' | 'sessions' | 'members' | 'bundles' | 'machine'
  | 'needs' | 'approvals' | 'drafts' | 'automations' | 'workflows' | 'loops' | 'ci' | 'prepush' | 'offload' | 'issues'
  | 'settings' | 'personas' | 'skills' | 'extensions' | 'capabilities' | 'accounts' | 'providers' | 'routed' | 'endpoints'
  | 'secrets' | 'areas' | 'safety' | 'privacy' | 'vpn' | 'disks' | 'exit' | 'inventory' | 'cli' | 'outbox' | 'share'
  | 'chores' | 'history' | 'landings' | 'usage' | 'activity' | 'logs' | 'push'

/** One frame for the sandbox's event stream. */
export interface LiveFrame {
  /** What people receive. */
  data: { kind: string }
  /** What control tokens receive, where that differs; false: nothing. */
  tokens?: { kind: string } | false
  /** The newest of its kind replaces the one before, and is what a watcher begins with. */
  snapshot?: true
  /** Only for watchers that asked for this mode; the first snapshot of a kind is for all. */
  mode?: string
}

/** The kernel's own powers, for the plugins whose manifest names them. */
export interface Kernel {
  /** What this daemon is and how far its start has come. */
  'kernel.info'(): KernelInfo
  /** Starts the daemon anew, a moment after its caller was answered; streams are told why. `restarting` is false where it runs in another program. */
  'kernel.restart'(input: { reason: 'restarting' | 'restored' }): { restarting: boolean }
  /** The addresses this daemon listens on: never a target of a request made for somebody else. */
  'kernel.listeners'(): { listeners: { host: string; port: number }[] }
  /** Whether the sandbox has an owner, and whether the local sign-in is on. */
  'kernel.identity.state'(): { claimed: boolean; local: boolean; claim: 'first' | 'code' }
  /** A fresh nonce that a provider's identity token must carry. */
  'kernel.identity.nonce'(): { nonce: string; expiresAt: Millis }
  /** Redeems a one-time login code for the owner's session. */
  'kernel.session.login'(input: { code: string; device: string; address: string }): OpenedSession
  /** Gives the session presented a new secret and a later end. */
  'kernel.session.renew'(input: { token: string; address: string }): OpenedSession
  /** Ends sessions: one by id, all of one person, or all. Answers how many. */
  'kernel.session.revoke'(input: { id?: string; email?: string }): { revoked: number }
  /** Mints a control token; its value is in this answer only. */
  'kernel.token.mint'(input: { label: string; scope: Scope; expiresAt?: number; createdBy: string }): { id: string; token: string }
  /** Every token not revoked; expired ones for 30 days. Newest first. */
  'kernel.token.list'(): { tokens: TokenRow[] }
  /** Makes a token unusable at once. */
  'kernel.token.revoke'(input: { id: string }): Ok
  /**
   * Mints a ticket for the person whose call is served: for any socket, or for one purpose, and there for anything or for one
   * name. It is good for 30 s and once, a bundle's for an hour and often; the ticket is in this answer only.
   */
  'kernel.ticket.mint'(input: { purpose?: TicketPurpose; name?: string }): { ticket: string; expiresAt: Millis }
  /**
   * Takes a ticket and answers who it stands for, with role and areas as they are now, and whether it was shown for the first
   * time. A route whose manifest names a ticket is given that caller without asking.
   */
  'kernel.ticket.redeem'(input: { ticket: string; purpose: TicketPurpose; name: string; address: string }): { caller: Caller; first: boolean }
  /** Tells watchers to read a domain again; `key` is the id that changed. The domain is one the caller's manifest declares. */
  'kernel.events.publish'(input: { domain: Domain; key?: string }): Ok
  /** Puts frames on the sandbox's event stream, in order and with no other between them. */
  'kernel.events.show'(input: { frames: LiveFrame[] }): Ok
}

/** What the kernel tells every plugin. */
export interface KernelEvents {
  /** Every boot step has ended. */
  'daemon.ready': { ms: number }
  /** A credential stopped being valid; streams that stand on it end. */
  'credential.ended': { sessionId?: string; tokenId?: string }
}
