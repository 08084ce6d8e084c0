import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  accessTo,
  allows,
  pathOfRepo,
  Refusal,
  refuse,
  type Context,
  type Handlers,
  type Host,
} from '../../sdk/index.js'
import { refuseReading } from '../../sdk/node/access/access-view.js'
import { reachFor } from '../../sdk/node/access/asked-reach.js'
import { Semaphore } from '../../sdk/node/concurrency/semaphore.js'
import type { PathTree } from '../../sdk/node/files/open-path.js'
import { record } from '../../sdk/node/record/record.js'
import { repoFolder } from '../../sdk/node/repositories/repo-folder.js'
import type { ChoreBook } from './chore-book.js'
import type { ChoreLane } from './chore-lane.js'
import type { ChoreConclusion, ChoresCalls, RepositoryChores } from './contract.js'
import { signalsOf } from './signals.js'

const AHEAD_MS = 5 * 60_000
const READ_AT_ONCE = 4

/** Dependencies of the calls. */
export interface ChoresDeps {
  readonly host: Host
  readonly book: ChoreBook
  readonly lane: ChoreLane
  readonly publish: (repo: string) => void
}

const nameOf = (path: string): string => (path === '.' ? 'root' : path)

/** The ids of all repositories, that of the workspace itself first. */
export const allRepos = async (host: Pick<Host, 'call' | 'place'>, context?: Context): Promise<string[]> => {
  const { repos } = await host.call('GET /workspace/repos', undefined, context ? { as: context } : {})
  const own = await lstat(join(host.place.workspace, '.git')).catch(() => undefined)
  return [...(own ? ['root'] : []), ...repos]
}

/** Refuses a time that no clock shows yet. */
const assertNotAhead = ({ ranAt }: ChoreConclusion): void => {
  const ahead = ranAt - Date.now()
  if (ahead <= AHEAD_MS) return
  const expected = 'a time at most 5 minutes ahead'
  const value = `${ranAt}, which is ${Math.round(ahead / 60_000)} minutes ahead`
  refuse('invalid', `ranAt: expected ${expected}, found ${value}`, { errors: [{ path: 'ranAt', expected, value }] })
}

/** Serves the calls of the group. */
export const choresCalls = ({ host, book, lane, publish }: ChoresDeps): Handlers<ChoresCalls> => {
  const treeOf = async ({ caller }: Context): Promise<PathTree> => ({
    root: host.place.workspace,
    reach: await reachFor(host, caller),
    readsGit: false,
  })

  /** The id of a repository that a caller reaches whole. */
  const seenRepo = async (tree: PathTree, repo: string): Promise<string> => {
    const path = await repoFolder(tree, repo)
    if (accessTo(tree.reach, path) === undefined) refuse('not-found', `no repository is named ${repo.slice(0, 200)}`)
    return nameOf(path)
  }

  /** The same, where the caller may work. */
  const workRepo = async (repo: string, context: Context): Promise<string> => {
    const tree = await treeOf(context)
    const path = await repoFolder(tree, repo)
    if (!allows(tree.reach, path, 'work')) refuseReading(repo.slice(0, 200))
    return nameOf(path)
  }

  const choresOf = async (repos: readonly string[], context: Context): Promise<RepositoryChores[]> => {
    const { repos: found } = await host.call('GET /workspace/modules', undefined, { as: context })
    const modules = new Map(found.map(each => [each.repo, each.modules]))
    const slots = new Semaphore(READ_AT_ONCE)
    const each = async (repo: string): Promise<RepositoryChores[]> => {
      try {
        const signals = await signalsOf(host, repo, modules.get(repo) ?? [], context)
        return [{ repo, probes: book.resultsOf(repo), signals }]
      } catch (error) {
        // It was removed meanwhile.
        if (Refusal.from(error).reason === 'not-found') return []
        throw error
      }
    }
    return (await Promise.all(repos.map(repo => slots.run(() => each(repo))))).flat()
  }

  return {
    'GET /chores': async ({ repo }, context) => {
      const tree = await treeOf(context)
      const reached = async () =>
        (await allRepos(host, context)).filter(each => accessTo(tree.reach, pathOfRepo(each)) !== undefined)
      const repos = repo === undefined ? await reached() : [await seenRepo(tree, repo)]
      const isShown = (entry: { readonly repo: string }) => repos.includes(entry.repo)
      return {
        repos: await choresOf(repos, context),
        ledger: book.ledger.filter(isShown).toReversed(),
        running: lane.rows.filter(isShown),
        node: process.versions.node,
      }
    },

    'POST /chores/probe': async ({ repo, id }, context) => ({
      ok: true,
      position: await lane.ask({ repo: await workRepo(repo, context), id }),
    }),

    'POST /chores/probe/stop': async ({ repo, id }, context) => ({
      ok: true,
      stopped: await lane.stop({ repo: await workRepo(repo, context), id }),
    }),

    'POST /chores/ledger': async (conclusion, context) => {
      assertNotAhead(conclusion)
      const repo = await workRepo(conclusion.repo, context)
      const { chore, outcome } = conclusion
      if (await book.conclude({ ...conclusion, repo, by: context.caller.actor })) {
        const extra = { repo, chore, outcome }
        await record(host, { type: 'chore.concluded', audience: 'viewer', outcome: 'ok', extra }, context)
        publish(repo)
      }
      return { ok: true }
    },
  }
}
