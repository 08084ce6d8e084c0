import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createListener, type AddressInfo } from 'node:net'
import { guardedFetch } from '../../../plugins/capabilities/login/guarded-fetch.js'
import { providerWire } from '../../../plugins/accounts/provider-wire.js'
import { ForgeClient, ForgeGate } from '../../../plugins/pipelines/forges/client.js'
import { dialectOf } from '../../../plugins/pipelines/forges/mapped-repos.js'
import { IssuerEndpoints } from '../../../plugins/system/access/issuer-endpoints.js'
import { IssuerKeys } from '../../../plugins/system/access/issuer-keys.js'
import { ciService } from '../../../plugins/secrets/ci/service.js'
import { outgoing } from '../../../sdk/node/models/outgoing.js'
import { checkedFetch } from '../../../sdk/node/network/checked-fetch.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'

/** What followed the address that an answer named. */
export interface NamedAddressesWorld {
  /** Connections from an answer of a public server to what is near. */
  readonly reached: readonly string[]
  /** The addresses near that pages were given by a public server. */
  readonly given: readonly string[]
  /** Readers that asked the public server. */
  readonly asked: readonly string[]
  /** Readers whose near server led to another place near; the canary sees who connects. */
  readonly controls: readonly string[]
}

const [PUBLIC, PRIVATE] = ['203.0.113.5', '10.77.0.1']

/** Gives the network of this process a public address and those of a machine in a private network. */
const furnish = (): void => {
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  for (const address of [PUBLIC, PRIVATE, '169.254.169.254', '169.254.9.9', '100.100.100.200', '192.168.7.7'])
    execFileSync('ip', ['address', 'add', `${address}/32`, 'dev', 'lo'])
  for (const address of ['fd00:ec2::254', 'fd12::1'])
    execFileSync('ip', ['-6', 'address', 'add', `${address}/128`, 'dev', 'lo', 'nodad'])
}

const HOSTS = [
  ...['127.0.0.1', 'localhost', '127.1', '0x7f000001', '0.0.0.0', PRIVATE, '192.168.7.7', '169.254.169.254'],
  ...['169.254.9.9', '100.100.100.200', '[::1]', '[::]', '[fd00:ec2::254]', '[fd12::1]', `[::ffff:${PRIVATE}]`],
  '[64:ff9b::a4d:1]',
]

/** The address that the server names. */
let named = ''

type Read = (at: URL, signal: AbortSignal) => Promise<unknown>

const reach = async () => ({ near: true, listeners: [] })
const read = (signal: AbortSignal) => async (url: string, near: boolean) =>
  (await askOutside({ url, reach: { near, listeners: [] }, redirects: 0, timeoutMs: 3_000, maxBytes: 9_999, signal }))
    .body

/** Everything that follows an address which an answer names: by a redirect, or in a document. */
const READERS: { readonly [what: string]: Read } = {
  'a request': ({ href: url }, signal) =>
    askOutside({ url, reach: { near: true, listeners: [] }, timeoutMs: 3_000, maxBytes: 9_999, signal }),
  'a download': ({ href: url }, signal) => outgoing({ url, signal, within: 3_000, redirects: 'secure' }),
  'a test of a model': ({ href: url }, signal) =>
    outgoing({ url, signal, within: 3_000, redirects: 'secure', method: 'POST', body: {} }),
  'a list': ({ href: url }, signal) => outgoing({ url, signal, within: 3_000 }),
  'a forge': async (site, signal) => {
    const gate = new ForgeGate()
    const client = new ForgeClient({
      dialect: dialectOf('gitlab')!,
      site,
      token: 't',
      reach: await reach(),
      gate,
      signal,
    })
    await dialectOf('gitlab')!.log(client, 'a/b', '1')
  },
  'a store of variables': async ({ origin: api }, signal) =>
    ciService({ provider: 'gitlab', api, token: 't', project: 'a/b', reach: await reach(), signal }).names(),
  'a provider': ({ href: url }, signal) => providerWire(async () => [])({ url, form: { a: 'b' }, signal }),
  'a tool server': ({ href }, signal) => checkedFetch(reach)(href, { signal }),
  'who signs people in': ({ origin }, signal) => new IssuerKeys(origin, read(signal), Date.now).current(),
  // A public server is asked over https alone: what it names is given here.
  'who signs in to a tool server': (server, signal) => guardedFetch(server, async () => [])(named, { signal }),
}

const world = async (): Promise<NamedAddressesWorld> => {
  furnish()
  let reached = false
  const canary = createListener(socket => {
    reached = true
    socket.on('error', () => {}).destroy()
  }).listen(0, '::')
  await once(canary, 'listening')
  const port = (canary.address() as AddressInfo).port
  let heard = false
  const server = createServer((request, answer) => {
    heard = true
    const origin = `http://${request.headers.host}`
    const document = { issuer: origin, jwks_uri: named, authorization_endpoint: named, token_endpoint: named }
    const inDocument = /\.well-known/.test(request.url ?? '')
    answer.writeHead(inDocument ? 200 : 307, inDocument ? {} : { location: named })
    answer.end(JSON.stringify(document))
  }).listen(0, '::')
  await once(server, 'listening')
  const at = (host: string) => new URL(`http://${host}:${(server.address() as AddressInfo).port}/`)
  const found = {
    reached: new Set<string>(),
    given: new Set<string>(),
    asked: new Set<string>(),
    controls: new Set<string>(),
  }
  for (const [what, reader] of Object.entries(READERS)) {
    for (const host of HOSTS)
      for (const scheme of ['http', 'https']) {
        named = `${scheme}://${host}:${port}/`
        ;[reached, heard] = [false, false]
        await reader(at(PUBLIC), AbortSignal.timeout(5_000)).catch(() => undefined)
        if (heard) found.asked.add(what)
        if (reached) found.reached.add(`${what}: ${named}`)
      }
    // The same host with another port, and another one near.
    for (const target of ['127.0.0.1', PRIVATE]) {
      named = `http://${target}:${port}/`
      reached = false
      await reader(at('127.0.0.1'), AbortSignal.timeout(5_000)).catch(() => undefined)
      if (reached) found.controls.add(what)
    }
  }
  for (const host of HOSTS)
    for (const scheme of ['http', 'https', 'javascript', 'file']) {
      named = `${scheme}://${host}:${port}/`
      const { authorize, token } = await new IssuerEndpoints(read(new AbortController().signal), Date.now).of(
        at(PUBLIC).origin,
      )
      for (const page of [authorize, token]) if (page !== undefined) found.given.add(page)
    }
  server.closeAllConnections()
  server.close()
  canary.close()
  return {
    reached: [...found.reached],
    given: [...found.given],
    asked: [...found.asked],
    controls: [...found.controls],
  }
}

console.log(JSON.stringify(await world()))
process.exit()
