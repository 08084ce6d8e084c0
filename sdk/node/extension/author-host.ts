import { allBytes, BackendAnswers, piecesOf } from './answers.js'
import type { ExtensionHost, HostRequestInit, HostResponse, Off } from './host.js'
import type { ExtensionLink } from './link.js'
import {
  HOST_API,
  LINK_PIECE,
  type BackendOperations,
  type DispatchFrame,
  type HostFetchInput,
  type HostOperations,
  type OperationInput,
} from './protocol.js'
import { ignored } from '../../ignored.js'

/** Who a backend is. */
export type BackendIdentity = OperationInput<BackendOperations, 'activate'>

type Asks = ExtensionLink<HostOperations>

const LEAST_INTERVAL = 1_000

/** The host of a backend: each use is a message to the daemon, which checks it. */
export const authorHost = (
  { id, version, source, dir, dataDir }: BackendIdentity,
  link: Asks,
  answers: BackendAnswers,
  repeated: (work: () => void, ms: number) => Off = intervalOf,
): ExtensionHost => {
  const ask: Asks['request'] = (op, input, signal) => link.request(op, input, signal)
  const send = (sent: Promise<unknown>) => void sent.catch(error => log('error')(String(error)))
  const log =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, fields?: object): void =>
      void ask('log', { level, message: String(message), ...(fields && { fields: { ...fields } }) }).catch(
        ignored('the connection to the daemon has ended'),
      )
  return {
    id,
    version,
    source,
    dir,
    dataDir,
    apiVersion: HOST_API,
    signal: answers.stopping.signal,
    log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    storage: {
      get: async <T>(key: string) => (await ask('storage.get', { key })).value as T | undefined,
      set: async (key, value) => void (await ask('storage.set', { key, value })),
      delete: async key => (await ask('storage.delete', { key })).existed,
      list: (prefix, options) => ask('storage.list', { ...(prefix !== undefined && { prefix }), ...options }),
      compareAndSet: async (key, expected, value) =>
        (await ask('storage.compareAndSet', { key, value, ...(expected !== undefined && { expected }) })).done,
    },
    settings: {
      get: async () => (await ask('settings.get', {})).settings,
      onChange: listener => added(answers.settings, listener),
    },
    secrets: {
      ref: async name => (await ask('secrets.ref', { name })).reference,
      has: async name => (await ask('secrets.has', { name })).has,
      hmac: async (name, algorithm, data) => (await ask('secrets.hmac', { name, algorithm, data })).bytes,
      value: async key => (await ask('secrets.value', { key })).value,
    },
    fetch: (url, init = {}) => fetched(link, url, init),
    connect: async target => {
      const { socket, frames } = await ask('connect', target)
      return {
        send: async data => void (await ask('socket.send', { socket, data })),
        frames: link.read(frames) as AsyncIterable<string | Uint8Array>,
        close: () => send(ask('socket.close', { socket })),
      }
    },
    call: async (entry, ...[input, options]) =>
      (await ask('call', { entry, ...(input !== undefined && { input }) }, options?.signal)).value as never,
    stream: (entry, ...[input, options]) =>
      streamed(link, { entry, ...(input !== undefined && { input }) }, options?.signal) as never,
    routes: {
      handle: (entry, options, answer) => {
        const { number, off } = answers.keep(answers.routes, answer, route => send(ask('routes.off', { route })))
        send(ask('routes.handle', { route: number, entry, ...options }))
        return off
      },
    },
    events: {
      on: (kind, listener) => {
        const { number, off } = answers.keep(answers.listeners, listener, subscription =>
          send(ask('events.off', { subscription })),
        )
        send(ask('events.on', { subscription: number, kind }))
        return off
      },
      publish: (name, data) => send(ask('events.publish', { name, data })),
    },
    files: {
      read: async (path, options) => (await ask('files.read', { path, ...options })).bytes,
      stat: async path => (await ask('files.stat', { path })).found,
      write: async (path, data, options) => void (await ask('files.write', { path, data, ...options })),
      list: async path => (await ask('files.list', { path })).entries,
      remove: async path => void (await ask('files.remove', { path })),
      move: async (from, to) => void (await ask('files.move', { from, to })),
      watch: (glob, listener) => {
        const { number, off } = answers.keep(answers.watches, listener, watch => send(ask('files.unwatch', { watch })))
        send(ask('files.watch', { watch: number, glob }))
        return off
      },
    },
    processes: {
      run: async (program, args, { signal, ...options } = {}) => {
        const { code, ...result } = await ask('processes.run', { program, args, ...options }, signal)
        return { code: code ?? null, ...result }
      },
      start: async name => void (await ask('processes.start', { name })),
      stop: async name => void (await ask('processes.stop', { name })),
      status: async name => (await ask('processes.status', { name })).status,
      onExit: listener => {
        const { number, off } = answers.keep(answers.exits, listener, watch =>
          send(ask('processes.unwatch', { watch })),
        )
        send(ask('processes.watch', { watch: number }))
        return off
      },
    },
    tools: {
      handle: (name, answer) => {
        answers.tools.set(name, answer)
        send(ask('tools.handle', { name }))
        return () => {
          if (answers.tools.get(name) === answer && answers.tools.delete(name)) send(ask('tools.off', { name }))
        }
      },
    },
    documents: {
      handle: (document, derive) => {
        answers.documents.set(document, derive)
        send(ask('documents.handle', { id: document }))
        return () => {
          if (answers.documents.get(document) === derive && answers.documents.delete(document))
            send(ask('documents.off', { id: document }))
        }
      },
    },
    listeners: {
      state: async () => (await ask('listeners.state', {})).state,
      onState: listener => added(answers.states, listener),
      dispatch: async (message, { stream = false } = {}) => {
        const { matched, frames } = await ask('listeners.dispatch', { message, stream })
        return { matched, ...(frames && { frames: link.read(frames) as AsyncIterable<DispatchFrame> }) }
      },
      deliver: take => {
        answers.deliver = take
        send(ask('listeners.handle', {}))
        return () => {
          if (answers.deliver !== take) return
          answers.deliver = undefined
          send(ask('listeners.off', {}))
        }
      },
      failure: async detail => void (await ask('listeners.failure', { detail })),
      status: async snapshot => void (await ask('listeners.status', { snapshot })),
    },
    automations: {
      templates: async () => (await ask('automations.templates', {})).templates,
      offer: async template => void (await ask('automations.offer', { template })),
      withdraw: async templateId => void (await ask('automations.withdraw', { id: templateId })),
    },
    schedule: {
      every: (ms, work) => repeated(work, Math.max(LEAST_INTERVAL, ms)),
      at: async (key, when, work) => {
        answers.due.set(key, work)
        await ask('schedule.at', { key, when })
      },
      cron: async (key, expression, work) => {
        answers.due.set(key, work)
        await ask('schedule.cron', { key, expression })
      },
    },
    onStop: work => added(answers.stops, work),
  }
}

