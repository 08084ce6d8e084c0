import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RequestStep } from './request.js'

/**
 * Serves the requests of one connection one after the other (HTTP pipelining, RFC 9112, section 9.3.2): each when the
 * answer before it was taken, so that a client which sends many and reads none does not have their answers buffered.
 */
export const serveInTurn = (): RequestStep => {
  const last = new WeakMap<Socket, { res: ServerResponse; waits?: Promise<void> }>()
  return async ({ req: { socket }, res }, next) => {
    const before = last.get(socket)
    const waits =
      before === undefined || before.res.writableFinished
        ? undefined
        : Promise.resolve(before.waits).then(() => taken(before.res, socket))
    last.set(socket, { res, ...(waits && { waits }) })
    if (waits) await waits
    if (!waits || !socket.destroyed) await next()
  }
}

/** Resolves when an answer was taken or its connection is gone, of which a waiting response gets no event. */
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
