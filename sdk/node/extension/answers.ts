import type { PaidAnswer, PaymentRequest, ServiceStep, ServiceTerms } from './protocol.js'
import type {
  AllowedService,
  ExtensionHost,
  ExtEvent,
  ExtResponse,
  Off,
  ExtensionToolContext,
  ExtensionToolResult,
} from './host.js'
import type { ExtensionLink } from './link.js'
import {
  LINK_PIECE,
  type BackendOperations,
  type HostOperations,
  type OperationInput,
  type OperationOutput,
  type RouteInput,
} from './protocol.js'
import { ignored } from '../../ignored.js'

type Serve = Parameters<ExtensionHost['routes']['handle']>[2]
type UseTool = (input: unknown, context: ExtensionToolContext) => Promise<ExtensionToolResult> | ExtensionToolResult

/** What a backend registered, and how it answers the daemon. */
export class BackendAnswers {
  readonly routes = new Map<number, Serve>()
  readonly tools = new Map<string, UseTool>()
  readonly documents = new Map<string, Parameters<ExtensionHost['documents']['handle']>[1]>()
  readonly listeners = new Map<number, (event: object) => void>()
  readonly watches = new Map<number, (paths: string[]) => void>()
  readonly exits = new Map<number, (exit: { name: string; code: number | null; signal?: string }) => void>()
  readonly settings = new Set<(keys: string[]) => void>()
  readonly states = new Set<() => void>()
  deliver: ((to: { channelId: string; text: string }) => Promise<void> | void) | undefined
  readonly due = new Map<string, () => void>()
  readonly stops = new Set<() => void | Promise<void>>()
  readonly stopping = new AbortController()
  #next = 0

  /** Keeps a registration under a new number. */
  keep<T>(all: Map<number, T>, value: T, off: (number: number) => void): { number: number; off: Off } {
    const number = ++this.#next
    all.set(number, value)
    return {
      number,
      off: () => {
        if (all.delete(number)) off(number)
      },
    }
  }

  /** Answers a request of the daemon. */
  async answer(link: ExtensionLink<HostOperations>, op: string, input: unknown, signal: AbortSignal): Promise<unknown> {
    switch (op) {
      case 'route':
        return this.#route(link, input as RouteInput, signal)
      case 'tool':
        return this.#tool(link, input as OperationInput<BackendOperations, 'tool'>, signal)
      case 'document':
        return this.#document(link, input as OperationInput<BackendOperations, 'document'>, signal)
      case 'event': {
        const { subscription, event } = input as OperationInput<BackendOperations, 'event'>
        this.listeners.get(subscription)?.(event as object)
        return {}
      }
      case 'files': {
        const { watch, paths } = input as OperationInput<BackendOperations, 'files'>
        this.watches.get(watch)?.(paths)
        return {}
      }
      case 'exited': {
        const { watch, exit } = input as OperationInput<BackendOperations, 'exited'>
        this.exits.get(watch)?.({ ...exit, code: exit.code ?? null })
        return {}
      }
      case 'settings':
        for (const listener of this.settings) listener((input as { keys: string[] }).keys)
        return {}
      case 'due':
        this.due.get((input as { key: string }).key)?.()
        return {}
      case 'deliver':
        await this.deliver?.(input as OperationInput<BackendOperations, 'deliver'>)
        return {}
      case 'listening':
        for (const listener of this.states) listener()
        return {}
      case 'stop':
        this.stopping.abort()
        await Promise.allSettled([...this.stops].map(async work => work()))
        return {}
    }
    throw new Error(`a backend has no ${op}`)
  }

  async #route(
    link: ExtensionLink<HostOperations>,
    { route, json, body, ...request }: RouteInput,
    signal: AbortSignal,
  ): Promise<OperationOutput<BackendOperations, 'route'>> {
    const serve = this.routes.get(route)
    if (!serve) return { status: 404, json: { message: 'nothing is served here' } }
    const bytes = body && (await allBytes(link.read(body) as AsyncIterable<Uint8Array>))
    let given: unknown = bytes
    try {
      if (bytes && json) given = JSON.parse(bytes.toString())
    } catch {
      return { status: 400, json: { message: 'the body is not JSON', reason: 'invalid' } }
    }
    const answer: ExtResponse = (await serve({ ...request, body: given, signal })) ?? {}
    if ('stream' in answer) return { events: link.offer(eventsOf(answer.stream)) }
    const { status, headers, body: sent } = answer
    const head = { ...(status !== undefined && { status }), ...(headers && { headers }) }
    if (!(sent instanceof Uint8Array)) return sent === undefined ? head : { ...head, json: sent }
    return { ...head, ...(sent.length <= LINK_PIECE ? { bytes: sent } : { pieces: link.offer(piecesOf(sent)) }) }
  }

  async #tool(
    link: ExtensionLink<HostOperations>,
    { name, call, input, ...context }: OperationInput<BackendOperations, 'tool'>,
    signal: AbortSignal,
  ): Promise<ExtensionToolResult> {
    const use = this.tools.get(name)
    if (!use) return { text: `the extension does not serve the tool ${name}`, error: true }
    const progress = (text: string) =>
      void link.request('tools.progress', { call, text }).catch(ignored('only the progress is lost'))
    const offer = async (service: ServiceTerms): Promise<AllowedService | undefined> => {
      const { offer: allowed } = await link.request('tools.offer', { call, offer: service }, signal)
      if (allowed === undefined) return undefined
      const step = (event: ServiceStep) =>
        void link.request('tools.served', { call, offer: allowed, event }).catch(ignored('only the step is not shown'))
      return {
        status: text => step({ event: 'status', text }),
        result: data => step({ event: 'result', data }),
        receipt: receipt => step({ event: 'receipt', ...receipt }),
      }
    }
    const pay = (payment: PaymentRequest): Promise<PaidAnswer> => link.request('tools.pay', { call, payment }, signal)
    return use(input, { ...context, signal, progress, offer, pay })
  }

  async #document(
    link: ExtensionLink<HostOperations>,
    { id, name, bytes }: OperationInput<BackendOperations, 'document'>,
    signal: AbortSignal,
  ): Promise<OperationOutput<BackendOperations, 'document'>> {
    const derive = this.documents.get(id)
    if (!derive) throw new Error(`the extension does not derive ${id}`)
    const file = await allBytes(link.read(bytes) as AsyncIterable<Uint8Array>)
    const { markdown, title, notes } = await derive({ name, bytes: file, signal })
    return { markdown, ...(title !== undefined && { title }), ...(notes && { notes }) }
  }
}

/** Bytes in pieces that fit into messages. */
export async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += LINK_PIECE) yield bytes.subarray(at, at + LINK_PIECE)
}

/** All bytes of a stream. */
export const allBytes = async (pieces: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const all: Uint8Array[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}

async function* eventsOf(events: AsyncIterable<ExtEvent>): AsyncGenerator<ExtEvent, void> {
  for await (const { event = 'message', data, id } of events) yield { event, data, ...(id !== undefined && { id }) }
}
