import type { IncomingMessage } from 'node:http'

/** A credential of the sandbox itself: session, control token, extension. */
const OWN_CREDENTIAL = /^bearer\s+sb[a-z]_/i
const OWN_HEADER = /^x-sandbox-/
/** What a proxy of the deployment says of the outer name: a server that compares it with `Host` would refuse. */
const OUTER_NAME = ['forwarded', 'x-forwarded-host', 'x-forwarded-port']

/** The host name that a request is for, without its port; undefined where it names none or several. */
export const requestedHost = ({ headersDistinct, url = '' }: IncomingMessage): string | undefined => {
  const { host = [] } = headersDistinct
  if (host.length !== 1 || !url.startsWith('/')) return undefined
  return host[0]!.toLowerCase().replace(/:\d{1,5}$/, '')
}

/** Whether a request comes from a page of the preview itself, judged by its origin. */
const isOwnOrigin = ({ headers: { origin = '', host = '' } }: IncomingMessage): boolean => {
  const url = URL.parse(origin)
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === origin && url.host === host.toLowerCase()
}

/**
 * Whether a request may be passed on. Its `Host` is rewritten, which lifts the server's own defence against pages of
 * other sites: such a page may only read what any page may read.
 */
export const mayPass = (req: IncomingMessage): boolean =>
  req.headers.origin === undefined
  || isOwnOrigin(req)
  || (req.method === 'GET' && req.headers.upgrade?.toLowerCase() !== 'websocket')

/** Gives a request the head that the server itself would get from a page of its own, without the sandbox's headers. */
export const rewriteHead = (req: IncomingMessage, { port, https }: { port: number; https: boolean }): void => {
  const { headers } = req
  const own = isOwnOrigin(req)
  for (const name of Object.keys(headers)) if (OWN_HEADER.test(name) || OUTER_NAME.includes(name)) delete headers[name]
  if (OWN_CREDENTIAL.test(headers.authorization ?? '')) delete headers.authorization
  headers.host = `localhost:${port}`
  if (own) headers.origin = `${https ? 'https' : 'http'}://localhost:${port}`
}

/** Where a redirect leads: to the preview where it leads to the server itself. */
export const outsideLocation = (location: string, port: number, outside: string): string => {
  const url = URL.parse(location)
  const near = ['localhost', '127.0.0.1', '[::1]']
  if (!url || !near.includes(url.hostname) || Number(url.port || (url.protocol === 'https:' ? 443 : 80)) !== port)
    return location
  return outside + url.pathname + url.search + url.hash
}
