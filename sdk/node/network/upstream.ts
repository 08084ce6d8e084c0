import { Agent as PlainAgent, request, type IncomingMessage } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { connect, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as secured } from 'node:tls'
import { ignored } from '../../ignored.js'
import { Refusal, refuse } from '../../refusal.js'
import { addressKind } from './addresses.js'
import { trustAuthorities } from './authority.js'
import { SENTENCES } from './failure-words.js'
import { normalHost, written, type Target } from './host-form.js'
import { exemptions } from './no-proxy.js'

/** The proxy of the deployment through which a server is asked. */
export interface UpstreamProxy extends Target {
  /** It is spoken to over TLS. */
  readonly secure: boolean
  /** The header of the name and password in its address. */
  readonly authorization?: string
  /** Its whole address, for programs that ask it themselves. */
  readonly address: string
  /** The variable that names it. */
  readonly variable: string
}

const CONNECT_MS = 30_000
const VARIABLES = { 'http:': ['http_proxy', 'HTTP_PROXY'], 'https:': ['https_proxy', 'HTTPS_PROXY'] } as const
const ALL = ['all_proxy', 'ALL_PROXY'] as const
const NONE = ['no_proxy', 'NO_PROXY'] as const
const USUAL = { 'http:': 80, 'https:': 443 } as const

type Scheme = keyof typeof VARIABLES

const isScheme = (text: string): text is Scheme => text in USUAL

