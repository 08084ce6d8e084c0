import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hashOf, holds } from '../../../sdk/node/access/secret.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { isDeeper } from '../../../sdk/node/limits/depth.js'
import type { TableGrant, TableProvider } from '../link/messages.js'
import { errorBody } from '../translate/errors.js'
import { objectIn, jsonOf, textIn, type Fields } from '../translate/fields.js'
import type { TranslatedProtocol } from '../translate/translated.js'
import type { DaemonLink } from './daemon-link.js'
import { answerRequest, servedFailure } from './exchange.js'
import { ServingFailure } from './failure.js'

const HOST = '127.0.0.1'
const MOST_BODY = 32 * 1024 * 1024
/** How many characters of a request are about one token. */
const CHARACTERS_A_TOKEN = 4
/** Say something to a server of the same protocol. */
const PASSED = ['anthropic-version', 'anthropic-beta', 'openai-beta']

const ROUTES: { readonly [path: string]: TranslatedProtocol } = {
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
  '/v1/messages': 'messages',
  '/v1/messages/count_tokens': 'messages',
}

/** Listens on loopback, at a wanted port where it is free; returns the port. */
export const listenOnLoopback = async (link: DaemonLink, wanted: number): Promise<{ server: Server; port: number }> => {
  const server = createServer((req, res) => void serve(link, req, res).catch(() => res.destroy()))
  server.requestTimeout = 0
  for (const port of wanted === 0 ? [0] : [wanted, 0]) {
    server.listen(port, HOST)
    const failed = await once(server, 'listening').then(
      () => undefined,
      (error: unknown) => error,
    )
    if (failed === undefined) return { server, port: (server.address() as AddressInfo).port }
    if (codeOf(failed) !== 'EADDRINUSE' || port === 0) throw failed
  }
  throw new Error('no port of loopback is free')
}

const serve = async (link: DaemonLink, req: IncomingMessage, res: ServerResponse): Promise<void> => {
  const path = (req.url ?? '').split('?')[0]!
  const protocol = ROUTES[path] ?? (req.headers['anthropic-version'] === undefined ? 'chat' : 'messages')
  const gone = new AbortController()
  res.on('close', () => !res.writableFinished && gone.abort())
  try {
    if (path === '/health') return sendJson(res, 200, { ok: true })
    const { grant, provider } = admitted(link, req)
    if (path === '/v1/models' && req.method === 'GET') return sendJson(res, 200, modelList(provider, protocol))
    if (!(path in ROUTES)) throw new ServingFailure(404, `there is no ${path.slice(0, 100)} here`)
    if (req.method !== 'POST') throw new ServingFailure(405, 'expected POST')
    const body = await bodyOf(req)
    const model = modelIn(body, provider, link)
    if (path.endsWith('/count_tokens'))
      return sendJson(res, 200, { input_tokens: Math.ceil(JSON.stringify(body).length / CHARACTERS_A_TOKEN) })
    const passed = PASSED.flatMap(name => {
      const value = req.headers[name]
      return typeof value === 'string' ? [[name, value] as const] : []
    })
    const signal = gone.signal
    await answerRequest(
      { protocol, provider, grant, model, body, passed: Object.fromEntries(passed), signal },
      link,
      res,
    )
  } catch (error) {
    if (gone.signal.aborted) return
    const failure = servedFailure(error)
    if (!res.headersSent) refuse(res, protocol, failure)
  }
}

/** The bearer of a request, by its hash, in constant time. */
const admitted = (link: DaemonLink, { headers }: IncomingMessage): { grant: TableGrant; provider: TableProvider } => {
  const key = headers['x-api-key']
  const given = /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? (typeof key === 'string' ? key : '')
  const hash = hashOf(given)
  const { grants, providers } = link.table
  const known = holds(
    grants.map(each => each.hash),
    hash,
  )
  const grant = known ? grants.find(each => each.hash === hash) : undefined
  const provider = grant && providers.find(({ id }) => id === grant.provider)
  if (!grant) throw new ServingFailure(401, 'expected the bearer of a running turn')
  if (!provider) throw new ServingFailure(403, `the provider ${grant.provider} is not served any more`)
  return { grant, provider }
}

const bodyOf = async (req: IncomingMessage): Promise<Fields> => {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of req as AsyncIterable<Buffer>) {
    size += piece.length
    if (size > MOST_BODY) throw new ServingFailure(413, `expected at most ${MOST_BODY} bytes`)
    pieces.push(piece)
  }
  const value = objectIn(jsonOf(Buffer.concat(pieces).toString('utf8')))
  if (!value) throw new ServingFailure(400, 'expected a JSON object')
  if (isDeeper(value)) throw new ServingFailure(400, 'the JSON is nested too deep')
  return value
}

/** The model of a request, without the id of its provider. */
const modelIn = (body: Fields, provider: TableProvider, { table }: DaemonLink): string => {
  const asked = textIn(body.model) ?? ''
  const own = `${provider.id}/`
  if (asked.startsWith(own) && asked.length > own.length) return asked.slice(own.length)
  const other = table.providers.find(({ id }) => asked.startsWith(`${id}/`))
  if (other) throw new ServingFailure(403, `this bearer belongs to ${provider.id}, and the model to ${other.id}`)
  throw new ServingFailure(404, `model: expected ${own}<model>, found ${JSON.stringify(asked.slice(0, 120))}`)
}

const modelList = ({ id: provider, models }: TableProvider, protocol: TranslatedProtocol): object => {
  if (protocol !== 'messages')
    return {
      object: 'list',
      data: models.map(({ id }) => ({ id: `${provider}/${id}`, object: 'model', created: 0, owned_by: provider })),
    }
  const data = models.map(({ id, label }) => ({
    ...{ type: 'model', id: `${provider}/${id}`, display_name: label },
    created_at: '1970-01-01T00:00:00Z',
  }))
  return { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
}

const refuse = (res: ServerResponse, protocol: TranslatedProtocol, { status, message, retryAfter }: ServingFailure) =>
  sendJson(res, status, errorBody(protocol, { status, message }), {
    ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
  })

const sendJson = (res: ServerResponse, status: number, body: object, more: { [name: string]: string } = {}): void => {
  // What was not read of a request that is too large would be taken for the next one.
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store', ...more }
  res.writeHead(status, status === 413 ? { ...headers, connection: 'close' } : headers)
  res.end(JSON.stringify(body))
}
