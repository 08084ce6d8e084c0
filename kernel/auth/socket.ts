import { createHash } from 'node:crypto'
import { chmod, lstat, mkdir, unlink } from 'node:fs/promises'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Log } from '../../sdk/host.js'
import { Refusal, refuse } from '../../sdk/refusal.js'
import { StartError } from '../config.js'
import type { Auth } from './auth.js'

const LONGEST_PATH = 100
const LONGEST_LINE = 4096
const DEVICE = 120
const PATIENCE = 5000
const AT_ONCE = 32

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
 *
 * What keeps others out is the folder's mode and the socket's: Node does not tell who is at the other end.
 */
export const loginSocketPath = (data: string, env: Environment = process.env): string => {
  const name = join(`sandbox-${userInfo().uid}`, `${createHash('sha256').update(data).digest('hex').slice(0, 16)}.sock`)
  const folders = [env.XDG_RUNTIME_DIR ?? '', tmpdir(), '/tmp'].filter(isAbsolute)
  const fitting = folders.map(folder => join(folder, name)).find(path => Buffer.byteLength(path) <= LONGEST_PATH)
  if (fitting) return fitting
  throw new StartError(`expected a folder short enough for a socket, found ${folders.join(', ')}; set XDG_RUNTIME_DIR`)
}

/** The login socket while it is open. */
export interface LoginSocket {
  readonly path: string
  close(): Promise<void>
}

/** Answers the operating-system user who runs the daemon: login codes, and sessions for the command line. */
export const openLoginSocket = async ({ path, base, auth, log }: LoginSocketOptions): Promise<LoginSocket> => {
  if (Buffer.byteLength(path) > LONGEST_PATH) {
    throw new StartError(`${path}: expected a socket path of at most ${LONGEST_PATH} bytes`)
  }
  await ownFolder(join(path, '..'))
  await removeStale(path)
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, socket => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    void converse(socket, line => answer(line, base, auth)).catch(error =>
      log.warn('the login socket failed to answer', { error: String(error) }))
  })
  server.maxConnections = AT_ONCE
  await listening(server, path)
  await chmod(path, 0o600)
  server.on('error', error => log.warn('the login socket failed', { error: String(error) }))
  return {
    path,
    close: () => new Promise(resolve => {
      server.close(() => resolve())
      for (const socket of open) socket.destroy()
    }),
  }
}

const ownFolder = async (folder: string): Promise<void> => {
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const found = await lstat(folder)
  const wrong = !found.isDirectory() ? 'something else'
    : found.uid !== process.getuid!() ? 'one of another user'
      : (found.mode & 0o077) !== 0 ? `mode ${(found.mode & 0o777).toString(8)}` : undefined
  if (!wrong) return
  const remedy = 'remove it or set XDG_RUNTIME_DIR'
  throw new StartError(`${folder}: expected a folder of this user with mode 700, found ${wrong}; ${remedy}`)
}

const removeStale = async (path: string): Promise<void> => {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!found) return
  if (!found.isSocket()) throw new StartError(`${path}: expected a socket or nothing, found something else; remove it`)
  if (await isAnswered(path)) throw new StartError(`${path}: another daemon answers here; stop it first`)
  await unlink(path)
}

const isAnswered = (path: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const socket = createConnection(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false)
      else reject(error)
    })
  })

const listening = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.off('error', reject)
      resolve()
    })
  })

/** One line in, one line out, then the end. */
const converse = async (socket: Socket, reply: (line: string) => Promise<object>): Promise<void> => {
  socket.on('error', () => socket.destroy())
  socket.setTimeout(PATIENCE, () => socket.destroy())
  const line = await firstLine(socket)
  const answered = line === undefined
    ? new Refusal('invalid', `expected one line of at most ${LONGEST_LINE} bytes`)
    : await reply(line).catch(error => Refusal.from(error))
  socket.end(`${JSON.stringify(answered instanceof Refusal ? answered.body : answered)}\n`)
  if (answered instanceof Refusal && answered.detail.cause) throw answered.detail.cause
}

const firstLine = (socket: Socket): Promise<string | undefined> =>
  new Promise(resolve => {
    let held = Buffer.alloc(0)
    const settle = (line: string | undefined): void => {
      socket.off('data', take)
      socket.resume()
      resolve(line)
    }
    const take = (chunk: Buffer): void => {
      held = Buffer.concat([held, chunk])
      const end = held.indexOf(10)
      if (end >= 0 && end <= LONGEST_LINE) return settle(held.toString('utf8', 0, end))
      if (held.length > LONGEST_LINE) settle(undefined)
    }
    socket.on('data', take)
    socket.once('end', () => settle(undefined))
    socket.once('close', () => settle(undefined))
  })

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
