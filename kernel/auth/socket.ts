import { createHash } from 'node:crypto'
import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Log } from '../../sdk/host.js'
import { LONGEST_PATH, openLineSocket, type LineSocket } from '../../sdk/node/line-socket.js'
import { Refusal, refuse } from '../../sdk/refusal.js'
import { StartError } from '../config.js'
import type { Auth } from './auth.js'

const DEVICE = 120

interface Environment {
  readonly [name: string]: string | undefined
}

/** What the login socket is opened with. */
export interface LoginSocketOptions {
  readonly path: string
  /** The address a login link leads to. */
  readonly base: () => string
  readonly auth: Pick<Auth, 'mintLogin' | 'openLocal'>
  readonly log: Pick<Log, 'warn'>
}

/**
 * Where the login socket of a data folder lies: short, since the system cuts longer paths off, and in a folder of ours.
 */
export const loginSocketPath = (data: string, env: Environment = process.env): string => {
  const name = join(`sandbox-${userInfo().uid}`, `${createHash('sha256').update(data).digest('hex').slice(0, 16)}.sock`)
  const folders = [env.XDG_RUNTIME_DIR ?? '', tmpdir(), '/tmp'].filter(isAbsolute)
  const fitting = folders.map(folder => join(folder, name)).find(path => Buffer.byteLength(path) <= LONGEST_PATH)
  if (fitting) return fitting
  throw new StartError(`expected a folder short enough for a socket, found ${folders.join(', ')}; set XDG_RUNTIME_DIR`)
}

/** Answers the operating-system user who runs the daemon: login codes, and sessions for the command line. */
export const openLoginSocket = async ({ path, base, auth, log }: LoginSocketOptions): Promise<LineSocket> => {
  const failed = (error: unknown) => log.warn('the login socket failed to answer', { error: String(error) })
  return openLineSocket(path, line => answer(line, base, auth), failed).catch(error => {
    throw error instanceof Refusal ? new StartError(error.message) : error
  })
}

const answer = async (line: string, base: () => string, auth: LoginSocketOptions['auth']): Promise<object> => {
  const request = parsed(line)
  if (request.do === 'login') {
    const code = await auth.mintLogin()
    return { code, url: `${base()}/#login=${code}` }
  }
  const { device } = request
  if (request.do === 'session' && typeof device === 'string' && device && device.length <= DEVICE) {
    return auth.openLocal(device)
  }
  return refuse('invalid', 'expected {"do":"login"} or {"do":"session","device":"…"}')
}

const parsed = (line: string): { readonly [key: string]: unknown } => {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null) return value as { [key: string]: unknown }
  } catch {
    return {}
  }
  return {}
}