const firstOf = (names: readonly string[]): readonly [variable: string, value: string] | undefined => {
  const variable = names.find(name => process.env[name])
  return variable === undefined ? undefined : [variable, process.env[variable]!]
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const proxyIn = (variable: string, value: string): UpstreamProxy => {
  const wrong = (found: string): never =>
    refuse('dependency', `${variable} of the daemon: expected an address such as http://proxy:3128, found ${found}`)
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`)
  if (!url) return wrong('one that cannot be read')
  if (/^socks/.test(url.protocol))
    return wrong('that of a SOCKS proxy, which the daemon cannot use: name the HTTP proxy of the network instead')
  if (!isScheme(url.protocol)) return wrong(`one of ${url.protocol.slice(0, 40)}`)
  const host = normalHost(url.hostname)
  if (host === undefined) return wrong('one without a host')
  const login = `${decoded(url.username)}:${decoded(url.password)}`
  return {
    host,
    port: Number(url.port || USUAL[url.protocol]),
    secure: url.protocol === 'https:',
    address: url.href,
    variable,
    ...(login !== ':' && { authorization: `Basic ${Buffer.from(login).toString('base64')}` }),
  }
}

let known: { readonly list: string; readonly exempt: (target: Target) => boolean } | undefined

/**
 * The proxy of the daemon's environment through which a server is asked: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and
 * NO_PROXY, in small letters first. Undefined: it is asked directly, as this machine always is.
 */
export const deploymentProxy = (target: Target, scheme: Scheme): UpstreamProxy | undefined => {
  const found = firstOf([...VARIABLES[scheme], ...ALL])
  if (!found || /(?:^|\.)localhost$/.test(target.host)) return undefined
  if (isIP(target.host) && addressKind(target.host) === 'loopback') return undefined
  const list = firstOf(NONE)?.[1] ?? ''
  if (known?.list !== list) known = { list, exempt: exemptions(list) }
  return known.exempt(target) ? undefined : proxyIn(...found)
}

const failure = (proxy: UpstreamProxy, why: string, cause?: unknown): Refusal =>
  new Refusal('dependency', `the proxy ${written(proxy)} of ${proxy.variable} ${why}`, { cause })

const leading = new WeakMap<Socket, UpstreamProxy>()

/** The proxy that a connection leads to, so that it takes plain requests; undefined: it leads to a server. */
export const proxyBehind = (socket: Socket): UpstreamProxy | undefined => leading.get(socket)

/** A connection to a proxy itself, paused. */
export const connectUpstream = (proxy: UpstreamProxy, signal: AbortSignal): Promise<Socket> =>
  new Promise((done, failed) => {
    const { host, port, secure } = proxy
    const to = { host, port, noDelay: true, keepAlive: true, autoSelectFamily: true }
    if (secure) trustAuthorities()
    const socket = secure ? secured({ ...to, ...(isIP(host) === 0 && { servername: host }) }) : connect(to)
    const stop = () => socket.destroy(Object.assign(new Error('it does not answer'), { code: 'ETIMEDOUT' }))
    const late = setTimeout(stop, CONNECT_MS)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    const over = () => {
      clearTimeout(late)
      signal.removeEventListener('abort', stop)
    }
    socket.once('error', (error: NodeJS.ErrnoException) => {
      over()
      failed(failure(proxy, `cannot be reached: ${SENTENCES[error.code ?? ''] ?? error.code ?? error.message}`, error))
    })
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      over()
      socket.removeAllListeners('error')
      socket.on('error', ignored('its close follows'))
      leading.set(socket, proxy)
      done(socket.pause())
    })
  })

/** What a request to a proxy says beside what it says to the server. */
export const upstreamHeaders = ({ authorization }: UpstreamProxy): { readonly [name: string]: string } =>
  authorization === undefined ? {} : { 'proxy-authorization': authorization }

const refusalOf = (proxy: UpstreamProxy, status: number | undefined): Refusal | undefined =>
  status === 407
    ? failure(
        proxy,
        proxy.authorization === undefined
          ? 'asks for a name and password: put them into its address'
          : 'refuses the name and password in its address',
      )
    : undefined

/** Ends an answer that is the proxy's own, and says why it refused the request; undefined: it is the server's. */
export const refusedByProxy = (proxy: UpstreamProxy | undefined, answer: IncomingMessage): Refusal | undefined => {
  const refused = proxy && refusalOf(proxy, answer.statusCode)
  if (refused) answer.destroy()
  return refused
}

/** What curl writes, in git as well, when a proxy did not let it through. */
const CURL_REFUSED =
  /CONNECT tunnel failed, response (\d+)|Received HTTP code (\d+) from proxy|returned error: (407)\b/i
const CURL_CUT = /Proxy CONNECT aborted|(?:Couldn't|Could not) resolve proxy|Can't complete SOCKS/i

/** Says why a program that uses curl was not let through a proxy, from what it wrote; undefined: the proxy let it. */
export const proxyWords = (proxy: UpstreamProxy, target: string, wrote: string): string | undefined => {
  const [, tunnelled, received, plain] = CURL_REFUSED.exec(wrote) ?? []
  const status = tunnelled ?? received ?? plain
  if (status !== undefined)
    return (refusalOf(proxy, Number(status)) ?? failure(proxy, `does not connect to ${target}: it answers ${status}`))
      .message
  const lower = wrote.toLowerCase()
  const own = ['connect to', 'resolve host:', 'resolve'].some(said => lower.includes(`${said} ${proxy.host} `))
  return CURL_CUT.test(wrote) || own ? failure(proxy, 'cannot be reached').message : undefined
}

/** A connection through a proxy to a server, paused; whatever goes over it is for the server alone. */
export const tunnel = async (proxy: UpstreamProxy, target: Target, signal: AbortSignal): Promise<Socket> => {
  const socket = await connectUpstream(proxy, signal)
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const name = written(target)
  const asked = request({
    method: 'CONNECT',
    path: name,
    setHost: false,
    headers: { host: name, ...upstreamHeaders(proxy) },
    createConnection: () => socket,
  })
  const stop = () => asked.destroy(Object.assign(new Error('it does not answer'), { code: 'ETIMEDOUT' }))
  const late = setTimeout(stop, CONNECT_MS)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  // It came paused, so that nothing of it is lost.
  asked.once('socket', far => far.resume())
  asked.once('connect', ({ statusCode = 0, statusMessage = '' }, _, head: Buffer) => {
    if (statusCode >= 200 && statusCode < 300) {
      socket.pause()
      leading.delete(socket)
      if (head.length > 0) socket.unshift(head)
      return resolve(socket)
    }
    socket.destroy()
    const words = `${statusCode} ${statusMessage.slice(0, 100)}`.trim()
    reject(refusalOf(proxy, statusCode) ?? failure(proxy, `does not connect to ${name}: it answers ${words}`))
  })
  asked.on('error', (error: NodeJS.ErrnoException) =>
    reject(
      failure(
        proxy,
        `does not connect to ${name}: ${SENTENCES[error.code ?? ''] ?? error.code ?? error.message}`,
        error,
      ),
    ),
  )
  asked.end()
  try {
    return await promise
  } finally {
    clearTimeout(late)
    signal.removeEventListener('abort', stop)
  }
}

const NO_SIGNAL = new AbortController().signal

type Made = (error: Error | null, socket: Duplex) => void

/** Hands a socket that is on its way to the request that waits for it. */
const handed = (coming: Promise<Socket>, done: Made | undefined): undefined => {
  coming.then(
    socket => done?.(null, socket),
    (error: unknown) => done?.(error as Error, undefined as never),
  )
}

const targetOf = ({ host, port }: { host?: string | null | undefined; port?: number | string | null | undefined }) => ({
  host: normalHost(host ?? '') ?? '',
  port: Number(port),
})

/** A server may have left the list of NO_PROXY while a request to it was made. */
const required = (target: Target, scheme: Scheme): UpstreamProxy =>
  deploymentProxy(target, scheme) ?? refuse('dependency', `${written(target)} is not asked through a proxy any more`)

const plainAgent = (keepAlive: boolean): PlainAgent => {
  const agent = new PlainAgent({ keepAlive })
  agent.createConnection = (options, done) =>
    handed(
      (async () => (await connectUpstream(required(targetOf(options), 'http:'), NO_SIGNAL)).resume())(),
      done as Made,
    )
  return agent
}

const secureAgent = (keepAlive: boolean): SecureAgent => {
  const agent = new SecureAgent({ keepAlive })
  agent.createConnection = (options, done) => {
    const target = targetOf(options)
    const { rejectUnauthorized } = options as { rejectUnauthorized?: boolean }
    const coming = async () => {
      const socket = await tunnel(required(target, 'https:'), target, NO_SIGNAL)
      trustAuthorities()
      return secured({
        socket,
        ...(isIP(target.host) ? { host: target.host } : { servername: target.host }),
        ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
      })
    }
    return handed(coming(), done as Made)
  }
  return agent
}

const agents = {
  kept: { 'http:': plainAgent(true), 'https:': secureAgent(true) },
  once: { 'http:': plainAgent(false), 'https:': secureAgent(false) },
}

/** The options of a request to a server behind a proxy: over TLS in a tunnel, else as a request to the proxy. */
export const upstreamOptions = (
  url: URL,
  proxy: UpstreamProxy,
  keeps: 'kept' | 'once',
): {
  readonly agent: PlainAgent
  readonly path?: string
  readonly headers: { readonly [name: string]: string }
} => {
  const secure = url.protocol === 'https:'
  const agent = agents[keeps][secure ? 'https:' : 'http:']
  return secure
    ? { agent, headers: {} }
    : { agent, path: `http://${url.host}${url.pathname}${url.search}`, headers: upstreamHeaders(proxy) }
}
