import { apiAddresses, rootAddress } from './base-address.js'
import { type ListedModel, MOST_ROWS, namesOfTags, parseList, rowOfTag, rowsOfData } from './list-rows.js'
import type { ServerProtocol } from './list-rows.js'
import { bytesOf, outgoing, Unanswered } from './outgoing.js'
import { withoutValues, wordsOfServer } from './server-words.js'

/** A model server, with its headers and secrets. */
export interface ListedServer {
  readonly protocol: ServerProtocol
  readonly baseUrl: string
  readonly headers: { readonly [name: string]: string }
  /** Values that no message may contain. */
  readonly secrets: readonly string[]
  /** The path of its list below its address, if known; then the address is used unchanged. */
  readonly list?: string
}

/** The models of a server, and the base address of its API. */
export interface ServerList {
  readonly models: ListedModel[]
  readonly apiBase: string
}

/** A server returned no list; the message says why and what to do. */
export class ListFailure extends Error {
  readonly kind: 'unreachable' | 'refused' | 'error'
  readonly status: number | undefined

  constructor(kind: ListFailure['kind'], message: string, status?: number, cause?: unknown) {
    super(message, { cause })
    this.name = 'ListFailure'
    this.kind = kind
    this.status = status
  }
}

const MOST_BYTES = 5 * 1024 * 1024
const MOST_ANSWER = 64 * 1024
const MOST_PAGES = 20
/** The most models whose details are requested one by one, and how many requests run concurrently. */
const MOST_SHOWN = 200
const AT_ONCE = 6

/** Lists the models of a server, within 10 s. */
export const listServer = async (server: ListedServer, signal: AbortSignal, within = 10_000): Promise<ServerList> => {
  const end = Date.now() + within
  const [first, ...others] =
    server.list === undefined ? apiAddresses(server.baseUrl, server.protocol) : [server.baseUrl]
  try {
    return await listAt(server, first, signal, end)
  } catch (error) {
    const elsewhere = error instanceof ListFailure && (error.status === 404 || error.status === 405)
    for (const address of elsewhere ? others : []) {
      const found = await listAt(server, address, signal, end).catch(() => undefined)
      if (found) return found
    }
    throw error
  }
}

const listAt = async (server: ListedServer, apiBase: string, signal: AbortSignal, end: number): Promise<ServerList> => {
  const ask = (path: string, body?: unknown) => askJson(server, apiBase + path, signal, end, body)
  if (server.protocol === 'ollama') return { apiBase, models: await listTags(ask) }
  const models: ListedModel[] = []
  let path = server.list ?? (server.protocol === 'anthropic' ? '/models?limit=1000' : '/models')
  for (let pages = 0; pages < MOST_PAGES && models.length < MOST_ROWS; pages++) {
    const value = await ask(path)
    const rows = rowsOfData(value)
    if (!rows) throw notList(apiBase + path)
    const known = new Set(models.map(({ id }) => id))
    models.push(...rows.filter(({ id }) => !known.has(id)))
    const { has_more: more, last_id: last } = value as { has_more?: unknown; last_id?: unknown }
    if (server.protocol !== 'anthropic' || server.list !== undefined || more !== true || typeof last !== 'string') break
    path = `/models?limit=1000&after_id=${encodeURIComponent(last)}`
  }
  return { apiBase, models: models.slice(0, MOST_ROWS) }
}

const listTags = async (ask: (path: string, body?: unknown) => Promise<unknown>): Promise<ListedModel[]> => {
  const names = namesOfTags(await ask('/tags'))
  if (!names) throw notList('/api/tags')
  const shown = new Map<string, unknown>()
  const waiting = names.slice(0, MOST_SHOWN)
  const work = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      // Details that the server does not return are left out of the row.
      const facts = await ask('/show', { model: name }).catch(() => undefined)
      shown.set(name, facts)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return names.flatMap(name => rowOfTag(name, shown.get(name)) ?? [])
}

const askJson = async (
  { headers, secrets }: ListedServer,
  url: string,
  signal: AbortSignal,
  end: number,
  body?: unknown,
): Promise<unknown> => {
  try {
    const left = () => Math.max(1, end - Date.now())
    const answer = await outgoing({
      url,
      headers,
      signal,
      within: left(),
      ...(body !== undefined && { method: 'POST', body }),
    })
    const { status } = answer
    const { bytes, cut } = await bytesOf(answer, status === 200 ? MOST_BYTES : MOST_ANSWER, left())
    const text = bytes.toString('utf8')
    if (status !== 200) throw refusedList(url, status, wordsOfServer(text, secrets), secrets.length > 0)
    if (/^\s*</.test(text)) {
      throw new ListFailure(
        'error',
        `${url} answered a web page instead of a list of models: give the address of the server's programming `
          + 'interface, and check the protocol',
        status,
      )
    }
    try {
      return parseList(text, cut)
    } catch (error) {
      throw new ListFailure(
        'error',
        `${url} did not answer with JSON: check the address and the protocol`,
        status,
        error,
      )
    }
  } catch (error) {
    if (error instanceof Unanswered) throw new ListFailure(kindOf(error), withoutValues(error.message, secrets))
    throw error
  }
}

const kindOf = ({ kind }: Unanswered): ListFailure['kind'] =>
  kind === 'redirect' || kind === 'certificate' ? 'error' : 'unreachable'

const notList = (where: string): ListFailure =>
  new ListFailure(
    'error',
    `${where} answered with JSON that is not a list of models: check the address and the protocol`,
    200,
  )

/** Explains a status for the person who entered the address. */
const refusedList = (url: string, status: number, words: string, keyed: boolean): ListFailure => {
  const { origin } = new URL(url)
  const said = words ? `; it says: ${words}` : ''
  if (status === 401 || status === 403) {
    const what = keyed
      ? `${origin} refuses the key (${status}): save the right one`
      : `${origin} asks for a key (${status}): save the server with one`
    return new ListFailure('refused', what + said, status)
  }
  if (status === 404 || status === 405)
    return new ListFailure(
      'error',
      `nothing is at ${url} (${status}): check the address and the protocol${said}`,
      status,
    )
  if (status === 429)
    return new ListFailure('error', `${origin} limits its rate of requests (429); try again later${said}`, status)
  return new ListFailure('error', `${origin} failed (${status})${said}`, status)
}

/** The headers of a protocol and of the user, which override them; names in lower case. */
export const headersOf = (
  protocol: ServerProtocol,
  key: string | undefined,
  added: { readonly [name: string]: string } = {},
): { [name: string]: string } => ({
  ...(protocol === 'anthropic' && { 'anthropic-version': '2023-06-01' }),
  ...(key !== undefined && (protocol === 'anthropic' ? { 'x-api-key': key } : { authorization: `Bearer ${key}` })),
  ...Object.fromEntries(Object.entries(added).map(([name, value]) => [name.toLowerCase(), value])),
})

/** The root address of a server, for other groups. */
export const serverRoot = ({ baseUrl, protocol }: Pick<ListedServer, 'baseUrl' | 'protocol'>): string =>
  rootAddress(baseUrl, protocol)
