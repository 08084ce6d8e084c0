import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { refuse } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { isLoopbackHostname } from '../../../sdk/node/models/outgoing.js'
import { MESSAGE_PAGE_HEADERS, messagePage } from '../../../sdk/node/pages/message-page.js'

/** Where the daemon listens for the answer of one sign-in (RFC 8252, section 7.3). */
export interface LoopbackListener {
  readonly port: number
  /** As the provider is to send the browser there. */
  readonly redirectUri: string
  close(): void
}
/** What a page says of an answer. */
export interface LoopbackPage {
  readonly status: 200 | 400 | 424
  readonly title: string
  readonly text: string
}

const HOST = '127.0.0.1'
const ELSEWHERE: LoopbackPage = { status: 400, title: 'Nothing is here', text: 'This address takes sign-ins alone.' }

/**
 * Listens where a definition says, at a free port where it names none; undefined: it sends browsers to another machine.
 * `ending` makes the address one that nobody guesses.
 */
export const openLoopback = async (
  registered: string | undefined,
  ending: string | undefined,
  answer: (query: URLSearchParams) => Promise<LoopbackPage>,
): Promise<LoopbackListener | undefined> => {
  const place = new URL(registered ?? `http://${HOST}/callback`)
  if (place.protocol !== 'http:' || !isLoopbackHostname(place.hostname)) return undefined
  if (ending !== undefined) place.pathname = `${place.pathname.replace(/\/$/, '')}/${ending}`
  const server = createServer(({ method, url = '' }, res) => {
    const asked = URL.parse(url, `http://${HOST}`)
    if (method !== 'GET' || asked?.pathname !== place.pathname) return show(res, ELSEWHERE)
    return void answer(asked.searchParams).then(
      page => show(res, page),
      () => res.destroy(),
    )
  })
  server.headersTimeout = server.requestTimeout = 10_000
  server.listen({ host: HOST, port: Number(place.port) }).unref()
  await once(server, 'listening').catch(error => {
    if (codeOf(error) !== 'EADDRINUSE') throw error
    refuse(
      'conflict',
      `port ${place.port} of this machine is in use, and the provider sends the answer there alone: `
        + 'end the program that uses it, or choose another flow',
    )
  })
  const { port } = server.address() as AddressInfo
  place.port = String(port)
  return {
    port,
    redirectUri:
      ending === undefined && registered !== undefined && new URL(registered).port === String(port)
        ? registered
        : place.href,
    close: () => {
      server.close()
      server.closeIdleConnections()
    },
  }
}

const show = (res: ServerResponse, { status, title, text }: LoopbackPage): void => {
  res.writeHead(status, {
    ...MESSAGE_PAGE_HEADERS,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    connection: 'close',
  })
  res.end(messagePage(title, text))
}
