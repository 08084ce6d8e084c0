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
  | LinkRequest
  | LinkReply
  | LinkRefuse
  | LinkPull
  | LinkNext
  | LinkCancel
  | LinkClose
  | LinkPing
  | LinkPong

/** A stream that the sender of the message holds, to be pulled by its number. */
export interface StreamRef {
  stream: Count
}

/** Bytes that go through the pipe beside the JSON. */
export type LinkBytes = Uint8Array

/** Bytes from a backend; the validators do not know the type, so its users check it. */
export type UncheckedBytes = unknown

/** A key of what is stored or scheduled: 1 to 500 characters. */
type Key = string & tags.MinLength<1> & tags.MaxLength<500>
/** The name of a tool, a secret, a kind of events or a program: 1 to 200 characters. */
type Name = string & tags.MinLength<1> & tags.MaxLength<200>
/** A path of the workspace, or a glob of such paths: 1 to 1,000 characters. */
type WorkspaceName = string & tags.MinLength<1> & tags.MaxLength<1000>
/** A route, as `METHOD /path`: 3 to 500 characters. */
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
  /** The terminal session that it runs in; after an end it shows what the program wrote for 24 h. */
  session: string
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

/** Who wrote a message. */
export interface ListenerAuthor {
  id: string & tags.MaxLength<300>
  name: string & tags.MaxLength<300>
}

/** A message from outside that an extension received; at most 256 KiB. */
export interface ListenerMessage {
  provider: string & tags.MinLength<1> & tags.MaxLength<120>
  type: string & tags.MinLength<1> & tags.MaxLength<60>
  /** The sender's id of the message: the same one again does nothing. */
  id: string & tags.MinLength<1> & tags.MaxLength<300>
  channelId: string & tags.MinLength<1> & tags.MaxLength<300>
  author: ListenerAuthor
  content: string & tags.MaxLength<262144>
  mentioned?: boolean
  branch?: string & tags.MaxLength<300>
  history?: { [key: string]: unknown }[] & tags.MaxItems<100>
  timestamp: string & tags.MaxLength<60>
  /** `threadId` names the thread of a channel, which has a conversation of its own. */
  extra?: { [key: string]: unknown }
}

/** First the automations that a message matched, then what their agents say. */
export interface DispatchFrame {
  /** Once, first. */
  matched?: string[]
  automationId?: string
  delta?: string
  failed?: string
  end?: true
}

/** A connection of a listener, and whether it receives messages. */
export interface ListenerConnection {
  capabilityId: string & tags.MaxLength<120>
  provider: string & tags.MaxLength<120>
  gateway: 'ready' | 'connecting' | 'pairing' | 'disconnected' | 'idle'
  lastError?: string & tags.MaxLength<2000>
}

/** How the connections of a listener stand; forgotten after 90 s. */
export interface ListenerStatus {
  connections: ListenerConnection[] & tags.MaxItems<100>
}

/** An automation that listens to a provider. */
export interface ListeningAutomation {
  id: string
  enabled: boolean
  trigger: { [field: string]: unknown }
}

/** What a listener needs to know. */
export interface ListenerState {
  automations: ListeningAutomation[]
  /** The connections of the cards that its `connection:` entries name; secret fields are references. */
  connections: { id: string; config: { [field: string]: string } }[]
}

