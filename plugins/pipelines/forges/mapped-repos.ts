import { refuse, Refusal, type Host } from '../../../sdk/index.js'
import type { CapabilityRecord } from '../../capabilities/contract.js'
import type { ForgeHost } from '../contract.js'
import { ApiDescriptions } from './api-description.js'
import { ForgeClient, ForgeGate, projectPath } from './client.js'
import type { Dialect } from './forge.js'
import { forgejo } from './forgejo.js'
import { github } from './github.js'
import { gitlab } from './gitlab.js'

const KEPT_MS = 30_000
const descriptions = new ApiDescriptions()

const DIALECTS: { readonly [host in ForgeHost]: Dialect } = {
  github,
  gitlab,
  forgejo: forgejo('forgejo', descriptions),
  gitea: forgejo('gitea', descriptions),
}

/** The dialect of a forge; undefined: there is no such forge. */
export const dialectOf = (host: string): Dialect | undefined =>
  Object.values(DIALECTS).find(dialect => dialect.host === host)

/** A repository of the workspace whose remote is at a connected forge. */
export interface MappedRepo {
  readonly repo: string
  readonly host: ForgeHost
  readonly project: string
  readonly url: string
  /** The connection. */
  readonly account: string
  readonly dialect: Dialect
  readonly site: URL
  /** Asks the forge; refuses where the connection has no credential. */
  readonly client: () => ForgeClient
}

interface Connection {
  readonly id: string
  readonly dialect: Dialect
  readonly site: URL
  readonly client: () => ForgeClient
}

/** Finds the repositories whose remotes are at connected forges. */
export class MappedRepos {
  readonly #host: Pick<Host, 'call' | 'serves' | 'signal' | 'log'>
  readonly #found: () => void
  readonly #gates = new Map<string, ForgeGate>()
  #kept: { at: number; repos: Promise<MappedRepo[]> } | undefined

  /** @param found Called when repositories were found. */
  constructor(host: Pick<Host, 'call' | 'serves' | 'signal' | 'log'>, found: () => void) {
    this.#host = host
    this.#found = found
  }

  /** Forgets what was found: connections changed. */
  forget(): void {
    this.#kept = undefined
  }

  /** All of them, as found at most 30 s ago; `anew`: as they are now. */
  all(anew = false): Promise<MappedRepo[]> {
    if (!anew && this.#kept && this.#kept.at > Date.now() - KEPT_MS) return this.#kept.repos
    const repos = this.#find()
    this.#kept = { at: Date.now(), repos }
    repos.catch(() => (this.#kept = undefined))
    return repos
  }

  async #find(): Promise<MappedRepo[]> {
    const host = this.#host
    const connections = await this.#connections()
    if (connections.length === 0 || !(await host.serves('GET /git/repos'))) return []
    const { repos } = await host.call('GET /git/repos')
    const found = await Promise.all(['root', ...repos].map(repo => this.#mapped(repo, connections)))
    const all = found.flatMap(each => each ?? [])
    if (all.length > 0) this.#found()
    return all
  }

  async #mapped(repo: string, connections: readonly Connection[]): Promise<MappedRepo | undefined> {
    const { remotes } = await this.#host
      .call('GET /git/{repo}/remotes', { repo })
      .catch(() => ({ remotes: [] as { name: string; host?: string; project?: string }[] }))
    const byOrigin = remotes.toSorted((one, other) => Number(other.name === 'origin') - Number(one.name === 'origin'))
    for (const { host, project } of byOrigin) {
      const connection = connections.find(({ site }) => site.hostname === host)
      if (!connection || project === undefined) continue
      const { id: account, dialect, site, client } = connection
      const url = new URL(projectPath(project), site.href.endsWith('/') ? site : `${site.href}/`).href
      return { repo, host: dialect.host, project, url, account, dialect, site, client }
    }
    return undefined
  }

  async #connections(): Promise<Connection[]> {
    const host = this.#host
    if (!(await host.serves('capabilities.records'))) return []
    const { capabilities } = await host.call('capabilities.records', { kind: 'cli' })
    const forges = capabilities.flatMap(record => {
      const dialect = dialectOf(String(record.config['provider']))
      const site = dialect && siteOf(record)
      return dialect && site ? [{ id: record.id, dialect, site }] : []
    })
    if (forges.length === 0) return []
    const { listeners } = await host.call('kernel.listeners')
    return Promise.all(
      forges.map(async forge => {
        const { id, dialect, site } = forge
        const token = await this.#token(id)
        const client =
          token instanceof Refusal
            ? () => {
                throw token
              }
            : () =>
                new ForgeClient({
                  ...{ dialect, site, token, reach: { near: true, listeners } },
                  ...{ gate: this.#gate(site.host), signal: host.signal },
                })
        return { ...forge, client }
      }),
    )
  }

  #gate(name: string): ForgeGate {
    const gate = this.#gates.get(name) ?? new ForgeGate()
    this.#gates.set(name, gate)
    return gate
  }

  async #token(id: string): Promise<string | Refusal> {
    const host = this.#host
    try {
      if (!(await host.serves('secrets.get'))) refuse('dependency', 'there is no store of secrets: group secrets')
      const { value } = await host.call('secrets.get', { name: `${id}/token` })
      return value ?? refuse('dependency', `the connection ${id} has no token: connect it again`)
    } catch (error) {
      if (error instanceof Refusal) return error
      throw error
    }
  }
}

const siteOf = ({ config: { provider, host, url } }: CapabilityRecord): URL | undefined => {
  const isNamed = provider === 'github' || provider === 'gitlab'
  return URL.parse(isNamed ? `https://${String(host || `${provider}.com`)}` : String(url ?? '')) ?? undefined
}
