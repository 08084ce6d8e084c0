import type { Host } from '../../../sdk/index.js'
import { accessToConversation } from '../../../sdk/node/access/conversation-reach.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import type { Origins } from '../../agents/contract.js'
import type { OpenRepo } from '../repositories/repositories.js'
import type { OriginAgents } from './contract.js'

/** A commit that changed a path, and when it was made, in seconds. */
export interface PathCommit {
  readonly sha: string
  readonly at: number
}

/** A commit, and whose landed work it holds. */
interface Origin {
  readonly sha: string
  readonly ids: string[]
}

const MOST_COMMITS = 2_000
const MOST_PATHS = 1_000

/** Which conversations landed what of a repository. */
export class LandedBy {
  readonly #host: Pick<Host, 'call' | 'serves'>

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** The landings of a repository that a caller may know of; undefined: there are none. */
  async landings(repo: string, view: AccessView): Promise<Origins | undefined> {
    if (!(await this.#host.serves('agents.origins'))) return undefined
    const { paths, agents } = await this.#host.call('agents.origins', { repo })
    const found = await Promise.all(
      Object.entries(agents).map(async ([id, agent]) =>
        (await accessToConversation(view, agent)) === undefined ? [] : [[id, agent] as const],
      ),
    )
    const visible = Object.fromEntries(found.flat())
    return Object.keys(visible).length === 0 ? undefined : { paths, agents: visible }
  }

  /** Which conversations landed some uncommitted paths since these were last committed, the newest first. */
  async uncommitted(
    opened: OpenRepo,
    paths: readonly string[],
  ): Promise<{ origins: { [path: string]: string[] }; agents: OriginAgents } | undefined> {
    const known = await this.landings(opened.repo, opened.view)
    const asked = known ? paths.filter(path => Object.hasOwn(known.paths, path)) : []
    if (!known || asked.length === 0) return undefined
    const commits = await commitsOf(opened, asked, oldest(known, asked))
    const agents: OriginAgents = {}
    const origins: { [path: string]: string[] } = {}
    for (const path of asked) {
      const last = commits.get(path)?.[0]?.at ?? -Infinity
      const ids = known.paths[path]!.flatMap(({ conversationId, at }) =>
        Object.hasOwn(known.agents, conversationId) && secondsOf(at) >= last ? [conversationId] : [],
      )
      if (ids.length === 0) continue
      origins[path] = ids
      for (const id of ids) agents[id] = agentOf(known.agents[id]!)
    }
    return Object.keys(origins).length === 0 ? undefined : { origins, agents }
  }

  /** Which conversations' work the commits of a branch hold: for each path the newest landing before a commit of it. */
  async byCommits(opened: OpenRepo, shas: readonly string[]): Promise<{ origins: Origin[]; agents: OriginAgents }> {
    const none = { origins: [], agents: {} }
    const known = await this.landings(opened.repo, opened.view)
    const asked = known ? Object.keys(known.paths).slice(-MOST_PATHS) : []
    if (!known || asked.length === 0 || shas.length === 0) return none
    const commits = await commitsOf(opened, asked, oldest(known, asked))
    const found = new Map<string, Set<string>>()
    for (const path of asked)
      for (const { conversationId, at } of known.paths[path]!) {
        const sha = commits.get(path)?.findLast(commit => commit.at >= secondsOf(at))?.sha
        if (sha === undefined || !Object.hasOwn(known.agents, conversationId)) continue
        found.set(sha, (found.get(sha) ?? new Set()).add(conversationId))
      }
    const origins = shas.flatMap(sha => (found.has(sha) ? [{ sha, ids: [...found.get(sha)!] }] : []))
    const ids = new Set(origins.flatMap(origin => origin.ids))
    return { origins, agents: Object.fromEntries([...ids].map(id => [id, agentOf(known.agents[id]!)])) }
  }

  /**
   * Which conversation's work a commit of a path holds: that of the newest landing before the first commit that
   * follows it. Without a commit, that of the newest landing since the last commit.
   */
  async byCommit(opened: OpenRepo, path: string): Promise<(sha: string | undefined) => string | undefined> {
    const known = await this.landings(opened.repo, opened.view)
    // A file may have the name of something that every object has.
    if (!known || !Object.hasOwn(known.paths, path)) return () => undefined
    const landings = known.paths[path]!.filter(({ conversationId }) => Object.hasOwn(known.agents, conversationId))
    if (landings.length === 0) return () => undefined
    const commits = (await commitsOf(opened, [path], oldest(known, [path]))).get(path) ?? []
    const found = new Map<string | undefined, string>()
    // The oldest first, so that the newest landing before a commit stays.
    for (const { conversationId, at } of landings.toReversed())
      found.set(commits.findLast(commit => commit.at >= secondsOf(at))?.sha, conversationId)
    return sha => found.get(sha)
  }
}

const agentOf = ({ title, provider, landedMessage }: Origins['agents'][string]): OriginAgents[string] => ({
  provider,
  ...(title !== undefined && { title }),
  ...(landedMessage && { landedMessage: { ...landedMessage } }),
})

/** Git counts whole seconds. */
const secondsOf = (ms: number): number => Math.floor(ms / 1000)

const oldest = ({ paths }: Origins, asked: readonly string[]): number =>
  Math.min(...asked.flatMap(path => paths[path]!.map(({ at }) => secondsOf(at))))

/** The commits since a moment that changed some paths, by path, the newest first. */
const commitsOf = async (
  { git }: OpenRepo,
  paths: readonly string[],
  since: number,
): Promise<Map<string, PathCommit[]>> => {
  const found = new Map<string, PathCommit[]>()
  const head = await git.read(['rev-parse', '--verify', '--quiet', 'HEAD'], { ok: [0, 1, 128] })
  if (!head.text.trim()) return found
  const { text } = await git.read([
    ...['log', '-z', '--format=%x01%H %ct', '--name-only', '--no-renames', '--no-mailmap'],
    ...[`--since=@${since}`, `--max-count=${MOST_COMMITS}`, 'HEAD', '--', ...paths],
  ])
  let commit: PathCommit | undefined
  for (const part of text.split('\0')) {
    // The names of a commit follow it, the first after a line end.
    const name = part.replace(/^\n/, '')
    const header = /^\x01([0-9a-f]{40,64}) (\d+)/.exec(name)
    if (header) commit = { sha: header[1]!, at: Number(header[2]) }
    else if (commit && name) {
      const known = found.get(name)
      if (known) known.push(commit)
      else found.set(name, [commit])
    }
  }
  return found
}
