import type { Api } from '../../api.js'
import type { Args, Call, Input, Reply } from '../../contract.js'
import type { Role } from '../../types.js'
import type {
  DispatchFrame,
  ExtensionProcessStatus,
  ListenerMessage,
  ListenerState,
  ListenerStatus,
  OfferedTemplate,
  ServiceReceiptStep,
  PaidAnswer,
  PaymentRequest,
  ServiceTerms,
  TemplateUse,
} from './protocol.js'

/** Undoes a registration. */
export type Off = () => void

/** The routes of the daemon that a backend may be allowed to call, such as `GET /workspace/tree`. */
export type RouteEntryOf<Calls = Api> = Extract<Call<Calls>, `${string} /${string}`>

/** A request to a server outside. The daemon fills in references to secrets in query, headers and a text body. */
export interface HostRequestInit {
  method?: string
  headers?: { [name: string]: string }
  query?: { [name: string]: string }
  body?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** Each redirect is checked like the first address. Default: `follow`. */
  redirect?: 'follow' | 'manual'
  /** From 1 to 600,000; default: 60,000. */
  timeoutMs?: number
  signal?: AbortSignal
}

/** The answer of a server outside; its body is read once, at most 100 MiB. */
export interface HostResponse {
  status: number
  headers: { [name: string]: string }
  /** Where the answer came from, after redirects. */
  url: string
  bytes(): Promise<Uint8Array>
  text(): Promise<string>
  json(): Promise<unknown>
  stream(): AsyncIterable<Uint8Array>
}

/** An open connection: raw TCP gives bytes, a WebSocket its frames. */
export interface HostSocket {
  send(data: string | Uint8Array): Promise<void>
  frames: AsyncIterable<string | Uint8Array>
  close(): void
}

/** A request to one of the extension's own routes. */
export interface ExtRequest {
  method: string
  /** The path below `/x/<id>`. */
  path: string
  params: { [name: string]: string }
  query: { [name: string]: string | string[] }
  headers: { [name: string]: string }
  /** JSON of a body that is JSON, else its bytes; undefined without a body. */
  body: unknown
  /** Set by the daemon from the credential. */
  caller: { kind: 'person' | 'token' | 'turn' | 'extension'; actor: string; role: Role }
  signal: AbortSignal
}

/** One event of a streamed answer. */
export interface ExtEvent {
  event?: 'message' | 'done' | 'error'
  data: unknown
  id?: string
}

/** A JSON value, bytes, or a stream of events. */
export type ExtResponse =
  | { status?: number; headers?: { [name: string]: string }; body?: unknown }
  | { stream: AsyncIterable<ExtEvent> }

/** What a tool is called with. */
export interface ExtensionToolContext {
  conversationId: string
  run: string
  persona?: string
  /** Nobody can answer a question. */
  unattended: boolean
  signal: AbortSignal
  progress(text: string): void
  /**
   * Offers one run of a service to the person who watches, who sees what it does and costs. A yes allows exactly this
   * run; undefined: no, or nobody answered.
   */
  offer(service: ServiceTerms): Promise<AllowedService | undefined>
  /**
   * Sends a request, and pays what its server asks for from a wallet that the turn may use, after a yes of the person
   * who watches, however small the sum. It is a call of the tool `Pay` in the turn, with all its limits.
   */
  pay(payment: PaymentRequest): Promise<PaidAnswer>
}

/**
 * A run that a person allowed: what is told of it shows below the offer, of one call at most 500 steps. A result of
 * more than 256 KiB is not shown.
 */
export interface AllowedService {
  status(text: string): void
  result(data: unknown): void
  /** Says what it cost; the last step. */
  receipt(receipt: Omit<ServiceReceiptStep, 'event'>): void
}

/** What a tool answers. */
export interface ExtensionToolResult {
  text: string
  data?: unknown
  /** The agent sees the text as a failure. */
  error?: boolean
}

