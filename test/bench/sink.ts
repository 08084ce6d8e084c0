// The readers of a benchmark's server, in a separate process: forked by `serve`.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

interface Task {
  readonly port: number
  readonly sockets: number
  readonly stalled: number
}

/** Opens the sockets; reports the bytes read when all readers have ended. */
const read = ({ port, sockets, stalled }: Task): void => {
  let bytes = 0
  let open = sockets
  const held: Socket[] = []
  for (let n = 0; n < sockets + stalled; n++) {
    const path = n < sockets ? '/' : '/stalled'
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`))
    socket.on('error', () => {})
    if (n >= sockets) {
      held.push(socket.pause())
      continue
    }
    socket.on('data', piece => (bytes += piece.length))
    socket.on('close', () => {
      if (--open > 0) return
      process.send?.({ bytes })
      for (const other of held) other.destroy()
    })
  }
}

/** Readers for any number of servers, one after another. */
export const sink = (): ChildProcess => fork(fileURLToPath(import.meta.url), ['sink'])

/** Watchers that read, watchers that stopped reading, and the work that writes to them. */
export interface Serving {
  readonly sockets: number
  readonly stalled?: number
  attach(res: ServerResponse, req: IncomingMessage): void
  /** Resolves when the work may begin. */
  settled?(): Promise<void>
  work(): Promise<void>
}

/** The times until every watcher had everything, in ms. */
export interface Spent {
  readonly wall: number
  /** The processor time of this process, the server. */
  readonly processor: number
}

/** Serves watchers, and measures from the beginning of the work until every watcher had everything. */
export const serve = async (
  child: ChildProcess,
  { sockets, stalled = 0, attach, settled, work }: Serving,
): Promise<Spent> => {
  let here = 0
  const all = Promise.withResolvers<void>()
  const server = createServer({ noDelay: true }, (req, res) => {
    attach(res, req)
    if (++here === sockets + stalled) all.resolve()
  }).listen(0, '127.0.0.1', 2048)
  await once(server, 'listening')
  child.send({ port: (server.address() as AddressInfo).port, sockets, stalled } satisfies Task)
  await all.promise
  await new Promise(resolve => setImmediate(resolve))
  await settled?.()
  const over = once(child, 'message')
  const [started, used] = [performance.now(), process.cpuUsage()]
  await work()
  await over
  const wall = performance.now() - started
  const { user, system } = process.cpuUsage(used)
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  return { wall, processor: (user + system) / 1000 }
}

/** Writes the head of an event stream. */
export const head = (res: ServerResponse): ServerResponse => {
  res.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' }).flushHeaders()
  return res
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.on('message', task => read(task as Task))
