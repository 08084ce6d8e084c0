import { stat } from 'node:fs/promises'
import { Refusal, type Host } from '../../../sdk/index.js'
import { readPlain } from '../../../sdk/node/files/files.js'
import { inside } from '../../../sdk/node/files/paths.js'
import type { Recommendation } from '../records/contract.js'

const LISTS = ['.mcp.json', '.vscode/mcp.json', '.cursor/mcp.json']
/** The names that Docker looks for, in its order. */
const COMPOSE = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml']
const MOST_SERVERS = 20
const MOST_BYTES = 256 * 1024
const MOST_REPOSITORIES = 200

const CLOUD: { readonly [host: string]: readonly [card: string, prefill: { [field: string]: string }] } = {
  'github.com': ['github', {}],
  'gitlab.com': ['gitlab', {}],
  'codeberg.org': ['forgejo', { url: 'https://codeberg.org' }],
}
const NAMED: readonly (readonly [name: RegExp, card: string, field: 'host' | 'url'])[] = [
  [/^github\./, 'github', 'host'],
  [/^gitlab\./, 'gitlab', 'host'],
  [/^forgejo\./, 'forgejo', 'url'],
  [/^gitea\./, 'gitea', 'url'],
]

type Evident = Pick<Host, 'call' | 'serves' | 'place'>

/** What the remotes of repositories, lists of tool servers and compose files in the workspace suggest connecting. */
export const evidenceIn = async (host: Evident): Promise<Recommendation[]> => {
  const { workspace } = host.place
  const repos = await otherRepos(host)
  return [
    ...(await ofRemotes(host, repos)),
    ...(await ofServerLists(workspace)),
    ...(await ofCompose(workspace, repos)),
  ]
}

interface OtherRepo {
  readonly repo: string
  readonly host?: string
}

const otherRepos = async (host: Evident): Promise<readonly OtherRepo[] | undefined> =>
  (await host.serves('GET /git/remote-repos'))
    ? (await host.call('GET /git/remote-repos')).repos.slice(0, MOST_REPOSITORIES)
    : undefined

/** One suggestion for each repository with a compose file: the file that Docker would take. */
const ofCompose = async (workspace: string, repos: readonly OtherRepo[] = []): Promise<Recommendation[]> => {
  const found: Recommendation[] = []
  for (const folder of ['', ...repos.map(({ repo }) => `${repo}/`)]) {
    const names = await Promise.all(COMPOSE.map(name => isFileIn(workspace, folder + name)))
    const evidence = COMPOSE.map(name => folder + name).find((_, at) => names[at])
    if (evidence === undefined) continue
    const reason = `${evidence} describes containers: with an engine agents start them, each conversation its own`
    found.push({ card: 'docker', evidence, reason, prefill: {} })
  }
  return found
}

const isFileIn = async (workspace: string, path: string): Promise<boolean> => {
  const at = await inside(workspace, path).catch(error => {
    if (error instanceof Refusal) return undefined
    throw error
  })
  return at !== undefined && ((await stat(at).catch(() => undefined))?.isFile() ?? false)
}

const ofRemotes = async (host: Evident, repos: readonly OtherRepo[] | undefined): Promise<Recommendation[]> => {
  if (!repos) return []
  const root = await host.call('GET /git/{repo}/remotes', { repo: 'root' }).catch(error => {
    // The workspace itself need not be a repository.
    if (error instanceof Refusal) return { remotes: [] }
    throw error
  })
  const found = new Map<string, Recommendation>()
  const add = (repo: string, name: string | undefined) => {
    const [card, prefill] = (name !== undefined && cardFor(name)) || []
    if (name === undefined || card === undefined || found.has(name)) return
    found.set(name, {
      card,
      evidence: `remote of ${repo}: ${name}`,
      reason: `${repo} has its remote at ${name}: with a token agents read its issues, changes and pipelines`,
      prefill: { ...prefill },
    })
  }
  for (const { host: name } of root.remotes) add('root', name)
  for (const { repo, host: name } of repos) add(repo, name)
  return [...found.values()]
}

const cardFor = (name: string): readonly [card: string, prefill: { [field: string]: string }] | undefined => {
  if (Object.hasOwn(CLOUD, name)) return CLOUD[name]
  const [, card, field] = NAMED.find(([pattern]) => pattern.test(name)) ?? []
  if (card === undefined || field === undefined) return undefined
  return [card, { [field]: field === 'url' ? `https://${name}` : name }]
}

const ofServerLists = async (workspace: string): Promise<Recommendation[]> => {
  const found: Recommendation[] = []
  for (const list of LISTS) {
    const path = await inside(workspace, list).catch(error => {
      if (error instanceof Refusal) return undefined
      throw error
    })
    const text = path === undefined ? undefined : readPlain(path, MOST_BYTES)
    for (const [name, server] of text === undefined ? [] : serversIn(text)) {
      const prefill = prefillOf(server)
      if (!prefill) continue
      const shown = JSON.stringify(name.slice(0, 60))
      found.push({ card: 'mcp', evidence: list, reason: `${list} lists the tool server ${shown}`, prefill })
    }
  }
  return found.slice(0, MOST_SERVERS)
}

const serversIn = (text: string): [name: string, server: { readonly [field: string]: unknown }][] => {
  try {
    const { mcpServers, servers } = JSON.parse(text) as { [field: string]: unknown }
    return Object.entries((mcpServers ?? servers ?? {}) as object).filter(
      ([, server]) => typeof server === 'object' && server !== null,
    )
  } catch {
    return []
  }
}

/** The fields of a server that hold no secret: its variables and headers are for a person to type. */
const prefillOf = ({
  url,
  command,
  args,
}: {
  readonly [field: string]: unknown
}): { [field: string]: string } | undefined => {
  if (typeof url === 'string' && /^https?:\/\//.test(url) && url.length <= 2000) return { transport: 'http', url }
  if (typeof command !== 'string' || command === '' || command.length > 1000) return undefined
  const words = Array.isArray(args) ? args.filter(each => typeof each === 'string').join('\n') : ''
  const fits = words !== '' && words.length <= 10_000
  return { transport: 'stdio', command, ...(fits && { args: words }) }
}
