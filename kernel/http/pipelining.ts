import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Lets the requests of one connection be served one after the other: each when the answer before it was taken.
 *
 * Who asks for more in one breath than it takes would otherwise have all its answers kept for it. What is answered is
 * whether the connection is still there when it is a request's turn; undefined: it need not wait.
 */
export const limitPipelining = (): ((req: IncomingMessage, res: ServerResponse) => Promise<boolean> | undefined) => {
  const last = new WeakMap<Socket, { res: ServerResponse; waits?: Promise<boolean> }>()
  return ({ socket }, res) => {
    const before = last.get(socket)
    const waits =
      before === undefined || before.res.writableFinished
        ? undefined
        : Promise.resolve(before.waits)
            .then(() => taken(before.res, socket))
            .then(() => !socket.destroyed)
    last.set(socket, { res, ...(waits && { waits }) })
    return waits
  }
}

/** A response that waits for its place on a connection never hears that it is gone. */
const taken = (res: ServerResponse, socket: Socket): Promise<void> | void => {
  if (res.closed || socket.destroyed) return
  return new Promise(resolve => {
    const over = (): void => {
      for (const one of [res, socket]) one.off('close', over)
      resolve()
    }
    for (const one of [res, socket]) one.on('close', over)
  })
}
