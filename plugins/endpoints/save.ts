import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { refuse } from '../../sdk/index.js'
import { barred, type Listener } from '../../sdk/node/network/addresses.js'
import { normalHost } from '../../sdk/node/network/host-form.js'
import { HOST_FORM } from '../../sdk/node/network/policy.js'
import type { CapabilityGiven, CapabilityStatus, ContributedKind } from '../capabilities/contract.js'
import type { EndpointRow, ServerAsConnection, ServerInput, WireProtocol } from './contract.js'
import { SERVER_KIND, type ServerEntry } from './entry.js'
import { LOCAL_KIND } from './local/entry.js'
import { checkHeaderLines, checkKey } from './header-lines.js'
import { type EndpointStore, KEEP_STORED } from './store.js'

const RESERVED = new Set(['trial', 'local-model', 'free-trial'])

/** Refuses an id that stands for something else. */
export const checkId = (id: string): void => {
  if (RESERVED.has(id)) refuse('conflict', `the id ${id} is reserved: choose another`)
}

const shownText = (text: string): string => JSON.stringify(text.slice(0, 80))

/** Refuses an address that cannot be that of a model server. */
export const checkBaseUrl = async (baseUrl: string, listeners: readonly Listener[]): Promise<void> => {
  const url =
    (/^https?:\/\//.test(baseUrl) && URL.parse(baseUrl))
    || refuse('invalid', `baseUrl: expected an address such as http://127.0.0.1:8080, found ${shownText(baseUrl)}`, {
      errors: [{ path: 'baseUrl', expected: 'an address with http or https' }],
    })
  if (url.username || url.password)
    refuse(
      'unprocessable',
      'baseUrl: expected an address without user and password, found one with them: give the key as apiKey',
    )
  if (url.search || url.hash)
    refuse('unprocessable', 'baseUrl: expected an address without ? and #, found one with them')
  await checkAddress('baseUrl', baseUrl, listeners)
}

/** Refuses an address that the daemon does not ask for somebody else, such as its own. */
export const checkAddress = async (field: string, address: string, listeners: readonly Listener[]): Promise<void> => {
  const url = URL.parse(address)
  if (!url) return
  const host =
    normalHost(url.hostname)
    ?? refuse('unprocessable', `${field}: expected ${HOST_FORM} as host, found ${url.hostname}`)
  const addresses = isIP(host) ? [{ address: host }] : await lookup(host, { all: true }).catch(() => [])
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  for (const { address } of addresses) {
    const why = barred(address, port, { near: true, listeners })
    if (why !== undefined) refuse('unprocessable', `${field}: ${url.origin} is no model server: ${why}`)
  }
}

/** What is stored of a server, and whether that is anything else than before. */
export const givenServer = async (
  store: EndpointStore,
  { id, label, protocol, baseUrl, apiKey, headers, prices: given }: ServerInput,
  before: ServerEntry | undefined,
): Promise<{ given: CapabilityGiven; changes: boolean }> => {
  if (headers !== undefined && headers !== KEEP_STORED) checkHeaderLines(headers)
  if (apiKey !== undefined) checkKey(apiKey)
  const fields: [field: 'apiKey' | 'headers', value: string | undefined, held: boolean][] = [
    ['apiKey', apiKey, before?.hasKey === true],
    ['headers', headers, before?.hasHeaders === true],
  ]
  const secrets: { [field: string]: string } = {}
  for (const [field, value, held] of fields) {
    if (value === undefined) continue
    if (value === KEEP_STORED && !held) {
      refuse('unprocessable', `${field}: ${KEEP_STORED} keeps a stored value, and none is stored: give one`)
    } else if (value !== KEEP_STORED && (value !== '' || held)) secrets[field] = value
  }
  const shown = label?.trim() || before?.label || id
  const prices = given ?? before?.prices ?? {}
  const same =
    before !== undefined
    && before.label === shown
    && before.protocol === protocol
    && before.baseUrl === baseUrl
    && JSON.stringify(before.prices ?? {}) === JSON.stringify(prices)
  const config = { protocol, baseUrl, ...(Object.keys(prices).length > 0 && { prices: JSON.stringify(prices) }) }
  return {
    given: { id, kind: SERVER_KIND, label: shown, config, secrets },
    changes: !same || !(await areStored(store, id, secrets)),
  }
}

/** Whether these are the values that are stored already. */
const areStored = async (
  store: EndpointStore,
  id: string,
  secrets: { readonly [field: string]: string },
): Promise<boolean> => {
  const fields = (['apiKey', 'headers'] as const).filter(field => secrets[field] !== undefined)
  if (fields.length > 0 && !(await store.open())) return false
  const stored = await Promise.all(fields.map(field => store.secret(id, field)))
  return fields.every((field, at) => secrets[field] === (stored[at] ?? ''))
}

const PROTOCOLS: readonly string[] = ['openai', 'anthropic', 'ollama'] satisfies WireProtocol[]

/** A model server as the config of a connection gives it. */
export const serverIn = (id: string, config: ServerAsConnection['config']): ServerInput => {
  const { protocol = '', baseUrl = '', apiKey, headers } = config
  if (!PROTOCOLS.includes(String(protocol)))
    refuse('invalid', `config.protocol: expected one of ${PROTOCOLS.join(', ')}, found ${shownText(String(protocol))}`)
  return {
    id,
    kind: 'server',
    protocol: protocol as WireProtocol,
    baseUrl: String(baseUrl),
    ...(apiKey !== undefined && { apiKey: String(apiKey) }),
    ...(headers !== undefined && { headers: String(headers) }),
  }
}

/** How a server stands, for the list of connections. */
export const conditionOf = ({ status, detail }: EndpointRow): CapabilityStatus => {
  const checkedAt = Date.now()
  if (status === 'ready') return { state: 'active', checkedAt }
  const why = { detail: detail ?? `it is ${status}`, checkedAt }
  if (status === 'stopped') return { state: 'inactive', ...why }
  if (status === 'downloading' || status === 'loading') return { state: 'pending', ...why }
  return { state: 'error', code: 'unreachable', ...why }
}

/** The kinds of connections that this group keeps. */
export const MODEL_KINDS: readonly ContributedKind[] = [SERVER_KIND, LOCAL_KIND].map(kind => ({
  kind,
  storedBy: 'group',
  calls: { connect: 'endpoints.connect', status: 'endpoints.condition' },
}))
