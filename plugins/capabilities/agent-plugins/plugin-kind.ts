import { refuse, type Host } from '../../../sdk/index.js'
import { assertRepositoryPath } from '../../../sdk/node/transport/code-folder.js'
import { isSource } from '../../../sdk/node/transport/fetched-commit.js'
import type { AgentFolder } from '../contract.js'
import type { ShownConfig } from '../records/contract.js'
import type { Entries, RecordedEntry } from '../records/entries.js'
import { activeStatus, failingStatus, type KindHandler, type OpenEntry } from '../records/kinds.js'
import type { McpKind } from '../servers/mcp-kind.js'
import type { ServerSessions } from '../servers/sessions.js'
import { broughtSentences, OWN_FOLDER, type PluginServer } from './contents.js'
import { PluginCheckouts, type PluginFolder } from './checkouts.js'

const FETCH_MS = 600_000
const COMMIT = /^[0-9a-f]{40}$/

const text = (config: ShownConfig, field: string): string => String(config[field] ?? '')

export interface AgentPluginsDeps {
  readonly entries: () => Pick<Entries, 'all' | 'isAccepted' | 'find'>
  readonly sessions: Pick<ServerSessions, 'endAll' | 'busy' | 'crashes'>
  readonly servers: Pick<McpKind, 'forget' | 'rename'>
}

/** Plugins of agents: commits of repositories with skills, agents, commands, hooks and tool servers. */
export class AgentPlugins implements KindHandler {
  readonly kind = 'plugin'
  readonly applyMs = FETCH_MS
  readonly #host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>
  readonly #deps: AgentPluginsDeps
  readonly #checkouts: PluginCheckouts
  /** What was in force before the change that is under way. */
  readonly #before = new Map<string, ShownConfig>()

  constructor(host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>, deps: AgentPluginsDeps) {
    this.#host = host
    this.#deps = deps
    this.#checkouts = new PluginCheckouts(host)
  }

  secretFields(): readonly string[] {
    return ['token']
  }

  mainSecret(): string {
    return 'token'
  }

  label(config: ShownConfig): string | undefined {
    const from =
      text(config, 'path')
      || text(config, 'url')
        .replace(/\/+$/, '')
        .replace(/\.git$/, '')
    return from.split(/[/:]/).at(-1) || undefined
  }

