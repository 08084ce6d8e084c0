import type { ReachFolder } from './reach.js'
import type { Caller, HttpFacts } from './types.js'

/** What a call returns when it answers with events over time rather than one value. Never instantiated. */
export interface Stream<Event, End = unknown> {
  'event-stream': Event
  'event-end'?: End
}

/**
 * What a call returns when it is a WebSocket: frames of either side, as JSON texts, until one of them closes. Never
 * instantiated.
 */
export interface Socket<ClientFrame, ServerFrame> {
  'socket-client': ClientFrame
  'socket-server': ServerFrame
}

/** What a call returns when it answers with bytes: a download, a page, a picture. */
export interface Bytes {
  /** The media type, such as `text/html; charset=utf-8`. */
  readonly 'content-type': string
  readonly data: string | Uint8Array
  readonly headers?: { readonly [name: string]: string }
}

/** What a call declares that answers with bytes: their media type, as a literal. */
export interface Media {
  readonly 'content-type': string
}

/**
 * Bytes as a handler gives them: at once, or piece by piece at the pace of who reads. A failure on the way cuts the
 * answer.
 */
export interface GivenBytes extends Omit<Bytes, 'data'> {
  readonly data: string | Uint8Array | AsyncIterable<string | Uint8Array>
  /** 206: only the part that `content-range` in the headers names. */
  readonly status?: 206
}

/** A place in a journal, after entry `after`: a stream that the kernel serves from there, as stored and then live. */
export interface Position {
  readonly journal: string
  readonly after: number
}

/** What an event stream goes on with: the sandbox's own events, as the kernel serves them until the stream ends. */
export interface Watch {
  readonly watch: {
    /** What the first event says beside what the kernel knows of the stream itself. */
    readonly hello: object
    /** The id of the last event the watcher holds, where no header names one. */
    readonly after?: string
    /** Which form it gets of frames that differ for people and programs. */
    readonly form: 'people' | 'tokens'
    /** How far the watcher reaches, where it is limited to areas. */
    readonly reach?: readonly ReachFolder[]
    /** Of frames for one mode only, the mode it asked for. */
    readonly mode: string
    /** The kinds of snapshots it begins with, in order. */
    readonly snapshots: readonly string[]
    /** Those of them it gets again when it resumes, though they have not changed. */
    readonly again: readonly string[]
  }
}

/** An event with its own id: an interrupted stream resumes after it, and `HttpFacts` has the id. */
export interface Identified<Event> {
  readonly 'event-id': string
  readonly event: Event
}

/** Every call of an API: `METHOD /path` for those with a route, `group.verb` for those without. */
export type Call<Api> = keyof Api & string

/** A call's input; `void` for a call declared without a parameter. */
export type Input<Api, C extends keyof Api> = Api[C] extends () => unknown
  ? void
  : Api[C] extends (input: infer I) => unknown
    ? I
    : never

type Declared<Api, C extends keyof Api> = Api[C] extends (input: never) => infer O ? O : never

/** What a caller receives: the value, the events of a stream, or the frames of a socket. */
export type Reply<Api, C extends keyof Api> =
  Declared<Api, C> extends Stream<infer E>
    ? AsyncIterable<E>
    : Declared<Api, C> extends Socket<unknown, infer F>
      ? AsyncIterable<F>
      : Declared<Api, C> extends Media
        ? Bytes & Declared<Api, C>
        : Declared<Api, C>

/**
 * What a handler gives: the value, the events of a stream, the events before a place in a journal or a watch, or the
 * frames of a socket, which opens when they are given and not when there is a first one.
 */
export type Given<Api, C extends keyof Api> =
  Declared<Api, C> extends Stream<infer E, infer End>
    ? AsyncIterable<E | Identified<E> | Watch, End | Position | void>
    : Declared<Api, C> extends Socket<unknown, infer F>
      ? AsyncIterable<F>
      : Declared<Api, C> extends Media
        ? GivenBytes & Declared<Api, C>
        : Declared<Api, C>

export interface CallOptions {
  /** Stops the call, and a stream it answered with. Pass on the signal of the call being answered. */
  readonly signal?: AbortSignal
  /** On whose behalf: pass on the context of the call being answered. Left out, the plugin acts as itself. */
  readonly as?: Context
}

/** Lets a caller leave out an input that has no required field. */
export type Args<I> = [I] extends [void]
  ? [input?: undefined, options?: CallOptions]
  : {} extends I
    ? [input?: I, options?: CallOptions]
    : [input: I, options?: CallOptions]

/** The calls of an API that are sockets. */
export type Sockets<Api> = {
  [C in keyof Api]: Declared<Api, C> extends Socket<unknown, unknown> ? C : never
}[keyof Api]
  & string

/** What a client sends on a socket. */
export type ClientFrame<Api, C extends keyof Api> = Declared<Api, C> extends Socket<infer F, unknown> ? F : never

