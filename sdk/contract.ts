import type { ReachFolder } from './reach.js'
import type { Caller, HttpFacts } from './types.js'

/** The return type of a call that answers with a stream of events. Only a type; never instantiated. */
export interface Stream<Event, End = unknown> {
  'event-stream': Event
  'event-end'?: End
}

/**
 * The return type of a call that is a WebSocket: both sides send JSON frames until one closes. Only a type; never
 * instantiated.
 */
export interface Socket<ClientFrame, ServerFrame> {
  'socket-client': ClientFrame
  'socket-server': ServerFrame
}

/** The return type of a call that answers with bytes: a download, a page, a picture. */
export interface Bytes {
  /** The media type, such as `text/html; charset=utf-8`. */
  readonly 'content-type': string
  readonly data: string | Uint8Array
  readonly headers?: { readonly [name: string]: string }
}

/** Declares the media type of a call that answers with bytes, as a literal. */
export interface Media {
  readonly 'content-type': string
}

/**
 * Bytes from a handler: at once, or as an iterable that is read at the client's pace. An error while iterating cuts the
 * answer.
 */
export interface GivenBytes extends Omit<Bytes, 'data'> {
  readonly data: string | Uint8Array | AsyncIterable<string | Uint8Array>
  /**
   * 206: only the part that `content-range` in the headers names. 301: it is at the `location` in the headers. Other
   * ones: a page that says why a call failed.
   */
  readonly status?: 206 | 301 | 400 | 424 | 429 | 503
}

/** A position in a journal, after entry `after`: the kernel serves the stored entries from there, then new ones. */
export interface Position {
  readonly journal: string
  readonly after: number
}

/** Continues a stream with the events of the sandbox, which the kernel serves until the stream ends. */
export interface Watch {
  readonly watch: {
    /** Fields of the first event, besides those that the kernel adds. */
    readonly hello: object
    /** The id of the last event that the watcher received, if the request has no `last-event-id`. */
    readonly after?: string
    /** Which form of a frame the watcher receives: that for people or for control tokens. */
    readonly form: 'people' | 'tokens'
    /** The watcher's reach, if it is limited to areas. */
    readonly reach?: readonly ReachFolder[]
    /** The watcher's mode; frames for other modes are not sent. */
    readonly mode: string
    /** The kinds of snapshots sent first, in order. */
    readonly snapshots: readonly string[]
    /** The kinds that are also sent when the watcher resumes and they have not changed. */
    readonly again: readonly string[]
  }
}

/** An event with an id: a client that resumes sends it, as `HttpFacts.lastEventId`. */
export interface Identified<Event> {
  readonly 'event-id': string
  readonly event: Event
}

/** Every call of an API: `METHOD /path` for those with a route, `group.verb` for those without. */
export type Call<Api> = keyof Api & string

/**
 * A call's input; `void` for a call declared without a parameter. Of several calls it is one of their inputs: what is
 * all of them at once would take the compiler seconds, whenever a call's name is misspelled.
 */
export type Input<Api, C extends keyof Api> = C extends unknown
  ? Api[C] extends () => unknown
    ? void
    : Api[C] extends (input: infer I) => unknown
      ? I
      : never
  : never

/** What a call is declared to answer. */
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
 * What a handler returns: a value, a stream of events that may end with a journal position or a watch, or the frames of
 * a socket. A socket opens when the handler returns, before the first frame.
 */
export type Given<Api, C extends keyof Api> =
  Declared<Api, C> extends Stream<infer E, infer End>
    ? AsyncIterable<E | Identified<E> | Watch, End | Position | void>
    : Declared<Api, C> extends Socket<unknown, infer F>
      ? AsyncIterable<F>
      : Declared<Api, C> extends Media
        ? GivenBytes & Declared<Api, C>
        : Declared<Api, C>

/** How a call between groups is made. */
export interface CallOptions {
  /** Aborts the call and the stream it returned. Pass the signal of the call being answered. */
  readonly signal?: AbortSignal
  /** The caller to act for: the context of the call being answered. Default: the plugin itself. */
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

/** The name under which a contract validates the frames of a socket's client. */
export const frameOf = <C extends string>(call: C): `${C} frame` => `${call} frame`

/**
 * The union that typia turns into one validator for all requests of a group, and for each frame of a socket's client.
 */
export type Requests<Api> =
  | { [C in keyof Api]: { call: C; input: [Input<Api, C>] extends [void] ? {} : Input<Api, C> } }[keyof Api]
  | { [C in Sockets<Api>]: { call: `${C} frame`; input: ClientFrame<Api, C> } }[Sockets<Api>]

/**
 * The union that typia turns into one validator for all replies of a group; streams and sockets are validated item by
 * item.
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

/** The caller of a call, and a signal that is aborted when the answer is no longer needed. */
export interface Context {
  readonly caller: Caller
  readonly signal: AbortSignal
  /** The caller was compiled against the same contract, so its input is not validated. */
  readonly trusted: boolean
  /** The request behind a routed call; absent when another plugin calls. */
  readonly http?: HttpFacts
  /** The validated frames of a socket's client, until the socket closes. Supports one reader. */
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

/** The part of JSON Schema that the daemon reads. */
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

/** The schema of one call, as typia generates it. */
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
 * An example of each call with a route, published in the document: its input and its output.
 *
 * For a stream the output is one event and its end, for a socket one frame of each side, for bytes their text (empty
 * for binary data).
 */
export type Examples<Api> = {
  readonly [C in keyof Api & `${string} /${string}`]: ([Input<Api, C>] extends [void]
    ? {}
    : {} extends Input<Api, C>
      ? { readonly input?: Input<Api, C> }
      : { readonly input: Input<Api, C> }) & { readonly output: Shown<Declared<Api, C>> }
}

/** The contract of a group at run time. `schema` and `reply` are built on first use, which keeps the start fast. */
export interface Contract<Api = any> {
  readonly schema: () => ContractSchema
  readonly request: (value: unknown) => Checked<Requests<Api>>
  readonly reply: () => (value: unknown) => Checked<Replies<Api>>
  readonly examples?: () => Examples<Api>
  /** Type only: what a plugin must supply to serve this contract. */
  readonly handlers?: Handlers<Api>
}

/** Whether a call has a route; calls between plugins do not. */
export const isRoute = (call: string): boolean => call.includes(' /')

/** Whether a stream's return value continues it with a journal. */
export const isPosition = (value: unknown): value is Position =>
  typeof value === 'object' && value !== null && typeof (value as Position).journal === 'string'

/** Whether an item of a stream continues it with the events of the sandbox. */
export const isWatch = (value: unknown): value is Watch =>
  typeof value === 'object' && value !== null && 'watch' in value

/** Whether an item of a stream is an event with an id. */
export const isIdentified = (value: unknown): value is Identified<unknown> =>
  typeof value === 'object' && value !== null && 'event-id' in value
