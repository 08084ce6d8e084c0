import { createConnection } from 'node:net'
import { Refusal, refuse, type RefusalBody } from '../refusal.js'

const LONGEST_ANSWER = 64 * 1024
const PATIENCE = 10_000

/** What the daemon's login socket can be asked. */
export type SocketRequest = { do: 'login' } | { do: 'session'; device: string }

/** Asks the login socket of a daemon of this user: one line there, one line back; throws the refusal it answers. */
export const askSocket = async <T extends object>(
  path: string, request: SocketRequest, signal?: AbortSignal,
): Promise<T> => {
  const text = await exchange(path, `${JSON.stringify(request)}\n`, signal)
  const answer = parsed(text) ?? refuse('unavailable', `expected one line of JSON at ${path}, found something else`)
  if ('message' in answer) throw Refusal.parse({ reason: 'failed', ...answer } as RefusalBody)
  return answer as T
}

const parsed = (text: string): object | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

const exchange = (path: string, line: string, signal?: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const fail = (why: string) =>
      reject(new Refusal('unavailable', `no daemon answers at ${path}: ${why}; start one with sandbox serve`))
    const socket = createConnection({ path, ...(signal && { signal }) }, () => socket.write(line))
    socket.setTimeout(PATIENCE, () => socket.destroy(new Error(`no answer in ${PATIENCE / 1000} s`)))
    socket.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > LONGEST_ANSWER) return void socket.destroy(new Error(`its answer is over ${LONGEST_ANSWER} bytes`))
      chunks.push(chunk)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message))
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')))
  })