/** A ready-made automation that a backend offers. */
export interface OfferedTemplate {
  id: string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
  title: string & tags.MinLength<1> & tags.MaxLength<80>
  /** Cards of which one must be connected. */
  requires?: (string & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'> & tags.MaxLength<60>)[] & tags.MaxItems<20>
  trigger: OfferedTrigger
  guard?: string & tags.MaxLength<2000>
  holdForSeconds?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<86400>
  prompt: string & tags.MinLength<1> & tags.MaxLength<8000>
  note?: string & tags.MaxLength<2000>
  setup?: string & tags.MaxLength<2000>
  description?: string & tags.MaxLength<2000>
  offer?: 'create' | 'configure'
  chore?: boolean
}

/** What starts an offered automation. */
export interface OfferedTrigger {
  kind: 'schedule' | 'event' | 'listener' | 'workspace'
  cron?: string & tags.MaxLength<100>
  provider?: string & tags.MaxLength<60>
  eventType?: string & tags.MaxLength<60>
  event?: string & tags.MaxLength<60>
}

/** A template of an extension, and how many automations were made of it. */
export interface TemplateUse {
  id: string
  /** Offered by the backend, not by the manifest. */
  offered: boolean
  used: Count
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
  'tools.offer'(input: { call: Count; offer: ServiceTerms }): { offer?: string }
  'tools.pay'(input: { call: Count; payment: PaymentRequest }): PaidAnswer
  'tools.served'(input: { call: Count; offer: string & tags.MaxLength<100>; event: ServiceStep }): {}
  'documents.handle'(input: { id: Name }): {}
  'documents.off'(input: { id: Name }): {}
  'listeners.state'(input: {}): { state: ListenerState }
  'listeners.handle'(input: {}): {}
  'listeners.off'(input: {}): {}
  'listeners.dispatch'(input: { message: ListenerMessage; stream?: boolean }): { matched: string[]; frames?: StreamRef }
  'listeners.failure'(input: { detail: string & tags.MaxLength<2000> }): {}
  'listeners.status'(input: { snapshot: ListenerStatus }): {}
  'automations.templates'(input: {}): { templates: TemplateUse[] }
  'automations.offer'(input: { template: OfferedTemplate }): {}
  'automations.withdraw'(input: { id: string & tags.MaxLength<60> }): {}
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

/** A text of an offer, which a person reads. */
type OfferText<Most extends number> = string & tags.MinLength<1> & tags.MaxLength<Most>
/** What a run costs, in the publisher's credits. */
type Credits = number & tags.Minimum<0> & tags.Maximum<1000000000>

/** One run of a service that an extension offers; its publisher is that of the extension. */
export interface ServiceTerms {
  slug: OfferText<120>
  name: OfferText<120>
  description: OfferText<2000>
  creditsPerRun: Credits
  /** What is left of an allowance, and until when. */
  credits?: { allowance: Credits; remaining: Credits; resetsAt: string & tags.MaxLength<40> }
  /** What this run is asked to do. */
  request: OfferText<4000>
  why?: OfferText<2000>
}
/** A request to a server that asks for money, and why it is worth it: a person reads both, and says yes or no. */
export interface PaymentRequest {
  /** The address, with `https`; its host is one that the manifest's `net` names. */
  url: string & tags.MinLength<1> & tags.MaxLength<8192>
  /** Left out: `GET`. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** At most 50, without references to secrets, as everything here. */
  headers?: { [name: string]: string & tags.MaxLength<16384> }
  body?: string & tags.MaxLength<1048576>
  why: OfferText<2000>
}
/** What came of a payment. */
export interface PaidAnswer {
  /** The server has the money, and answered. */
  ok: boolean
  /** The receipt and the answer, or why nothing came of it. */
  text: string
}
/** How far a run that a person allowed is. */
export interface ServiceStatusStep {
  event: 'status'
  text: string & tags.MaxLength<2000>
}
/** What it found. */
export interface ServiceResultStep {
  event: 'result'
  data: unknown
}
/** What it cost in the end. */
export interface ServiceReceiptStep {
  event: 'receipt'
  outcome: 'ok' | 'refunded' | 'refused'
  credits: Credits
  remaining?: Credits
}
/** A step of a run that a person allowed. */
export type ServiceStep = ServiceStatusStep | ServiceResultStep | ServiceReceiptStep

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
  document(input: { id: string; name: string; bytes: StreamRef }): {
    markdown: string & tags.MaxLength<4194304>
    title?: string & tags.MaxLength<300>
    notes?: (string & tags.MaxLength<300>)[] & tags.MaxItems<20>
  }
  event(input: { subscription: Count; event: unknown }): {}
  files(input: { watch: Count; paths: string[] }): {}
  exited(input: { watch: Count; exit: ExtensionProcessExit }): {}
  settings(input: { keys: string[] }): {}
  due(input: { key: string }): {}
  deliver(input: { channelId: string; text: string }): {}
  listening(input: {}): {}
  stop(input: {}): {}
}

/** The input of each operation, by its name. */
type Inputs<Operations> = { [O in keyof Operations]: Operations[O] extends (input: infer I) => unknown ? I : never }
/** The answer of each operation, by its name. */
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
