import { chmod, lstat, mkdir, unlink } from 'node:fs/promises'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { Refusal, refuse } from '../../sdk/refusal.js'

/** The longest socket path that every supported system accepts, in bytes. */
export const LONGEST_PATH = 100
const LONGEST_LINE = 4096
/** The deadline of a whole exchange in ms; received bytes do not extend it. */
const PATIENCE = 10_000
/** Larger than the socket's accept queue, so that a new connection is never the oldest. */
const AT_ONCE = 1024

/** A Unix socket that answers lines of this user. */
export interface LineSocket {
  readonly path: string
  close(): Promise<void>
}

/** The first line sent on a connection, and the function that answers the peer's line. */
export interface LineExchange {
  readonly greeting: object
  readonly reply: (line: string) => Promise<object>
}

/**
 * Sends each connection a JSON line and answers the one line it sends, at a path that only this user can open.
 *
 * The modes of the folder (700) and the socket (600) keep other users out; the greeting may demand further proof. With
 * more than 1,024 connections, closes the oldest one that is not being answered. Refuses if other users can open the
 * folder, if the path is not a socket, or if another process answers there.
 */
export const openLineSocket = async (
  path: string,
  begin: () => LineExchange,
  failed: (error: unknown) => void,
): Promise<LineSocket> => {
  if (Buffer.byteLength(path) > LONGEST_PATH) {
    refuse('unavailable', `${path}: expected a socket path of at most ${LONGEST_PATH} bytes`)
  }
  await ownFolder(dirname(path))
  await removeStale(path)
  const open = new Set<Socket>()
  const idle = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, socket => {
    const timer = setTimeout(() => socket.destroy(), PATIENCE)
    open.add(socket)
    idle.add(socket)
    socket.on('close', () => {
      clearTimeout(timer)
      open.delete(socket)
      idle.delete(socket)
    })
    if (open.size > AT_ONCE) idle.values().next().value?.destroy()
    const { greeting, reply } = begin()
    socket.write(`${JSON.stringify(greeting)}\n`)
    void converse(socket, line => {
      idle.delete(socket)
      return reply(line).finally(() => open.has(socket) && idle.add(socket))
    }).catch(failed)
  })
  await listening(server, path)
  await chmod(path, 0o600)
  server.on('error', failed)
  return {
    path,
    close: () =>
      new Promise(resolve => {
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
  const wrong = !found.isDirectory()
    ? 'something else'
    : found.uid !== process.getuid!()
      ? 'one of another user'
      : (found.mode & 0o077) !== 0
        ? `mode ${(found.mode & 0o777).toString(8)}`
        : undefined
  if (!wrong) return
  const remedy = 'remove it or set XDG_RUNTIME_DIR'
  refuse('unavailable', `${folder}: expected a folder of this user with mode 700, found ${wrong}; ${remedy}`)
}

const removeStale = async (path: string): Promise<void> => {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!found) return
  if (!found.isSocket()) refuse('unavailable', `${path}: expected a socket or nothing, found something else; remove it`)
  if (await isAnswered(path)) refuse('unavailable', `${path}: another daemon answers here; stop it first`)
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

/** Reads one line, answers one line and closes the connection. */
const converse = async (socket: Socket, reply: (line: string) => Promise<object>): Promise<void> => {
  socket.on('error', () => socket.destroy())
  const line = await firstLine(socket)
  const answered =
    line === undefined
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
