import {
  isIdentified,
  isPosition,
  isRoute,
  isWatch,
  type Bytes,
  type Context,
  type Handlers,
} from '../../sdk/contract.js'
import { readEvents } from '../../sdk/events.js'
import type { ExtensionCall, Kernel } from '../../sdk/kernel.js'
import { refuse } from '../../sdk/refusal.js'
import { isStream } from '../../sdk/wire.js'
import { kernelAccessCalls, servedRoute } from '../auth/access-calls.js'
import { admit } from '../auth/admit.js'
import type { Group } from '../group.js'
import { isBytes } from '../http/answer.js'
import type { CallAccess } from '../manifest.js'
import type { KernelServices } from '../services.js'
import { RequestBodies } from './bodies.js'

/** The most bytes of an answer that are read whole. */
const MOST_BYTES = 7 * 1024 * 1024

type Calls = Pick<
  Handlers<Kernel>,
  'kernel.events.watch' | 'kernel.route' | `kernel.extension.${'call' | 'stream'}` | 'kernel.subtree.body'
>

/**
 * The kernel calls that are about calls of others (who may make them, making them, requests of a subtree), with the
 * bodies of these requests.
 */
export const callsForOthers = (kernel: KernelServices, groups: () => readonly Group[]) => {
  const bodies = new RequestBodies()
  return [bodies, { ...kernelAccessCalls(groups), ...calledFor(kernel, groups, bodies) }] as const
}

const calledFor = (kernel: KernelServices, groups: () => readonly Group[], bodies: RequestBodies): Calls => {
  const accessOf = (call: string): CallAccess | undefined =>
    isRoute(call)
      ? groups().find(({ manifest }) => Object.hasOwn(manifest.routes, call))?.manifest.routes[call]
      : undefined
  const answered = async ({ extension, role, call, input }: ExtensionCall, signal: AbortSignal): Promise<unknown> => {
    const access = accessOf(call) ?? refuse('not-found', `nothing serves ${call}`)
    if ('open' in access) return refuse('forbidden', `${access.id} is for requests from outside`)
    const caller = { kind: 'extension', actor: `extension:${extension}`, role } as const
    admit(caller, access)
    return kernel.calls.answer(call, input, { caller, signal, trusted: false })
  }
  return {
    'kernel.events.watch': (_, { signal }) => watched(kernel, signal),
    'kernel.route': ({ call }) => {
      const access = accessOf(call)
      return access ? { access: servedRoute(access) } : {}
    },
    'kernel.extension.call': async (asked, { signal }) => {
      const value = await answered(asked, signal)
      if (!isStream(value)) return { value: isBytes(value) ? await whole(value) : value }
      void value[Symbol.asyncIterator]().return?.()
      return refuse('unprocessable', `${asked.call} streams: read it with host.stream`)
    },
    'kernel.extension.stream': async function* (asked, { signal }) {
      const value = await answered(asked, signal)
      if (!isStream(value)) return refuse('unprocessable', `${asked.call} does not stream: make it with host.call`)
      yield* plain(kernel, value, signal)
    },
    'kernel.subtree.body': ({ body }) => bodies.read(body),
  }
}

/** The events of a stream, without ids, and those of the journal that it ends with. */
async function* plain(
  kernel: KernelServices,
  events: AsyncIterable<unknown, unknown>,
  signal: Context['signal'],
): AsyncGenerator<unknown, void> {
  const iterator = events[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { value, done } = await iterator.next()
      if (done && isPosition(value)) yield* kernel.journals.follow(value.journal, value.after, signal)
      if (done) return
      if (isWatch(value)) refuse('unprocessable', 'events of the sandbox are received with host.events.on')
      yield isIdentified(value) ? value.event : value
    }
  } finally {
    await iterator.return?.()
  }
}

/** The frames of the event stream, parsed. */
async function* watched({ live }: KernelServices, signal: AbortSignal): AsyncGenerator<{ kind: string }, void> {
  const ended = new AbortController()
  const stop = () => ended.abort()
  signal.addEventListener('abort', stop, { once: true })
  const bytes = new ReadableStream<Uint8Array>({
    start: controller => {
      const over = () => {
        try {
          controller.close()
        } catch {
          // It was closed already.
        }
      }
      const sink = {
        write: (data: Uint8Array, accepted: () => void) => {
          if (!ended.signal.aborted) controller.enqueue(data)
          accepted()
        },
        end: (data: Uint8Array, accepted: () => void) => {
          if (!ended.signal.aborted) controller.enqueue(data)
          accepted()
          over()
        },
        cut: over,
      }
      const watch = { hello: {}, form: 'tokens', mode: 'delta', snapshots: [], again: [] } as const
      void live.serve(sink, watch, undefined, ended.signal).finally(over)
    },
    cancel: stop,
  })
  try {
    for await (const { event, data } of readEvents(bytes))
      if (event === 'message') yield JSON.parse(data) as { kind: string }
  } finally {
    signal.removeEventListener('abort', stop)
    ended.abort()
  }
}

const whole = async (value: { 'content-type': string; data: unknown; headers?: object }): Promise<Bytes> => {
  const { data } = value as { data: string | Uint8Array | AsyncIterable<string | Uint8Array> }
  const parts: Buffer[] = []
  let size = 0
  for await (const piece of typeof data === 'string' || data instanceof Uint8Array ? [data] : data) {
    const part = Buffer.from(piece as string)
    size += part.length
    if (size > MOST_BYTES) refuse('too-large', `the answer is larger than ${MOST_BYTES} bytes: ask for a part of it`)
    parts.push(part)
  }
  return { 'content-type': value['content-type'], data: Buffer.concat(parts) }
}
