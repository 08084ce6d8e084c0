import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RequestStep } from './request.js'

/**
 * Serves the requests of one connection in order (HTTP pipelining, RFC 9112, section 9.3.2), each after the previous
 * answer was sent: a client that pipelines without reading would make the server buffer every answer.
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

/** Resolves when an answer was sent or its connection closed; a queued response emits no event for the latter. */
const taken = (res: ServerResponse, socket: Socket): Promise<void> | void => {
  if (res.closed || socket.destroyed) return
  return new Promise(resolve => {
    const finish = (): void => {
      for (const one of [res, socket]) one.off('close', finish)
      resolve()
    }
    for (const one of [res, socket]) one.on('close', finish)
  })
}