/** A file that is not text. */
export interface ExtensionDocumentFile {
  /** Its name without folders. */
  name: string
  /** At most 20 MiB. */
  bytes: Uint8Array
  signal: AbortSignal
}

/** The text of a document. */
export interface ExtensionDocumentText {
  /** The first MiB of it is kept. */
  markdown: string
  title?: string
  /** Parts of the document that the text does not show: at most 20, of 300 characters. */
  notes?: string[]
}

/** What a program printed, and how it ended. */
export interface ProgramResult {
  code: number | null
  signal?: string
  stdout: Uint8Array
  stderr: Uint8Array
  truncated: boolean
}

/** Writes one line; `fields` are kept beside it. */
type LogLine = (message: string, fields?: object) => void

/**
 * Everything a backend can use. `activate(host)` gets it.
 *
 * An operation without the permission it needs rejects with `{ code: 'denied', entry }`, and nothing is done.
 */
export interface ExtensionHost {
  /** `<publisher>.<name>` */
  readonly id: string
  readonly version: string
  readonly apiVersion: string
  readonly source: 'builtin' | 'installed' | 'workspace'
  /** Its own code, which it reads. */
  readonly dir: string
  /** Its own data, which it reads and writes. */
  readonly dataDir: string
  /** Aborted 5 s before the process is ended. */
  readonly signal: AbortSignal
  /** Writes into the log file of the extension. */
  log: { debug: LogLine; info: LogLine; warn: LogLine; error: LogLine }
  /** Durable when the promise resolves: 10,000 keys, 1 MiB a value, 64 MiB in all. */
  storage: {
    get<T>(key: string): Promise<T | undefined>
    set(key: string, value: unknown): Promise<void>
    delete(key: string): Promise<boolean>
    list(prefix?: string, options?: { limit?: number; after?: string }): Promise<{ keys: string[]; next?: string }>
    /** Sets the key if its value is the expected one; `undefined`: if there is none. */
    compareAndSet(key: string, expected: unknown, value: unknown): Promise<boolean>
  }
  /** Secret settings are references. */
  settings: {
    get(): Promise<{ [key: string]: string | number | boolean }>
    onChange(listener: (keys: string[]) => void): Off
  }
  /** Secrets by reference: the text `{{secret:NAME}}`. Values do not enter the process. */
  secrets: {
    ref(name: string): Promise<string>
    has(name: string): Promise<boolean>
    hmac(name: string, algorithm: 'sha256' | 'sha512', data: Uint8Array): Promise<Uint8Array>
    /** The value of a secret setting of this extension itself. */
    value(settingKey: string): Promise<string>
  }
  /** Asks a server that a `net:` entry names. */
  fetch(url: string, init?: HostRequestInit): Promise<HostResponse>
  /** Opens a TCP connection, or a WebSocket, to what a `net:` entry names. */
  connect(
    target: { host: string; port: number; tls?: boolean } | { url: string; headers?: { [name: string]: string } },
  ): Promise<HostSocket>
  /** Makes a call that `permissions.daemon` names. */
  call<E extends RouteEntryOf>(entry: E, ...args: Args<Input<Api, E>>): Promise<Reply<Api, E>>
  /** The events of a call that streams. */
  stream<E extends RouteEntryOf>(
    entry: E,
    ...args: Args<Input<Api, E>>
  ): AsyncIterable<Reply<Api, E> extends AsyncIterable<infer F> ? F : never>
  routes: {
    /**
     * Answers `METHOD /path` below `/x/<id>`; `to` is who may ask, default: persons and tokens.
     *
     * Only the role of a caller is checked: members limited to areas reach it too, so show them nothing that only some
     * members may see, or ask for a higher `floor`.
     */
    handle(
      entry: string,
      options: { floor?: Role; to?: string[] },
      answer: (request: ExtRequest) => ExtResponse | Promise<ExtResponse>,
    ): Off
  }
  events: {
    /** Events of the sandbox that an `event:` entry names. */
    on(kind: string, listener: (event: object) => void): Off
    /** At most 16 KiB, 20 a second. */
    publish(name: string, data: unknown): void
  }
  /** Paths of the workspace within the `fs:` entries. */
  files: {
    read(path: string, options?: { offset?: number; limit?: number; conversation?: string }): Promise<Uint8Array>
    stat(path: string): Promise<{ type: 'file' | 'dir'; size: number; mtimeMs: number } | undefined>
    /** Replaces the file at once. */
    write(path: string, data: string | Uint8Array, options?: { conversation?: string }): Promise<void>
    list(path: string): Promise<{ name: string; type: 'file' | 'dir' }[]>
    remove(path: string): Promise<void>
    move(from: string, to: string): Promise<void>
    watch(glob: string, listener: (paths: string[]) => void): Off
  }
  processes: {
    /** Runs a program that a `run:` entry names, behind a wall of its own. */
    run(
      program: string,
      args: string[],
      options?: {
        cwd?: string
        env?: { [name: string]: string }
        input?: string | Uint8Array
        timeoutMs?: number
        signal?: AbortSignal
      },
    ): Promise<ProgramResult>
    /** Starts a background program that the manifest contributes; resolves when it runs. */
    start(name: string): Promise<void>
    /** Ends it with its children; it stays stopped until somebody starts it. */
    stop(name: string): Promise<void>
    status(name: string): Promise<ExtensionProcessStatus>
    /** Each end of a background program of the extension, also one that was asked for. */
    onExit(listener: (exit: { name: string; code: number | null; signal?: string }) => void): Off
  }
  tools: {
    /** Serves a tool that the manifest contributes. */
    handle(
      name: string,
      answer: (input: unknown, context: ExtensionToolContext) => Promise<ExtensionToolResult> | ExtensionToolResult,
    ): Off
  }
  documents: {
    /**
     * Derives the text of documents that the manifest contributes, within 30 s. What it throws is shown as the reason
     * why a file has no text. The text is kept by the content of the file until the extension changes.
     */
    handle(
      id: string,
      derive: (file: ExtensionDocumentFile) => Promise<ExtensionDocumentText> | ExtensionDocumentText,
    ): Off
  }
  /** Messages from outside; only with `contributes.listener`. */
  listeners: {
    /** The automations that listen to the provider, and the connections that `connection:` entries name. */
    state(): Promise<ListenerState>
    /** Called when these have changed. */
    onState(listener: () => void): Off
    /** Starts the automations that a message matches; with `stream` gives what their agents say. */
    dispatch(
      message: ListenerMessage,
      options?: { stream?: boolean },
    ): Promise<{ matched: string[]; frames?: AsyncIterable<DispatchFrame> }>
    /** Takes the replies to messages that were not streamed. */
    deliver(take: (to: { channelId: string; text: string }) => Promise<void> | void): Off
    /** Notes that receiving or sending failed. */
    failure(detail: string): Promise<void>
    /** How the connections stand; repeat it at least every 90 s. */
    status(snapshot: ListenerStatus): Promise<void>
  }
  /** Ready-made automations; offered ones live as long as the backend. */
  automations: {
    templates(): Promise<TemplateUse[]>
    offer(template: OfferedTemplate): Promise<void>
    withdraw(id: string): Promise<void>
  }
  schedule: {
    /** At least every 1,000 ms, while the backend runs. */
    every(ms: number, work: () => void): Off
    /** Survives restarts; runs late if the time has passed. */
    at(key: string, when: number, work: () => void): Promise<void>
    /** Five fields in UTC; survives restarts. */
    cron(key: string, expression: string, work: () => void): Promise<void>
  }
  /** Work before the process ends; it has 5 s. */
  onStop(work: () => void | Promise<void>): Off
}

/** The module that the manifest's `server` names. */
export interface ExtensionModule {
  activate(host: ExtensionHost): void | Promise<void>
}
