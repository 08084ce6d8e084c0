import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Test } from 'tap'
import { ConversationAuthority } from '../../../plugins/agent/secrets/conversation-authority.js'

/** How the proxy is spoken to. */
export interface ProxyForm {
  /** Over TLS, with a certificate of the deployment's authority. */
  readonly secure: boolean
  /** The `user:password` it asks for. */
  readonly login?: string
}

/** What the proxy was asked for: `GET http://host/` or `CONNECT host:443`. */
export interface Proxied {
  readonly method: string
  readonly target: string
  readonly allowed: boolean
}

/** The names that only the proxy knows, each for one server. */
const BEHIND = /(?:^|\.)corp\.example$/

const ASKS = { 'proxy-authenticate': 'Basic realm="company"' }

const listening = async (t: Pick<Test, 'teardown'>, server: ReturnType<typeof createServer>): Promise<number> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/**
 * A network as companies have it: servers below `corp.example`, over HTTP and HTTPS, that only a proxy reaches, and an
 * authority of their own for their certificates.
 */
export const companyNetwork = async (t: Pick<Test, 'teardown'>, form: ProxyForm, serve: RequestListener) => {
  const authority = await ConversationAuthority.make()
  const sni = (name: string, done: (error: Error | null, context?: object) => void) =>
    void authority.contextOf(name).then(
      context => done(null, context),
      (error: unknown) => done(error as Error),
    )
  const origin = { plain: createServer(serve), secure: createSecureServer({ SNICallback: sni as never }, serve) }
  const ports = { plain: await listening(t, origin.plain), secure: await listening(t, origin.secure) }
  const asked: Proxied[] = []
  const may = ({ method = '', url = '', headers }: IncomingMessage, host: string): number => {
    const wanted = form.login && `Basic ${Buffer.from(form.login).toString('base64')}`
    const status = headers['proxy-authorization'] !== wanted ? 407 : BEHIND.test(host) ? 200 : 403
    asked.push({ method, target: url, allowed: status === 200 })
    return status
  }
  const take: RequestListener = (from: IncomingMessage, to: ServerResponse) => {
    const url = URL.parse(from.url ?? '')
    const status = may(from, url?.hostname ?? '')
    if (status !== 200 || !url) return void to.writeHead(status, ASKS).end('the proxy says no')
    const { 'proxy-authorization': _, ...headers } = from.headers
    const on = request(
      { host: '127.0.0.1', port: ports.plain, method: from.method, path: url.pathname + url.search, headers },
      answer => {
        to.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(to)
      },
    )
    on.on('error', () => to.destroy())
    from.pipe(on)
  }
  const proxy = form.secure
    ? createSecureServer({ SNICallback: sni as never, ...(await authority.identityOf('127.0.0.1')) }, take)
    : createServer(take)
  proxy.on('connect', (from: IncomingMessage, socket: Duplex, head: Buffer) => {
    const [host = '', port] = (from.url ?? '').split(':')
    const status = may(from, host)
    socket.on('error', () => {})
    if (status !== 200)
      return void socket.end(`HTTP/1.1 ${status} No\r\nproxy-authenticate: ${ASKS['proxy-authenticate']}\r\n\r\n`)
    const far: Socket = connect(port === '443' ? ports.secure : ports.plain, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      far.write(head)
      socket.pipe(far).pipe(socket)
    })
    far.on('error', () => socket.destroy())
    socket.on('close', () => far.destroy())
  })
  const port = await listening(t, proxy)
  const open = new Set<Duplex>()
  for (const server of [proxy, origin.plain, origin.secure])
    server.on('connection', socket => {
      open.add(socket)
      socket.once('close', () => open.delete(socket))
    })
  t.teardown(() => {
    for (const socket of open) socket.destroy()
  })
  const [name, password] = form.login?.split(':').map(encodeURIComponent) ?? []
  const login = name === undefined ? '' : `${name}:${password}@`
  return {
    asked,
    authority,
    ports,
    address: `http${form.secure ? 's' : ''}://${login}127.0.0.1:${port}`,
  }
}
