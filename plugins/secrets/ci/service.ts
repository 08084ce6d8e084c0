import { Refusal, refuse } from '../../../sdk/index.js'
import { asData } from '../../../sdk/node/access/redact.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'
import type { NetworkReach } from '../../../sdk/node/network/policy.js'
import { namesOf } from '../../../sdk/node/programs/library.js'

/** The secret variables of one repository, or of an environment of it, at a CI service. */
export interface CiService {
  /** The names that are there, each with what changes when its value does. */
  names(): Promise<Map<string, string>>
  put(key: string, value: string): Promise<void>
}
/** Where secret variables are, and with which credential they are changed. */
export interface CiPlace {
  readonly provider: CiProvider
  /** The address of the service's interface, without a slash at its end. */
  readonly api: string
  readonly token: string
  /** As the address of the remote names it, such as `acme/shop`. */
  readonly project: string
  readonly environment?: string
  readonly reach: NetworkReach
  readonly signal: AbortSignal
}
export type CiProvider = 'github' | 'gitlab' | 'forgejo' | 'gitea'

const WITHIN = 20_000
const MOST_ANSWER = 4 * 1024 * 1024
const PAGE = 100
const MOST_PAGES = 20
const MOST_WORDS = 300

interface Row {
  readonly name?: string
  readonly key?: string
  readonly value?: string | null
  readonly updated_at?: string
  readonly created_at?: string
  readonly environment_scope?: string
}

/** The secret variables at a place. */
export const ciService = (place: CiPlace): CiService => {
  if (place.provider === 'gitlab') return gitlab(place)
  return place.provider === 'github' ? github(place) : forgejo(place)
}

const HEADERS: { readonly [provider in CiProvider]: (token: string) => { [name: string]: string } } = {
  github: token => ({
    authorization: `Bearer ${token}`,
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
  }),
  gitlab: token => ({ 'private-token': token, accept: 'application/json' }),
  forgejo: token => ({ authorization: `token ${token}`, accept: 'application/json' }),
  gitea: token => ({ authorization: `token ${token}`, accept: 'application/json' }),
}

interface Asked {
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly body?: { readonly [field: string]: unknown }
  /** Statuses that are answers too. */
  readonly also?: readonly number[]
}

const ask = async (
  { provider, api, token, reach, signal }: CiPlace,
  { method = 'GET', path, body, also = [] }: Asked,
): Promise<{ status: number; value: unknown }> => {
  const { status, body: bytes } = await askOutside({
    url: `${api}${path}`,
    method,
    headers: { ...HEADERS[provider](token), ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    reach,
    signal,
    timeoutMs: WITHIN,
    redirects: 0,
    maxBytes: MOST_ANSWER,
  })
  const value = parsed(bytes.toString())
  if (status < 300 || also.includes(status)) return { status, value }
  const words = wordsOf(value)
  return refuse('dependency', `${new URL(api).host} refused (${status})${words && `: ${words}`}`)
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text || '{}')
  } catch {
    return undefined
  }
}

/** What a service says of its refusal, as one line. */
const wordsOf = (value: unknown): string => {
  const { message } = (value ?? {}) as { message?: unknown }
  if (message === undefined) return ''
  try {
    return asData(typeof message === 'string' ? message : JSON.stringify(message), MOST_WORDS)
  } catch {
    // It is nested too deep.
    return ''
  }
}

/** A row of a list, with those of its fields that are texts; none where it is no row. */
const rowOf = (given: unknown): Row[] =>
  typeof given === 'object' && given !== null
    ? [Object.fromEntries(Object.entries(given).filter(([, field]) => typeof field === 'string'))]
    : []

