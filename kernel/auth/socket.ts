import { createHash } from 'node:crypto'
import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Log } from '../../sdk/host.js'
import { LONGEST_PATH, openLineSocket, type LineExchange, type LineSocket } from './line-socket.js'
import { assertPeer, nameFor, newChallenge, showsProcesses } from '../../sdk/node/programs/peer-process.js'
import { Refusal, refuse } from '../../sdk/refusal.js'
import { StartError } from '../config/start-error.js'
import type { Auth } from './auth.js'

const DEVICE = 120
const UNSEEN = 'the login socket cannot check which program asks: /proc does not show the processes of this namespace'

interface Environment {
  readonly [name: string]: string | undefined
}

/** The options of the login socket. */
export interface LoginSocketOptions {
  readonly path: string
  /** The daemon's data folder, where its terminal servers run: these and their programs are refused. */
  readonly data: string
  /** The address of login links. */
  readonly base: () => string
  readonly auth: Pick<Auth, 'mintLogin' | 'openLocal'>
  readonly log: Pick<Log, 'warn'>
}

/**
 * The path of the login socket of a data folder: at most 100 bytes, which the system requires, in a folder of this
 * user.
 */
export const loginSocketPath = (data: string, env: Environment = process.env): string => {
  const name = join(`sandbox-${userInfo().uid}`, `${createHash('sha256').update(data).digest('hex').slice(0, 16)}.sock`)
  const folders = [env.XDG_RUNTIME_DIR ?? '', tmpdir(), '/tmp'].filter(isAbsolute)
  const fitting = folders.map(folder => join(folder, name)).find(path => Buffer.byteLength(path) <= LONGEST_PATH)
  if (fitting) return fitting
  throw new StartError(`expected a folder short enough for a socket, found ${folders.join(', ')}; set XDG_RUNTIME_DIR`)
}

/**
 * Serves login codes and command-line sessions to the operating-system user who runs the daemon.
 *
 * Node does not expose the process at the other end of a socket. So the greeting asks the peer to rename itself to a
 * random text, and `/proc` shows which process did. Without `/proc`, as on macOS, only the modes of the socket and its
 * folder protect it.
 */
export const openLoginSocket = async ({ path, data, base, auth, log }: LoginSocketOptions): Promise<LineSocket> => {
  const shows = await showsProcesses()
  if (!shows && process.platform === 'linux') log.warn(UNSEEN)
  const begin = (): LineExchange => {
    const prove = newChallenge()
    const assert = (pid: unknown) => (shows ? assertPeer(pid, nameFor(prove, path), data) : undefined)
    return { greeting: shows ? { prove } : {}, reply: line => answer(parsed(line), assert, base, auth) }
  }
  const failed = (error: unknown) => log.warn('the login socket failed to answer', { error: String(error) })
  return openLineSocket(path, begin, failed).catch(error => {
    throw error instanceof Refusal ? new StartError(error.message) : error
  })
}

interface Request {
  readonly [key: string]: unknown
}

const answer = async (
  { do: what, device, pid }: Request,
  assert: (pid: unknown) => Promise<void> | undefined,
  base: () => string,
  auth: LoginSocketOptions['auth'],
): Promise<object> => {
  await assert(pid)
  if (what === 'login') {
    const code = await auth.mintLogin()
    return { code, url: `${base()}/#login=${code}` }
  }
  if (what === 'session' && typeof device === 'string' && device && device.length <= DEVICE) {
    return auth.openLocal(device)
  }
  return refuse('invalid', 'expected {"do":"login"} or {"do":"session","device":"…"}')
}

const parsed = (line: string): Request => {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null) return value as Request
  } catch {
    return {}
  }
  return {}
}
