import { request as askHttp } from 'node:http'
import { request as askHttps } from 'node:https'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import type { Socket } from 'node:net'

const PATIENCE_MS = 1_500
/** What servers for HTTPS alone say to a plain request, beside ending the connection. */
const BAD_REQUEST = 400

/** Whether a server speaks HTTPS: HTTP is tried first, and taken where neither answers. */
export const speaksHttps = async (port: number, connect: () => Promise<Socket>): Promise<boolean> => {
  const plain = await statusOf(port, connect, false)
  if (plain !== undefined && plain !== BAD_REQUEST) return false
  return (await statusOf(port, connect, true)) !== undefined
}

const statusOf = async (port: number, connect: () => Promise<Socket>, https: boolean): Promise<number | undefined> => {
  const socket = await connect().catch(() => undefined)
  if (!socket) return undefined
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const late = setTimeout(() => resolve(undefined), PATIENCE_MS)
  const far: Duplex = https
    ? connectTls({ socket, servername: 'localhost', rejectUnauthorized: false }).on('error', () => resolve(undefined))
    : socket.on('error', () => resolve(undefined))
  try {
    const ask = https ? askHttps : askHttp
    const headers = { host: `localhost:${port}`, connection: 'close' }
    const asked = ask({ path: '/', headers, createConnection: () => far }, answer => resolve(answer.statusCode))
    asked.on('error', () => resolve(undefined)).end()
    return await promise
  } finally {
    clearTimeout(late)
    socket.destroy()
  }
}
