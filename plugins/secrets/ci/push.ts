import { createHmac, randomBytes } from 'node:crypto'
import { type Host, refuse } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isBoundTo } from '../../../sdk/node/network/bound-traffic.js'
import type { CapabilityRecord } from '../../capabilities/contract.js'
import type { StoredSecret, VaultContent } from '../vault/vault.js'
import type { CiResult, CiState, CiTarget, StaleCiKey } from './contract.js'
import { requiredByCi } from './required.js'
import { ciFailure, ciService, type CiPlace, type CiProvider } from './service.js'

/** What pushing works with. */
export interface CiPushDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'store' | 'signal' | 'place'>
  readonly content: () => Promise<VaultContent>
  readonly connected: () => Promise<readonly CapabilityRecord[]>
}
/** What a push did. */
export interface CiPush {
  readonly results: CiResult[]
  readonly stale: StaleCiKey[]
}

/** What is known of a value that a service was given: nothing from which it could be read. */
interface PushedKey {
  readonly salt: string
  readonly value: string
  /** Of what the service says of it. */
  readonly stamp: string
  readonly at: number
}
interface PushedPlace {
  readonly keys: { readonly [key: string]: PushedKey }
}
interface Planned {
  readonly repo: string
  readonly place: CiPlace
  readonly keys: readonly string[]
}

const NOTES = 'ci/'

const PROVIDERS: readonly CiProvider[] = ['github', 'gitlab', 'forgejo', 'gitea']
const CLOUD: { readonly [host: string]: CiProvider } = {
  'github.com': 'github',
  'gitlab.com': 'gitlab',
  'codeberg.org': 'forgejo',
}

/** Writes values into CI services. */
export class CiPushes {
  readonly #deps: CiPushDeps
  readonly #turns = new KeyedMutex()

  constructor(deps: CiPushDeps) {
    this.#deps = deps
  }

  /** Writes the keys into every target: nothing before each target is known to be one. */
  push(targets: readonly CiTarget[], keys: readonly string[] | undefined): Promise<CiPush> {
    return this.#turns.with('', async () => {
      const { secrets } = await this.#deps.content()
      const stored = new Map(secrets.filter(({ kind }) => kind !== 'field').map(each => [each.name, each]))
      const connected = await this.#deps.connected()
      const fields = new Map(secrets.map(({ name, value }) => [name, value]))
      const planned: Planned[] = []
      for (const target of targets) planned.push(await this.#planned(target, keys, stored, connected, fields))
      const all: CiPush = { results: [], stale: [] }
      const refused: string[] = []
      for (const each of planned) {
        const done = await this.#pushed(each, stored)
        all.results.push(...done.results)
        all.stale.push(...done.stale)
        refused.push(...done.refused)
      }
      if (refused.length > 0 && refused.length === all.results.length) refuse('dependency', refused[0]!)
      return all
    })
  }

  /** Of every key that a service was given, whether all of them have what is stored. */
  async states(secrets: readonly StoredSecret[]): Promise<Map<string, CiState>> {
    const states = new Map<string, { synced: boolean; at: number }>()
    const values = new Map(secrets.map(({ name, value }) => [name, value]))
    for (const [name, { keys }] of await this.#deps.host.store.all<PushedPlace>()) {
      if (!name.startsWith(NOTES)) continue
      for (const [key, note] of Object.entries(keys)) {
        const value = values.get(key)
        const synced = value !== undefined && digest(note.salt, value) === note.value
        const before = states.get(key)
        states.set(key, { synced: synced && before?.synced !== false, at: Math.max(note.at, before?.at ?? 0) })
      }
    }
    return new Map(
      [...states].map(([key, { synced, at }]) => [key, { synced, pushedAt: new Date(at).toISOString() }] as const),
    )
  }

  async #planned(
    { repo, connection, environment }: CiTarget,
    keys: readonly string[] | undefined,
    stored: ReadonlyMap<string, StoredSecret>,
    connected: readonly CapabilityRecord[],
    fields: ReadonlyMap<string, string>,
  ): Promise<Planned> {
    const { host } = this.#deps
    if (!(await host.serves('GET /git/{repo}/remotes')))
      return refuse('unprocessable', 'repositories cannot be read: this sandbox runs without the group git')
    const { remotes } = await host.call('GET /git/{repo}/remotes', { repo })
    const remote = remotes.find(({ name }) => name === 'origin') ?? remotes[0]
    if (remote?.host === undefined || remote.project === undefined)
      return refuse('unprocessable', `${repo} has no remote at a CI service`)
    const found = connectionFor(connected, remote.host, connection)
    if (!found) {
      const why = `connect a ${CLOUD[remote.host] ?? 'forge'} token for ${remote.host} first (POST /capabilities)`
      if (CLOUD[remote.host]) return refuse('dependency', `there is no connection for ${remote.host}: ${why}`)
      return refuse('unprocessable', `the remote of ${repo} is at ${remote.host}, no CI service known here: ${why}`)
    }
    const token = fields.get(`${found.id}/token`)
    if (token === undefined) return refuse('dependency', `the connection ${found.id} has no token: connect it again`)
    const { listeners } = await host.call('kernel.listeners')
    const place: CiPlace = {
      provider: found.config['provider'] as CiProvider,
      api: apiOf(found),
      token,
      project: remote.project,
      ...(environment !== undefined && { environment }),
      reach: { near: true, listeners },
      signal: host.signal,
    }
    // Says before anything is written what this service has not.
    ciService(place)
    return {
      repo,
      place,
      keys: [...new Set(keys ?? (await requiredByCi(host.place.workspace, repo, new Set(stored.keys()))))],
    }
  }

  async #pushed(
    { repo, place, keys }: Planned,
    stored: ReadonlyMap<string, StoredSecret>,
  ): Promise<CiPush & { refused: string[] }> {
    const { store } = this.#deps.host
    const service = ciService(place)
    const id = NOTES + placeId(place)
    const noted = { ...(await store.get<PushedPlace>(id))?.keys }
    const results: CiResult[] = []
    const refused: string[] = []
    const fail = (key: string, detail: string) => void results.push({ repo, key, status: 'failed', detail })
    let there: Map<string, string>
    try {
      there = await service.names()
    } catch (error) {
      const detail = ciFailure(error, place.token)
      for (const key of keys) fail(key, detail)
      return { results, stale: [], refused: keys.length > 0 ? keys.map(() => detail) : [detail] }
    }
    const written: { key: string; value: string }[] = []
    const { hostname } = new URL(place.api)
    for (const key of keys) {
      const secret = stored.get(key)
      if (!secret) {
        fail(key, `nothing is stored under ${key}`)
        continue
      }
      if (secret.hosts && !isBoundTo(secret.hosts, hostname)) {
        fail(key, `${key} is bound to ${secret.hosts.slice(0, 5).join(', ')}, and ${hostname} is none of these hosts`)
        continue
      }
      const { value } = secret
      if (isSame(noted[key], value, there.get(key) ?? there.get(key.toUpperCase()))) {
        results.push({ repo, key, status: 'unchanged' })
        continue
      }
      try {
        await service.put(key, value)
        written.push({ key, value })
        results.push({ repo, key, status: 'pushed' })
      } catch (error) {
        const detail = ciFailure(error, value)
        fail(key, detail)
        refused.push(detail)
      }
    }
    failpoint('secrets.ci.pushed')
    const after = written.length > 0 ? await service.names().catch(() => there) : there
    const at = Date.now()
    for (const { key, value } of written) {
      const salt = randomBytes(16).toString('hex')
      const stamp = after.get(key) ?? after.get(key.toUpperCase()) ?? ''
      noted[key] = { salt, value: digest(salt, value), stamp: digest(salt, stamp), at }
    }
    for (const key of Object.keys(noted)) if (!has(after, key)) delete noted[key]
    await store.set(id, { keys: noted } satisfies PushedPlace)
    failpoint('secrets.ci.noted')
    const stale = Object.keys(noted)
      .filter(key => !stored.has(key))
      .sort()
    return { results, stale: stale.map(key => ({ repo, key })), refused }
  }
}