/** The name under which a contract checks the frames of a socket's client. */
export const frameOf = <C extends string>(call: C): `${C} frame` => `${call} frame`

/** The union typia turns into one validator for all requests of a group, and for each frame of a socket's client. */
export type Requests<Api> =
  | { [C in keyof Api]: { call: C; input: [Input<Api, C>] extends [void] ? {} : Input<Api, C> } }[keyof Api]
  | { [C in Sockets<Api>]: { call: `${C} frame`; input: ClientFrame<Api, C> } }[Sockets<Api>]

/**
 * The union typia turns into one validator for all replies of a group; a stream or a socket is checked item by item.
 */
export type Replies<Api> = {
  [C in keyof Api]: {
    call: C
    output: Declared<Api, C> extends Stream<infer E>
      ? E
      : Declared<Api, C> extends Socket<unknown, infer F>
        ? F
        : Declared<Api, C>
  }
}[keyof Api]

/** The caller of a call, and how long the answer is needed. */
export interface Context {
  readonly caller: Caller
  readonly signal: AbortSignal
  /** True when the caller was compiled against the same contract, so its input needs no check. */
  readonly trusted: boolean
  /** The request behind a routed call; absent when another plugin calls. */
  readonly http?: HttpFacts
  /** What the client of a socket sends, each checked; to be read by one reader, for as long as the socket is open. */
  readonly frames?: AsyncIterable<unknown>
}

/** The context of a socket's handler: its signal is aborted when either side closes the socket. */
export interface SocketContext<Frame> extends Context {
  readonly frames: AsyncIterable<Frame>
}

/** One function per call of a group. */
export type Handlers<Api> = {
  [C in keyof Api]: (
    input: Input<Api, C>,
    context: Declared<Api, C> extends Socket<infer F, unknown> ? SocketContext<F> : Context,
  ) => Promise<Given<Api, C>> | Given<Api, C>
}

/** A JSON Schema, as far as the daemon reads one. */
export interface Shape {
  readonly $ref?: string
  readonly description?: string
  readonly type?: string
  readonly properties?: { readonly [name: string]: Shape }
  readonly required?: readonly string[]
  readonly items?: Shape
  readonly oneOf?: readonly Shape[]
  readonly const?: unknown
}

/** One call as typia describes it. */
export interface CallSchema {
  readonly name: string
  readonly description?: string
  readonly deprecated?: boolean
  readonly parameters: readonly { readonly name: string; readonly schema: Shape }[]
  readonly output?: { readonly schema: Shape }
}

/** Every call of a group with the schemas they share. */
export interface ContractSchema {
  readonly components: { readonly schemas?: { readonly [name: string]: Shape } }
  readonly functions: readonly CallSchema[]
}

export type Checked<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly errors: readonly { path: string; expected: string; value?: unknown }[] }

type Shown<Output> =
  Output extends Stream<infer E, infer End>
    ? { readonly message: E; readonly done: End }
    : Output extends Socket<infer Client, infer Server>
      ? { readonly client: Client; readonly server: Server }
      : Output extends Media
        ? string
        : Output

/**
 * One use of each call that has a route, as the document shows it: what is sent, and what is answered.
 *
 * Of a stream an event and what ends it, of a socket a frame of either side, of bytes their text (empty where they are
 * none).
 */
export type Examples<Api> = {
  readonly [C in keyof Api & `${string} /${string}`]: ([Input<Api, C>] extends [void]
    ? {}
    : {} extends Input<Api, C>
      ? { readonly input?: Input<Api, C> }
      : { readonly input: Input<Api, C> }) & { readonly output: Shown<Declared<Api, C>> }
}

/** One group's calls as values. `schema` and `reply` are built on first use: they cost start time and few need them. */
export interface Contract<Api = any> {
  readonly schema: () => ContractSchema
  readonly request: (value: unknown) => Checked<Requests<Api>>
  readonly reply: () => (value: unknown) => Checked<Replies<Api>>
  readonly examples?: () => Examples<Api>
  /** Type only: what a plugin must supply to serve this contract. */
  readonly handlers?: Handlers<Api>
}

/** Whether a call has a route; the others are between plugins. */
export const isRoute = (call: string): boolean => call.includes(' /')

/** Whether a stream's return value says that it goes on in a journal. */
export const isPosition = (value: unknown): value is Position =>
  typeof value === 'object' && value !== null && typeof (value as Position).journal === 'string'

/** Whether what a stream gives next is that it goes on with the sandbox's own events. */
export const isWatch = (value: unknown): value is Watch =>
  typeof value === 'object' && value !== null && 'watch' in value

/** Whether what a stream gives next is an event with an id of its own. */
export const isIdentified = (value: unknown): value is Identified<unknown> =>
  typeof value === 'object' && value !== null && 'event-id' in value
