import { hash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { connect as secured, type TLSSocket } from 'node:tls'
import { CLOSED } from '../../../sdk/node/network/failure-words.js'
import type { OfferedCertificate, OfferedShare, WebdavTarget } from '../contract.js'
import { portOf, type DiskSecrets } from '../entry.js'
import { connectTo, failureWords } from './address.js'
import { ignored } from '../../../sdk/index.js'

/** What a WebDAV server answered. */
export interface WebdavAnswer {
  readonly reachable: boolean
  readonly latencyMs?: number
  readonly auth: 'ok' | 'refused' | 'untested'
  readonly shares: OfferedShare[]
  readonly writable?: boolean
  readonly certificate?: OfferedCertificate
  /** The certificate in PEM. */
  readonly pem?: string
  readonly detail?: string
}

interface WebdavAsked {
  readonly target: WebdavTarget
  readonly secrets: DiskSecrets
  readonly address: string
  readonly signal: AbortSignal
}

const MOST_BYTES = 4 * 1024 * 1024
const MOST_SHARES = 500
const ASKED = '<?xml version="1.0"?><propfind xmlns="DAV:"><prop><resourcetype/></prop></propfind>'
const WRITES = /\b(PUT|DELETE|MKCOL)\b/

/** Whether the daemon may send a credential to the server that showed this certificate. */
export const isTrustedCertificate = (
  { trustedCert }: Pick<WebdavTarget, 'trustedCert'>,
  certificate: OfferedCertificate,
): boolean => (trustedCert === undefined ? certificate.trusted : trustedCert === `sha256:${certificate.sha256}`)

/** Lists a folder of a WebDAV server (RFC 4918). A server with an untrusted certificate gets no credential. */
export const askWebdav = async (asked: WebdavAsked): Promise<WebdavAnswer> => {
  const { target, secrets } = asked
  let known: Pick<WebdavAnswer, 'reachable' | 'latencyMs' | 'certificate' | 'pem'> = { reachable: false }
  try {
    const opened = await openConnection(asked)
    const { socket, latencyMs, certificate, pem } = opened
    known = { reachable: false, latencyMs, ...(certificate && { certificate, pem: pem! }) }
    if (certificate && !isTrustedCertificate(target, certificate)) {
      socket.destroy()
      return { ...known, reachable: true, auth: 'untested', shares: [], detail: 'its certificate is not trusted' }
    }
    const { answer, body } = await ask(asked, socket, 'PROPFIND', { depth: '1', 'content-type': 'text/xml' }, ASKED)
    const status = answer.statusCode ?? 0
    const reachable = { ...known, reachable: status > 0 }
    if (status === 401 || status === 403) {
      const digest = /^digest/i.test(answer.headers['www-authenticate'] ?? '')
      const untried = secrets.password === undefined || digest
      const detail = digest ? 'it asks for a Digest sign-in, which only a mount tries' : `it answers ${status}`
      return { ...reachable, auth: untried ? 'untested' : 'refused', shares: [], detail }
    }
    if (status !== 207)
      return { ...reachable, auth: 'untested', shares: [], detail: `it answers ${status} to a listing` }
    const options = await ask(asked, (await openConnection(asked)).socket, 'OPTIONS', {})
    return {
      ...reachable,
      auth: secrets.password === undefined ? 'untested' : 'ok',
      shares: listedFolders(body, new URL(target.url)),
      writable: WRITES.test(String(options.answer.headers.allow ?? '')),
    }
  } catch (error) {
    return { ...known, auth: 'untested', shares: [], detail: failureWords(error) }
  }
}

interface OpenedConnection {
  readonly socket: Socket
  readonly latencyMs: number
  readonly certificate?: OfferedCertificate
  readonly pem?: string
}

const openConnection = async ({ target, address, signal }: WebdavAsked): Promise<OpenedConnection> => {
  const { socket, latencyMs } = await connectTo(address, portOf(target), signal)
  const { protocol, hostname } = new URL(target.url)
  if (protocol === 'http:') return { socket, latencyMs }
  const name = hostname.replace(/^\[(.*)\]$/, '$1')
  const tls: TLSSocket = secured({
    socket,
    host: name,
    rejectUnauthorized: false,
    ...(isIP(name) === 0 && { servername: name }),
  })
  await once(tls, 'secureConnect', { signal })
  tls.on('error', ignored('its close follows'))
  const shown = new X509Certificate(tls.getPeerCertificate().raw)
  const certificate = {
    sha256: hash('sha256', shown.raw),
    subject: shown.subject ?? '',
    validTo: Math.max(0, Date.parse(shown.validTo)),
    trusted: tls.authorized,
  }
  return { socket: tls, latencyMs, certificate, pem: shown.toString() }
}

const ask = async (
  { target, secrets, signal }: WebdavAsked,
  socket: Socket,
  method: string,
  headers: { readonly [name: string]: string },
  body?: string,
): Promise<{ answer: IncomingMessage; body: string }> => {
  const url = new URL(target.url)
  const { username } = target
  const login = `${username}:${secrets.password ?? ''}`
  const asked = request({
    createConnection: () => socket,
    method,
    path: url.pathname || '/',
    headers: {
      host: url.host,
      connection: 'close',
      'user-agent': 'sandbox',
      ...headers,
      ...(username !== undefined && { authorization: `Basic ${Buffer.from(login).toString('base64')}` }),
    },
    signal,
  })
  // A server that switches the protocol makes no other event than the last.
  const closed = once(asked, 'close').then(() => Promise.reject(new Error(CLOSED)))
  const came = Promise.race([once(asked, 'response') as Promise<[IncomingMessage]>, closed])
  asked.end(body)
  const [answer] = await came
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of answer as AsyncIterable<Buffer>) {
    pieces.push(piece)
    size += piece.length
    if (size > MOST_BYTES) break
  }
  socket.destroy()
  return { answer, body: Buffer.concat(pieces).toString() }
}

/** The names of the folders in an answer to a listing, without the listed folder itself. */
export const listedFolders = (xml: string, listed: URL): OfferedShare[] => {
  const own = segmentsIn(listed.pathname)
  const names: string[] = []
  for (const [response] of xml.matchAll(/<(?:[\w-]+:)?response[\s>][\s\S]*?<\/(?:[\w-]+:)?response>/gi)) {
    const href = /<(?:[\w-]+:)?href[^>]*>\s*([^<]*?)\s*</i.exec(response)?.[1]
    if (href === undefined || !/<(?:[\w-]+:)?collection[\s/>]/i.test(response)) continue
    const path = segmentsIn(URL.parse(href.replaceAll('&amp;', '&'), listed.href)?.pathname ?? '')
    if (path.length === own.length + 1) names.push(path.at(-1)!)
  }
  return [...new Set(names)]
    .sort()
    .slice(0, MOST_SHARES)
    .map(name => ({ name }))
}

const segmentsIn = (path: string): string[] =>
  path
    .split('/')
    .filter(Boolean)
    .map(segment => {
      try {
        return decodeURIComponent(segment)
      } catch {
        return segment
      }
    })
