import { chmod, lstat, mkdir, unlink } from 'node:fs/promises'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { Refusal, refuse } from '../refusal.js'

/** The longest path of a socket that the system surely takes whole, in bytes. */
export const LONGEST_PATH = 100
const LONGEST_LINE = 4096
const PATIENCE = 5000
const AT_ONCE = 32

/** A socket of this user that answers lines. */
export interface LineSocket {
  readonly path: string
  close(): Promise<void>
}

/**
 * Answers each connection one JSON line with another, at a path that only this user reaches.
 *
 * What keeps others out is the folder's mode and the socket's: Node does not tell who is at the other end. Refuses where
 * the folder is not ours alone, where something else lies at the path, and where another process answers there.
 */
export const openLineSocket = async (
  path: string, reply: (line: string) => Promise<object>, failed: (error: unknown) => void,
): Promise<LineSocket> => {
  if (Buffer.byteLength(path) > LONGEST_PATH) {
    refuse('unavailable', `${path}: expected a socket path of at most ${LONGEST_PATH} bytes`)
  }
  await ownFolder(dirname(path))
  await removeStale(path)
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, socket => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
    void converse(socket, reply).catch(failed)
  })
  server.maxConnections = AT_ONCE
  await listening(server, path)
  await chmod(path, 0o600)
  server.on('error', failed)
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
