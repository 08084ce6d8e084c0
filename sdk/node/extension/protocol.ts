import type { tags } from 'typia'
import type { Count, Millis, Role } from '../../types.js'

/** The version of the host API, which the `engines` of a manifest are compared with. */
export const HOST_API = '1.0.0'

/** The largest message in bytes, with its binary parts. */
export const MOST_MESSAGE = 8 * 1024 * 1024

/** The most requests of one side that are not answered yet. */
export const MOST_IN_FLIGHT = 256

/** The size of one piece of a stream of bytes. */
export const LINK_PIECE = 256 * 1024

/** Why something was not done. */
export interface LinkFailure {
  message: string & tags.MaxLength<20000>
  /** `denied`: the manifest lacks `entry`. */
  code?: string & tags.MaxLength<100>
  entry?: string & tags.MaxLength<500>
  /** The HTTP status of a refused call. */
  status?: Count
}

/** Asks the other side to do something; `id` is new for each request of a side. */
export interface LinkRequest {
  kind: 'request'
  id: Count
  op: string & tags.MaxLength<60>
  input: unknown
}
/** The answer to a request. */
export interface LinkReply {
  kind: 'reply'
  id: Count
  value?: unknown
}
/** A request that was not carried out. */
export interface LinkRefuse {
  kind: 'refuse'
  id: Count
  failure: LinkFailure
}
/** Asks for the next item of a stream that the other side offered. */
export interface LinkPull {
  kind: 'pull'
  stream: Count
}
/** The next item of a stream, or its end. */
export interface LinkNext {
  kind: 'next'
  stream: Count
  value?: unknown
  done?: boolean
  failure?: LinkFailure
}
/** The answer to a request is not needed any more. */
export interface LinkCancel {
  kind: 'cancel'
  id: Count
}
/** No further item of a stream is needed. */
export interface LinkClose {
  kind: 'close'
  stream: Count
}
/** Asks whether the other side works; answered at once by `pong`. */
export interface LinkPing {
  kind: 'ping'
}
/** Answers a ping. */
export interface LinkPong {
  kind: 'pong'
}

/** One message between the daemon and the process of an extension. */
export type LinkMessage =
  LinkRequest | LinkReply | LinkRefuse | LinkPull | LinkNext | LinkCancel | LinkClose | LinkPing | LinkPong

/** A stream that the sender of the message holds, to be pulled by its number. */
export interface StreamRef {
  stream: Count
}

/** Bytes that go through the pipe beside the JSON. */
export type LinkBytes = Uint8Array

/** Bytes from a backend; the validators do not know the type, so its users check it. */
export type UncheckedBytes = unknown

type Key = string & tags.MinLength<1> & tags.MaxLength<500>
type Name = string & tags.MinLength<1> & tags.MaxLength<200>
type WorkspaceName = string & tags.MinLength<1> & tags.MaxLength<1000>
type Entry = string & tags.MinLength<3> & tags.MaxLength<500>

/** Names and values of headers or of a query. */
export interface TextFields {
  [name: string]: string & tags.MaxLength<65536>
}

/** A request to a server outside. */
export interface HostFetchInput {
  url: string & tags.MinLength<1> & tags.MaxLength<8192>
  method?: string & tags.Pattern<'^[A-Za-z]{1,20}$'>
  headers?: TextFields
  query?: TextFields
  /** Text or bytes. */
  body?: UncheckedBytes
  /** The body in pieces. */
  pieces?: StreamRef
  redirect?: 'follow' | 'manual'
  timeoutMs?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<600000>
}

/** How a background program of an extension stands. What it prints is in the log `plugins/extension-<id>.log`. */
export interface ExtensionProcessStatus {
  name: string
  running: boolean
  /**
   * `exited`: it ended and is not started again; `restarting`: it is started again after a while; `quarantined`: it
   * ended too often, and somebody has to start it.
   */
  state: 'running' | 'starting' | 'stopped' | 'exited' | 'restarting' | 'quarantined'
  /** The first process of its wall, on this machine. */
  pid?: Count
  /** The port that it was given in `PORT`, on this machine. */
  port?: Count
  /** The address at which everybody who knows it reaches the program, where its manifest asks for a preview. */
  previewUrl?: string
  /** When it was started. */
  since?: Millis
  /** Of its last end. */
  exitCode?: Count
  /** How often it was started again by itself since somebody started it. */
  restarts: Count
  /** Why it does not run, as a sentence. */
  detail?: string
}

/** The end of a background program: with an exit code, or by a signal. */
export interface ExtensionProcessExit {
  name: string
  code?: number
  signal?: string
}