/** The rows of every page; `field` holds them where the answer is no list. */
const rows = async (place: CiPlace, path: string, field?: string): Promise<Row[]> => {
  const all: Row[] = []
  for (let page = 1; page <= MOST_PAGES; page++) {
    const size = place.provider === 'forgejo' || place.provider === 'gitea' ? 'limit' : 'per_page'
    const { value } = await ask(place, { path: `${path}?${size}=${PAGE}&page=${page}` })
    const found = field === undefined ? value : (value as { [field: string]: unknown } | undefined)?.[field]
    if (!Array.isArray(found)) return refuse('dependency', `${new URL(place.api).host} answered no list of variables`)
    all.push(...found.slice(0, PAGE).flatMap(rowOf))
    if (found.length < PAGE) break
  }
  return all
}

const stamps = (found: readonly Row[]): Map<string, string> =>
  new Map(found.map(({ name = '', updated_at, created_at }) => [name.toUpperCase(), updated_at ?? created_at ?? '']))

const projectPath = (project: string): string => project.split('/').map(encodeURIComponent).join('/')

/** A value encrypted for one key, so that only the service reads it; undefined: it is no key. */
const sealedFor = async (value: string, key: string): Promise<string | undefined> => {
  const sodium = namesOf(await import('libsodium-wrappers'))
  await sodium.ready
  try {
    return Buffer.from(sodium.crypto_box_seal(Buffer.from(value), Buffer.from(key, 'base64'))).toString('base64')
  } catch {
    return undefined
  }
}

const github = (place: CiPlace): CiService => {
  const { project, environment } = place
  const base =
    environment === undefined
      ? `/repos/${projectPath(project)}/actions/secrets`
      : `/repos/${projectPath(project)}/environments/${encodeURIComponent(environment)}/secrets`
  let known: Promise<{ key: string; key_id: string }> | undefined
  const publicKey = async () => {
    const { value } = await ask(place, { path: `${base}/public-key` })
    const { key, key_id } = (value ?? {}) as { key?: unknown; key_id?: unknown }
    if (typeof key === 'string' && Buffer.from(key, 'base64').length === 32 && typeof key_id === 'string')
      return { key, key_id }
    return refuse('dependency', `${new URL(place.api).host} answered no public key`)
  }
  return {
    names: async () => stamps(await rows(place, base, 'secrets')),
    put: async (name, value) => {
      const { key, key_id } = await (known ??= publicKey())
      const sealed = await sealedFor(value, key)
      if (sealed === undefined) refuse('dependency', `${new URL(place.api).host} answered a public key that is none`)
      const body = { encrypted_value: sealed, key_id }
      await ask(place, { method: 'PUT', path: `${base}/${encodeURIComponent(name)}`, body })
    },
  }
}

const forgejo = (place: CiPlace): CiService => {
  if (place.environment !== undefined)
    refuse('unprocessable', `environment: ${place.provider} has none; leave it out`, {
      errors: [{ path: 'targets', expected: 'no environment' }],
    })
  const base = `/repos/${projectPath(place.project)}/actions/secrets`
  return {
    names: async () => stamps(await rows(place, base)),
    put: async (name, data) =>
      void (await ask(place, { method: 'PUT', path: `${base}/${encodeURIComponent(name)}`, body: { data } })),
  }
}

const gitlab = (place: CiPlace): CiService => {
  const { project, environment = '*' } = place
  const base = `/projects/${encodeURIComponent(project)}/variables`
  const scope = `?filter%5Benvironment_scope%5D=${encodeURIComponent(environment)}`
  return {
    names: async () => {
      const found = (await rows(place, base)).filter(each => (each.environment_scope ?? '*') === environment)
      // It shows values to who may change them: the value itself says whether it changed.
      return new Map(found.map(({ key = '', value }) => [key, value ?? '']))
    },
    put: async (key, value) => {
      const body = { value, masked: true, environment_scope: environment }
      const path = `${base}/${encodeURIComponent(key)}${scope}`
      const changed = await ask(place, { method: 'PUT', path, body, also: [404] })
      if (changed.status === 404) await ask(place, { method: 'POST', path: base, body: { key, ...body } })
    },
  }
}

/** Why a key did not get there, without its value. */
export const ciFailure = (error: unknown, value: string): string => {
  if (!(error instanceof Refusal)) throw error
  return error.message.replaceAll(value, '…').slice(0, 500)
}