const has = (names: ReadonlyMap<string, string>, key: string): boolean => names.has(key) || names.has(key.toUpperCase())

const digest = (salt: string, text: string): string => createHmac('sha256', salt).update(text).digest('hex')

const isSame = (note: PushedKey | undefined, value: string, stamp: string | undefined): boolean =>
  note !== undefined
  && stamp !== undefined
  && note.value === digest(note.salt, value)
  && note.stamp === digest(note.salt, stamp)

const placeId = ({ api, project, environment = '' }: CiPlace): string => JSON.stringify([api, project, environment])

/** The connection that is named, or the first for a host. */
const connectionFor = (
  connected: readonly CapabilityRecord[],
  host: string,
  named: string | undefined,
): CapabilityRecord | undefined => {
  const forges = connected.filter(({ config }) => PROVIDERS.includes(config['provider'] as CiProvider))
  if (named === undefined) return forges.find(each => siteOf(each).hostname === host)
  const found = forges.find(({ id }) => id === named)
  if (!found) return refuse('dependency', `connection: expected that of a forge, and ${named} is none`)
  const { hostname } = siteOf(found)
  // Its credential is for that host.
  if (hostname !== host)
    return refuse('unprocessable', `connection: ${named} is for ${hostname}, and the remote is at ${host}`)
  return found
}

const siteOf = ({ config: { provider, host, url } }: CapabilityRecord): URL =>
  new URL(provider === 'github' || provider === 'gitlab' ? `https://${host || `${provider}.com`}` : String(url ?? 'x:'))

/** Where the interface of a service is. */
const apiOf = (connection: CapabilityRecord): string => {
  const site = siteOf(connection)
  const base = site.href.replace(/\/+$/, '')
  switch (connection.config['provider'] as CiProvider) {
    case 'github':
      return site.host === 'github.com' ? 'https://api.github.com' : `${base}/api/v3`
    case 'gitlab':
      return `${base}/api/v4`
    default:
      return `${base}/api/v1`
  }
}
