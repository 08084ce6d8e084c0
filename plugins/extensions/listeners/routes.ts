import { refuse, type Context, type Host } from '../../../sdk/index.js'
import type { SubtreeHead, SubtreePiece, SubtreeRequest } from '../backend/contract.js'
import { readListenerFailure, readListenerMessage, readListenerStatus } from './contract.js'
import type { Listeners } from './listeners.js'

type Items = AsyncGenerator<SubtreeHead | SubtreePiece, void>

const MOST_BYTES = 300 * 1024
const PREFIX = 'extension:'

/** The paths of a listener, as the credential of its extension reaches them. */
export const listenerEntries = (provider: string): string[] => [
  `GET /listeners/${provider}/state`,
  ...['dispatch', 'failure', 'status'].map(verb => `POST /listeners/${provider}/${verb}`),
]

/** Answers one request of a process of an extension below `/listeners/<provider>/`. */
export async function* serveListener(
  host: Pick<Host, 'call'>,
  listeners: Listeners,
  request: SubtreeRequest,
  { caller, signal }: Context,
): Items {
  // The kernel admits extensions for the paths of their own provider alone.
  if (caller.kind !== 'extension')
    refuse('forbidden', 'only processes of extensions reach this path, with SANDBOX_EXTENSION_TOKEN')
  const id = caller.actor.slice(PREFIX.length)
  const verb = request.segments.slice(1).join('/')
  const given = async () => JSON.parse(await textOf(host, request.body, signal)) as unknown
  switch (`${request.method} ${verb}`) {
    case 'GET state':
      return yield* json(await listeners.state(id))
    case 'POST failure': {
      await listeners.failure(id, checked(readListenerFailure, await given()).detail)
      return yield* json({ ok: true })
    }
    case 'POST status': {
      listeners.status(id, checked(readListenerStatus, await given()))
      return yield* json({ ok: true })
    }
    case 'POST dispatch': {
      const message = checked(readListenerMessage, await given())
      if (new URLSearchParams(request.query).get('stream') !== '1')
        return yield* json({ matched: await listeners.dispatch(id, message) })
      return yield* events(await listeners.stream(id, message, signal))
    }
    default:
      return refuse('not-found', `nothing is served at ${request.method} /listeners/${request.segments.join('/')}`)
  }
}

const textOf = async (host: Pick<Host, 'call'>, body: number | undefined, signal: AbortSignal): Promise<string> => {
  if (body === undefined) return '{}'
  const parts: Uint8Array[] = []
  let size = 0
  for await (const { bytes } of await host.call('kernel.subtree.body', { body }, { signal })) {
    const part = bytes as Uint8Array
    if ((size += part.length) > MOST_BYTES) refuse('too-large', `the body is larger than ${MOST_BYTES} bytes`)
    parts.push(part)
  }
  const text = Buffer.concat(parts).toString()
  try {
    JSON.parse(text)
    return text
  } catch {
    return refuse('invalid', 'the body is not JSON')
  }
}

/** What a validator of a body finds. */
type Read<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly errors: readonly { readonly path: string; readonly expected: string }[] }

const checked = <T>(read: (value: unknown) => Read<T>, value: unknown): T => {
  const result = read(value)
  if (result.success) return result.data
  const errors = result.errors.map(({ path, expected }) => ({ path: path.replace(/^\$input\.?/, ''), expected }))
  const [first] = errors
  return refuse('invalid', `${first?.path}: expected ${first?.expected}`, { errors })
}

async function* json(value: object): Items {
  const bytes = Buffer.from(JSON.stringify(value))
  const headers = { 'content-type': 'application/json; charset=utf-8', 'content-length': String(bytes.length) }
  yield { kind: 'head', status: 200, headers: { ...headers, 'cache-control': 'no-store' } }
  yield { kind: 'piece', bytes }
}

async function* events(frames: AsyncIterable<unknown>): Items {
  const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' }
  yield { kind: 'head', status: 200, headers }
  for await (const frame of frames)
    yield { kind: 'piece', bytes: Buffer.from(`event: message\ndata: ${JSON.stringify(frame)}\n\n`) }
  yield { kind: 'piece', bytes: Buffer.from('event: done\ndata: {}\n\n') }
}
