import type { tags } from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type { BootProgress, BootStep } from '../../../sdk/kernel.js'
import type { Count, Millis, Ok, Role } from '../../../sdk/types.js'
import type { AgentCard } from '../../agents/contract.js'
import type { WorkspaceChangedEvent } from '../../workspace/contract.js'
import type { Me } from '../access/contract.js'

/** A client's own name for itself. */
export type ClientId = string & tags.MinLength<1> & tags.MaxLength<64>

/** A subject of `runtimeChanged`: read it again when the event names it. A group that announces one adds it here. */
export type Domain =
  | 'terminals'
  | 'browsers'
  | 'subagents'
  | 'panels'
  | 'ports'
  | 'index'
  | 'sessions'
  | 'members'
  | 'bundles'
  | 'machine'
  | 'needs'
  | 'approvals'
  | 'drafts'
  | 'automations'
  | 'workflows'
  | 'loops'
  | 'ci'
  | 'prepush'
  | 'offload'
  | 'issues'
  | 'settings'
  | 'personas'
  | 'skills'
  | 'extensions'
  | 'capabilities'
  | 'accounts'
  | 'providers'
  | 'routed'
  | 'endpoints'
  | 'secrets'
  | 'areas'
  | 'safety'
  | 'privacy'
  | 'vpn'
  | 'disks'
  | 'exit'
  | 'inventory'
  | 'cli'
  | 'outbox'
  | 'share'
  | 'chores'
  | 'history'
  | 'landings'
  | 'usage'
  | 'activity'
  | 'logs'
  | 'push'

/** Versions of domains: each increases by one with every change. */
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
  /** The newest frame when this was sent. */
  seq: number & tags.Type<'uint64'>
  /** True: everything since the given id follows. False: read each domain again whose version differs from yours. */
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
/** Read these again; bursts are merged. `keys` are the ids that changed, when they are few. */
export interface RuntimeChangedEvent {
  kind: 'runtimeChanged'
  domains: Domain[]
  versions: Versions
  keys?: string[]
}
/** A person who has the sandbox open, and what their client reports. */
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
  /** Only increases; ignore events older than your state. */
  rev: Count
}
/** One changed card, or the id of a removed one; only with `roster=delta`. */
export interface AgentEvent {
  kind: 'agent'
  rev: Count
  agent?: AgentCard
  removed?: string
}
/** Commits, branches, tags, stash, index or a halted operation of these repositories changed. */
export interface RefsChangedEvent {
  kind: 'refsChanged'
  repos: string[]
}
/** A repository came, or went: all that are there now. People limited to areas do not get it. */
export interface ReposChangedEvent {
  kind: 'reposChanged'
  repos: string[]
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
/**
 * Your state may be stale: a hello and snapshots follow; with `access` in the stream you open next, since this one
 * ends.
 */
export interface ResyncEvent {
  kind: 'resync'
  reason: 'slow' | 'access'
}
/** One event of the sandbox. Ignore a kind you do not know. */
export type SystemEvent =
  | HelloEvent
  | HeartbeatEvent
  | BootEvent
  | RuntimeChangedEvent
  | PresenceEvent
  | AgentsEvent
  | AgentEvent
  | AttentionEvent
  | WorkspaceChangedEvent
  | RefsChangedEvent
  | ReposChangedEvent
  | ResyncEvent

/** A client with an open event stream; idle: nobody looks at it. */
export interface PresentClient {
  email: string
  idle: boolean
}

/** The events of the sandbox, and the people who have it open. */
export interface StreamCalls {
  /**
   * Follow everything that happens in the sandbox.
   *
   * It begins with `hello` and the snapshots. Every event has an id, and a cut stream resumes after `last-event-id`
   * without a gap (`after` is the same for clients that cannot set headers). `clientId` puts a person's connection on
   * the presence roster; without it, or with a token, the caller is not listed. A reader that falls behind gets
   * `resync` and new snapshots; a caller whose access shrank gets it too, and must reconnect. When a credential ends
   * the stream sends `error` with its status; when the daemon stops it sends `done` with the milliseconds after which
   * to reconnect. A browser's `EventSource` sends a `ticket` of POST /system/ws-ticket instead of a credential; while
   * too many streams are open it gets a `retry` time.
   *
   * - 429: more than 16 streams with this credential
   */
  'GET /events'(input: {
    clientId?: ClientId
    roster?: 'snapshot' | 'delta'
    after?: string & tags.MaxLength<64>
    ticket?: string & tags.MaxLength<64>
  }): Stream<SystemEvent, { reason: 'stopping' | 'restarting' | 'restored'; retryMs: Count }>

  /**
   * Replace what the presence roster says about one's own open stream.
   *
   * Omitted fields are cleared. A `clientId` that is unknown or of another person is ignored. Nothing is stored.
   */
  'POST /system/presence'(input: {
    clientId: ClientId
    idle: boolean
    view?: string & tags.MaxLength<80>
    sessionId?: string & tags.MaxLength<64>
    path?: string & tags.MaxLength<400>
  }): Ok

  /** While it is open, events about the board are sent though no client watches. Its only event says that it is. */
  'stream.board'(): Stream<{ watched: true }>
  /** The people whose clients have the event stream open, an entry for each client. */
  'members.present'(): { present: PresentClient[] }
}