/** What a backend asks of the daemon. */
export interface HostOperations {
  log(input: { level: 'debug' | 'info' | 'warn' | 'error'; message: string; fields?: { [name: string]: unknown } }): {}
  'storage.get'(input: { key: Key }): { value?: unknown }
  'storage.set'(input: { key: Key; value: unknown }): {}
  'storage.delete'(input: { key: Key }): { existed: boolean }
  'storage.list'(input: {
    prefix?: string & tags.MaxLength<500>
    limit?: Count
    after?: string & tags.MaxLength<500>
  }): { keys: string[]; next?: string }
  'storage.compareAndSet'(input: { key: Key; expected?: unknown; value: unknown }): { done: boolean }
  'settings.get'(input: {}): { settings: { [key: string]: string | number | boolean } }
  'secrets.ref'(input: { name: Name }): { reference: string }
  'secrets.has'(input: { name: Name }): { has: boolean }
  'secrets.hmac'(input: { name: Name; algorithm: 'sha256' | 'sha512'; data: UncheckedBytes }): { bytes: LinkBytes }
  'secrets.value'(input: { key: Name }): { value: string }
  fetch(input: HostFetchInput): { status: Count; headers: TextFields; url: string; body: StreamRef }
  connect(input: {
    host?: string & tags.MaxLength<255>
    port?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<65535>
    tls?: boolean
    url?: string & tags.MaxLength<8192>
    headers?: TextFields
  }): { socket: Count; frames: StreamRef }
  'socket.send'(input: { socket: Count; data: UncheckedBytes }): {}
  'socket.close'(input: { socket: Count }): {}
  call(input: { entry: Entry; input?: unknown }): { value: unknown }
  stream(input: { entry: Entry; input?: unknown }): StreamRef
  'routes.handle'(input: { route: Count; entry: Entry; floor?: Role; to?: Name[] & tags.MaxItems<50> }): {}
  'routes.off'(input: { route: Count }): {}
  'events.on'(input: { subscription: Count; kind: Name }): {}
  'events.off'(input: { subscription: Count }): {}
  'events.publish'(input: { name: string & tags.Pattern<'^[a-z0-9][a-z0-9-]{0,59}$'>; data: unknown }): {}
  'files.read'(input: {
    path: WorkspaceName
    offset?: number & tags.Type<'uint64'>
    limit?: number & tags.Type<'uint64'>
    conversation?: Name
  }): { bytes: LinkBytes }
  'files.stat'(input: { path: WorkspaceName }): { found?: { type: 'file' | 'dir'; size: number; mtimeMs: number } }
  'files.write'(input: { path: WorkspaceName; data: UncheckedBytes; conversation?: Name }): {}
  'files.list'(input: { path: WorkspaceName }): { entries: { name: string; type: 'file' | 'dir' }[] }
  'files.remove'(input: { path: WorkspaceName }): {}
  'files.move'(input: { from: WorkspaceName; to: WorkspaceName }): {}
  'files.watch'(input: { watch: Count; glob: WorkspaceName }): {}
  'files.unwatch'(input: { watch: Count }): {}
  'processes.run'(input: {
    program: string & tags.Pattern<'^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$'>
    args: string[] & tags.MaxItems<1000>
    cwd?: WorkspaceName
    env?: TextFields
    input?: UncheckedBytes
    timeoutMs?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<600000>
  }): { code?: number; signal?: string; stdout: LinkBytes; stderr: LinkBytes; truncated: boolean }
  'processes.start'(input: { name: Name }): {}
  'processes.stop'(input: { name: Name }): {}
  'processes.status'(input: { name: Name }): { status: ExtensionProcessStatus }
  'processes.watch'(input: { watch: Count }): {}
  'processes.unwatch'(input: { watch: Count }): {}
  'tools.handle'(input: { name: Name }): {}
  'tools.off'(input: { name: Name }): {}
  'tools.progress'(input: { call: Count; text: string & tags.MaxLength<20000> }): {}
  'schedule.at'(input: { key: Key; when: number & tags.Type<'uint64'> }): {}
  'schedule.cron'(input: { key: Key; expression: string & tags.MaxLength<100> }): {}
}

/** A request of a caller to one of the extension's routes. */
export interface RouteInput {
  route: Count
  method: string
  path: string
  params: TextFields
  query: { [name: string]: string | string[] }
  headers: TextFields
  body?: StreamRef
  /** The body is JSON. */
  json?: true
  caller: { kind: 'person' | 'token' | 'turn' | 'extension'; actor: string; role: Role }
}

/** What the daemon asks of a backend. */
export interface BackendOperations {
  activate(input: {
    id: string
    version: string
    source: 'builtin' | 'installed' | 'workspace'
    dir: string
    dataDir: string
    server: string
  }): {}
  route(input: RouteInput): {
    status?: number & tags.Type<'uint32'> & tags.Minimum<200> & tags.Maximum<599>
    headers?: TextFields
    json?: unknown
    bytes?: UncheckedBytes
    /** Bytes in pieces. */
    pieces?: StreamRef
    events?: StreamRef
  }
  tool(input: {
    name: string
    call: Count
    input: unknown
    conversationId: string
    run: string
    persona?: string
    unattended: boolean
  }): { text: string & tags.MaxLength<1000000>; data?: unknown; error?: boolean }
  event(input: { subscription: Count; event: unknown }): {}
  files(input: { watch: Count; paths: string[] }): {}
  exited(input: { watch: Count; exit: ExtensionProcessExit }): {}
  settings(input: { keys: string[] }): {}
  due(input: { key: string }): {}
  stop(input: {}): {}
}

type Inputs<Operations> = { [O in keyof Operations]: Operations[O] extends (input: infer I) => unknown ? I : never }
type Outputs<Operations> = { [O in keyof Operations]: Operations[O] extends (input: never) => infer R ? R : never }

/** The input of one operation. */
export type OperationInput<Operations, O extends keyof Operations> = Inputs<Operations>[O]
/** The output of one operation. */
export type OperationOutput<Operations, O extends keyof Operations> = Outputs<Operations>[O]

/** All inputs of a set of operations, for one validator. */
export type OperationInputs<Operations> = {
  [O in keyof Operations]: { op: O; input: Inputs<Operations>[O] }
}[keyof Operations]
/** All outputs of a set of operations, for one validator. */
export type OperationOutputs<Operations> = {
  [O in keyof Operations]: { op: O; output: Outputs<Operations>[O] }
}[keyof Operations]
