import { readFileSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { SELF } from '../terminal/own-name.js'
import { Refusal, refuse, type RefusalBody } from '../../refusal.js'
import { nameFor } from '../../node/programs/peer-process.js'
import { ignored } from '../../ignored.js'

const LONGEST_ANSWER = 64 * 1024
const PATIENCE = 10_000
/** The file with the name of this process, which only its own threads can write. */
const NAME = '/proc/self/comm'

let last: Promise<unknown> = Promise.resolve()

/** A request to the daemon's login socket. */
export type SocketRequest = { do: 'login' } | { do: 'session'; device: string }

/**
 * Sends a request to the login socket of a daemon of this user; throws its refusal.
 *
 * The socket may ask this process to change its name during the request, so requests are sent one at a time.
 */
export const askSocket = async <T extends object>(
  path: string,
  request: SocketRequest,
  signal?: AbortSignal,
): Promise<T> => {
  const mine = last.then(() => exchange(path, request, signal))
  last = mine.catch(ignored('the step before told its own caller'))
  const text = await mine
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

/** Sends the request after the greeting and returns the answer. */
const exchange = (path: string, request: SocketRequest, signal?: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const shown = new ShownName()
    let text = ''
    let asked = false
    const fail = (why: string) =>
      reject(new Refusal('unavailable', `no daemon answers at ${path}: ${why}; start one with ${SELF} serve`))
    const socket = createConnection({ path, ...(signal && { signal }) })
    const timer = setTimeout(() => socket.destroy(new Error(`no answer in ${PATIENCE / 1000} s`)), PATIENCE)
    const ask = (greeting: string): void => {
      const { prove } = (parsed(greeting) ?? {}) as { prove?: unknown }
      if (typeof prove === 'string') shown.show(nameFor(prove, path))
      socket.write(`${JSON.stringify({ ...request, pid: process.pid })}\n`)
    }
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      const end = text.indexOf('\n')
      if (text.length > LONGEST_ANSWER) socket.destroy(new Error(`its answer is over ${LONGEST_ANSWER} bytes`))
      if (socket.destroyed || asked || end < 0) return
      asked = true
      try {
        ask(text.slice(0, end))
      } catch (error) {
        socket.destroy(error as Error)
      }
      text = text.slice(end + 1)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message))
    socket.on('close', () => {
      clearTimeout(timer)
      shown.restore()
      resolve(text)
    })
  })

/** Changes the name of this process, and restores it. */
class ShownName {
  #before: string | undefined

  show(name: string): void {
    this.#before = readFileSync(NAME, 'utf8').trimEnd()
    writeFileSync(NAME, name)
  }

  restore(): void {
    if (this.#before !== undefined) writeFileSync(NAME, this.#before)
  }
}
