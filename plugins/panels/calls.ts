import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { accessTo, refuse, type Caller, type Context, type Handlers, type Host } from '../../sdk/index.js'
import { reachFor } from '../../sdk/node/access/asked-reach.js'
import type { PathTree } from '../../sdk/node/files/open-path.js'
import { repoFolder } from '../../sdk/node/repositories/repo-folder.js'
import type { PanelsCalls } from './contract.js'
import type { Panels } from './panels.js'

const MOST_WAITS = 20
const WAIT_MS = 30_000

/** What waits belong to. */
const waiterOf = ({ kind, actor, tokenId, email }: Caller): string => `${kind} ${tokenId ?? email ?? actor}`

/** Serves the calls of the group. */
export const panelsCalls = (host: Host, panels: Panels): Handlers<PanelsCalls> => {
  const waits = new Map<string, number>()

  const treeOf = async ({ caller }: Context): Promise<PathTree> => ({
    root: host.place.workspace,
    reach: await reachFor(host, caller),
    readsGit: false,
  })

  /** The paths of the repositories that a caller sees; `.` is the workspace's own. */
  const reposOf = async (tree: PathTree, context: Context): Promise<string[]> => {
    const { repos } = (await host.serves('GET /workspace/repos'))
      ? await host.call('GET /workspace/repos', undefined, { as: context })
      : { repos: [] }
    const own = accessTo(tree.reach, '.') !== undefined && (await lstat(join(tree.root, '.git')).catch(() => undefined))
    return [...(own ? ['.'] : []), ...repos.filter(path => accessTo(tree.reach, path) !== undefined)]
  }

  const waiting = async <T>(caller: Caller, work: () => Promise<T>): Promise<T> => {
    const key = waiterOf(caller)
    const now = waits.get(key) ?? 0
    if (now >= MOST_WAITS) refuse('too-many', `expected at most ${MOST_WAITS} waits of one caller, found as many`)
    waits.set(key, now + 1)
    try {
      return await work()
    } finally {
      const rest = waits.get(key)! - 1
      if (rest > 0) waits.set(key, rest)
      else waits.delete(key)
    }
  }

  return {
    'GET /panels': async (_, context) => {
      const tree = await treeOf(context)
      const repos = await reposOf(tree, context)
      const seen = await panels.see()
      return { panels: await Promise.all(repos.map(path => panels.panelAt(tree, path, repos, seen))) }
    },
    'GET /panels/{repo}': async ({ repo, wait, waitMs = WAIT_MS }, context) => {
      const tree = await treeOf(context)
      const path = await repoFolder(tree, repo)
      if (accessTo(tree.reach, path) === undefined) refuse('not-found', `no repository is named ${repo.slice(0, 200)}`)
      const repos = await reposOf(tree, context)
      const live = async () => panels.liveAt(path, repos, await panels.see())
      if (wait !== undefined) await waiting(context.caller, () => panels.wait(live, wait, waitMs, context.signal))
      return panels.panelAt(tree, path, repos, await panels.see())
    },
    'POST /panels/{repo}/start': async ({ repo, restart = false }, context) => {
      const tree = await treeOf(context)
      return panels.start(tree, await repoFolder(tree, repo), restart, context)
    },
    'POST /panels/{repo}/stop': async ({ repo }, context) => {
      const tree = await treeOf(context)
      await panels.stop(await repoFolder(tree, repo), context)
      return { ok: true }
    },
  }
}