  async check({ config, secrets }: OpenEntry): Promise<void> {
    const url = text(config, 'url')
    if (!isSource(this.#host.place.workspace, url))
      refuse(
        'invalid',
        'config.url: expected an https or ssh address, http on this machine, or the path of a repository of the '
          + `workspace, found ${JSON.stringify(url.slice(0, 200))}`,
      )
    if (!COMMIT.test(text(config, 'ref')))
      refuse(
        'invalid',
        'config.ref: expected the full id of a commit, 40 hexadecimal digits: a branch or tag may move, found '
          + JSON.stringify(text(config, 'ref').slice(0, 100)),
      )
    assertRepositoryPath(text(config, 'path'), 'config.path')
    if (secrets.token !== undefined && !/^https:/i.test(url))
      refuse('invalid', 'config.token: expected only with an https address')
  }

  async apply(entry: OpenEntry, report: (message: string) => void, signal: AbortSignal) {
    const { id, config } = entry
    const before = await this.#deps.entries().find(id)
    if (before) this.#before.set(id, before.config)
    report(`fetching ${text(config, 'url')} at ${text(config, 'ref').slice(0, 12)}; nothing of it runs`)
    const contents = await this.#checkouts.fetch(entry, signal)
    broughtSentences(contents).forEach(sentence => report(sentence))
    contents.problems.forEach(problem => report(problem))
    return activeStatus()
  }

  async probe({ id, config }: OpenEntry, _signal: AbortSignal, thorough: boolean) {
    if (thorough) for (const server of await this.#serverIds(id)) this.#deps.sessions.crashes.clear(server)
    const isThere = thorough
      ? await this.#checkouts.isWhole(id, config)
      : (await this.#checkouts.contents(id, config)) !== undefined
    return isThere ? activeStatus() : failingStatus('its checkout is not whole: save it again with POST /capabilities')
  }

  async recorded({ id, config }: OpenEntry): Promise<void> {
    const before = this.#before.get(id)
    this.#before.delete(id)
    for (const server of await this.#serverIds(id)) await this.#deps.sessions.endAll(server)
    await this.#checkouts.keepOnly(id, config, before)
  }

  async forget(id: string): Promise<void> {
    this.#before.delete(id)
    for (const server of await this.#serverIds(id)) await this.#deps.servers.forget(server)
    await this.#checkouts.drop(id)
  }

  async rename(id: string, to: string): Promise<void> {
    for (const name of await this.#checkouts.servers(id))
      await this.#deps.servers.rename(`${id}.${name}`, `${to}.${name}`)
    await this.#checkouts.rename(id, to)
  }

  async busy(id: string): Promise<boolean> {
    return (await this.#serverIds(id)).some(server => this.#deps.sessions.busy(server))
  }

  /** Removes what interrupted changes left. */
  async sweep(): Promise<void> {
    const all = await this.#plugins()
    await this.#checkouts.sweep(new Map(all.map(({ id, config }) => [id, config])))
  }

  /** The folders of the plugins that are in force, for the programs and the skills of turns. */
  async folders(wanted?: readonly string[]): Promise<AgentFolder[]> {
    const found = await Promise.all((await this.#inForce(wanted)).map(async each => ({ ...each, ...(await each.at) })))
    return found.map(({ id, dir, seen }) => ({ id, dir, seen }))
  }

  /** The tool servers of the plugins that are in force, as connections of kind mcp. */
  async toolServers(wanted?: readonly string[]): Promise<OpenEntry[]> {
    const found = await this.#inForce(wanted)
    return (await Promise.all(found.map(({ id, config }) => this.serversOf(id, config)))).flat()
  }

  /** The tool servers of one plugin, as connections of kind mcp. */
  async serversOf(id: string, config: ShownConfig): Promise<OpenEntry[]> {
    const at = await this.#checkouts.folder(id, config)
    const { servers = [] } = (await this.#checkouts.contents(id, config)) ?? {}
    return servers.map(server => serverEntry(id, server, at))
  }

  async #inForce(wanted: readonly string[] | undefined) {
    const found = await Promise.all(
      (await this.#plugins()).map(async entry => {
        const { id, config } = entry
        if (wanted && !wanted.includes(id)) return []
        if (!(await this.#deps.entries().isAccepted(entry)) || !(await this.#checkouts.contents(id, config))) return []
        return [{ id, config, at: this.#checkouts.folder(id, config) }]
      }),
    )
    return found.flat()
  }

  async #plugins(): Promise<RecordedEntry[]> {
    return (await this.#deps.entries().all()).filter(({ kind }) => kind === this.kind)
  }

  async #serverIds(id: string): Promise<string[]> {
    return (await this.#checkouts.servers(id)).map(name => `${id}.${name}`)
  }
}

/** No connection has a point in its id, so the servers of a plugin are nobody else's. */
const serverEntry = (
  id: string,
  { name, command, env = {}, url, headers = {} }: PluginServer,
  at: PluginFolder,
): OpenEntry => {
  const { dir, seen } = at
  const filled = (value: string) => value.replaceAll(OWN_FOLDER, seen)
  const lines = (pairs: { readonly [name: string]: string }, sign: string) =>
    Object.entries(pairs)
      .map(([key, value]) => `${key}${sign}${filled(value)}`)
      .join('\n')
  const shown = seen === dir ? {} : { shown: [{ from: dir, to: seen }] }
  if (command === undefined)
    return { id: `${id}.${name}`, config: { url: url! }, secrets: { headers: lines(headers, ': ') } }
  const words = command.map(word => `"${filled(word).replace(/["\\]/g, '\\$&')}"`)
  const variables = { ...env, CLAUDE_PLUGIN_ROOT: seen }
  return {
    ...{ id: `${id}.${name}`, config: { transport: 'stdio', command: words.join(' ') } },
    ...{ secrets: { env: lines(variables, '=') }, ...shown },
  }
}