const intervalOf = (work: () => void, ms: number): Off => {
  const timer = setInterval(work, ms)
  return () => clearInterval(timer)
}

const added = <T>(all: Set<T>, value: T): Off => {
  all.add(value)
  return () => void all.delete(value)
}

async function* streamed(link: Asks, input: OperationInput<HostOperations, 'stream'>, signal?: AbortSignal) {
  const stream = await link.request('stream', input, signal)
  const items = link.read(stream)
  const stop = () => void items.return(undefined)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    yield* items
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

const fetched = async (link: Asks, url: string, { body, signal, ...init }: HostRequestInit): Promise<HostResponse> => {
  const { body: stream, ...answer } = await link.request(
    'fetch',
    { url, ...init, ...(body !== undefined && sentBody(link, body)) },
    signal,
  )
  const pieces = () => link.read(stream) as AsyncIterable<Uint8Array>
  const bytes = () => allBytes(pieces())
  return {
    ...answer,
    bytes,
    text: async () => (await bytes()).toString(),
    json: async () => JSON.parse((await bytes()).toString()) as unknown,
    stream: pieces,
  }
}

const sentBody = (link: Asks, body: NonNullable<HostRequestInit['body']>): Pick<HostFetchInput, 'body' | 'pieces'> => {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body instanceof Uint8Array ? body : undefined
  if (!bytes) return { pieces: link.offer(body as AsyncIterable<Uint8Array>) }
  return bytes.length <= LINK_PIECE ? { body: body as string } : { pieces: link.offer(piecesOf(bytes)) }
}
