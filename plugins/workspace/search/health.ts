import { join, posix } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { git } from '../../../sdk/node/programs/git.js'
import { repoFolder } from '../../../sdk/node/repositories/repo-folder.js'
import type { CallerTree } from '../../../sdk/node/access/caller-tree.js'
import type { CentralModule, Hotspot, RepositoryHealth } from './contract.js'
import type { IndexedRow } from './index/lookup.js'
import type { WorkspaceIndex } from './index/workspace-index.js'

const LIMIT = 20
const MOST_LIMIT = 200
const DAY_MS = 86_400_000
const UNITS: { readonly [unit: string]: number } = {
  h: 3_600_000,
  d: DAY_MS,
  w: 7 * DAY_MS,
  m: 30 * DAY_MS,
  y: 365 * DAY_MS,
}
const ROUNDS = 30
const DAMPING = 0.85
const GIT_MS = 60_000
const MOST_KEPT_BYTES = 8 * 1024 * 1024

/** How often a file was changed. */
interface Churn {
  commits: number
  adds: number
  dels: number
  latestMs: number
}

/** The moment that a caller names; undefined: from the beginning. */
const momentOf = (since: string | undefined): number | undefined => {
  if (since === undefined) return undefined
  const [, count, unit] = /^(\d{1,6})([hdwmy])$/.exec(since) ?? []
  if (unit !== undefined) return Date.now() - Number(count) * UNITS[unit]!
  if (/^\d{10,16}$/.test(since)) return Number(since)
  const parsed = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:?\d{2})?)?$/.test(since) ? Date.parse(since) : Number.NaN
  if (!Number.isNaN(parsed)) return parsed
  const expected = 'a span such as 90d (h, d, w, m or y), a day, a time or milliseconds'
  return refuse('invalid', `since: expected ${expected}, found ${JSON.stringify(since)}`, {
    errors: [{ path: 'since', expected, value: since }],
  })
}

/** Parses the stream of `git log --numstat -z`: without -z git quotes names with a backslash, a quote or a line end. */
class ChurnReader {
  readonly files = new Map<string, Churn>()
  #rest = ''
  #at = 0

  add(piece: Buffer): void {
    const lines = (this.#rest + piece.toString()).split('\0')
    this.#rest = lines.pop()!
    for (const line of lines) this.#line(line)
  }

  end(): Map<string, Churn> {
    this.#line(this.#rest)
    return this.files
  }

  #line(line: string): void {
    const time = /^commit (\d+)$/.exec(line)
    if (time) {
      this.#at = Number(time[1]) * 1000
      return
    }
    const [, adds, dels, path] = /^\n?(\d+|-)\t(\d+|-)\t(.+)$/s.exec(line) ?? []
    if (path === undefined) return
    const file = this.files.get(path) ?? { commits: 0, adds: 0, dels: 0, latestMs: 0 }
    this.files.set(path, file)
    file.commits += 1
    file.adds += Number(adds) || 0
    file.dels += Number(dels) || 0
    file.latestMs = Math.max(file.latestMs, this.#at)
  }
}

/** The cached histories of repositories, by HEAD; at most 8 MiB. */
const kept = new Map<string, { bytes: number; files: Map<string, Churn> }>()

const keep = (key: string, files: Map<string, Churn>): void => {
  const bytes = [...files.keys()].reduce((sum, path) => sum + 2 * path.length + 100, 0)
  if (bytes > MOST_KEPT_BYTES) return
  kept.set(key, { bytes, files })
  let all = [...kept.values()].reduce((sum, each) => sum + each.bytes, 0)
  for (const [oldest, each] of kept) {
    if (all <= MOST_KEPT_BYTES) break
    kept.delete(oldest)
    all -= each.bytes
  }
}

const churnOf = async (dir: string, since: number | undefined): Promise<Map<string, Churn>> => {
  const { code, text } = await git(dir, ['rev-parse', '--verify', '-q', 'HEAD^{commit}'], { ok: [0, 1, 128] })
  if (code !== 0) return new Map()
  const day = since === undefined ? undefined : Math.floor(since / 3_600_000) * 3_600_000
  const key = `${dir} ${text.trim()} ${day ?? ''}`
  const known = kept.get(key)
  if (known) return known.files
  const reader = new ChurnReader()
  await git(
    dir,
    [
      'log',
      '--numstat',
      '-z',
      '--no-renames',
      '--format=commit %ct',
      ...(since === undefined ? [] : [`--since=@${Math.floor(since / 1000)}`]),
      text.trim(),
      '--',
    ],
    { timeoutMs: GIT_MS, to: piece => reader.add(piece) },
  )
  const files = reader.end()
  keep(key, files)
  return files
}

const EXTENSIONS = [
  '',
  '.ts',
  '.tsx',
  '.js',
  '.jsx',
  '.mjs',
  '.py',
  '/index.ts',
  '/index.tsx',
  '/index.js',
  '/__init__.py',
]

/** The imports between files, as far as their text shows. */
const edgesOf = (rows: readonly IndexedRow[]): Map<string, string[]> => {
  const paths = new Set(rows.map(({ path }) => path))
  const find = (stem: string) => EXTENSIONS.map(end => posix.normalize(stem + end)).find(path => paths.has(path))
  const targetOf = (path: string, target: string): string | undefined => {
    const folder = posix.dirname(path)
    if (/^\.{1,2}\//.test(target) || target === '.') {
      const stem = posix.join(folder, target)
      return find(stem) ?? find(stem.replace(/\.[cm]?jsx?$/, ''))
    }
    if (path.endsWith('.py')) {
      const dots = /^\.*/.exec(target)![0].length
      const name = target.slice(dots).replaceAll('.', '/')
      const above = dots === 0 ? [folder, '.'] : [posix.join(folder, '../'.repeat(dots - 1) || '.')]
      return above.map(base => find(posix.join(base, name))).find(Boolean)
    }
    return find(posix.join(folder, target))
  }
  return new Map(
    rows.map(({ path, imports }) => [
      path,
      [...new Set(imports.flatMap(target => targetOf(path, target) ?? []))].filter(other => other !== path),
    ]),
  )
}

/** How much of the repository leads to each file by imports (PageRank). */
const ranksOf = (edges: ReadonlyMap<string, readonly string[]>): Map<string, number> => {
  const count = edges.size
  let ranks = new Map([...edges.keys()].map(path => [path, 1 / count]))
  for (let round = 0; round < ROUNDS; round++) {
    const next = new Map([...edges.keys()].map(path => [path, (1 - DAMPING) / count]))
    let lost = 0
    for (const [path, targets] of edges) {
      const share = (DAMPING * ranks.get(path)!) / Math.max(1, targets.length)
      if (targets.length === 0) lost += share
      for (const target of targets) next.set(target, next.get(target)! + share)
    }
    for (const [path, rank] of next) next.set(path, rank + lost / count)
    ranks = next
  }
  return ranks
}

const relativeIn = (repo: string, path: string): string => (repo === '.' ? path : path.slice(repo.length + 1))

/** The files of a repository that change often and are complex, and those that most others import. */
export const healthOf = async (
  tree: CallerTree,
  index: WorkspaceIndex,
  { repo, since, limit = LIMIT }: { repo: string; since?: string; limit?: number },
): Promise<RepositoryHealth> => {
  const from = momentOf(since)
  const folder = await repoFolder(tree, repo)
  const scope = { dir: folder, patterns: { include: [], exclude: [] }, reach: tree.reach }
  const [{ value: rows, freshness }, churn] = await Promise.all([
    index.ask('rows', { scope }),
    churnOf(join(tree.root, folder), from),
  ])
  const hotspots = rows
    .flatMap(({ path, branches }): Hotspot[] => {
      const found = churn.get(relativeIn(folder, path))
      return found && branches > 0 ? [{ path, ...found, complexity: branches, score: found.commits * branches }] : []
    })
    .sort((one, other) => other.score - one.score || (one.path < other.path ? -1 : 1))
  const edges = edgesOf(rows)
  const imported = new Set([...edges.values()].flat())
  const ranks = ranksOf(edges)
  const modules = rows
    .filter(({ path }) => imported.has(path))
    .sort((one, other) => ranks.get(other.path)! - ranks.get(one.path)! || (one.path < other.path ? -1 : 1))
    .map(({ path, exports }): CentralModule => ({ path, exports }))
  const most = Math.min(limit, MOST_LIMIT)
  const sum = (of: (row: IndexedRow) => number) => rows.reduce((all, row) => all + of(row), 0)
  return {
    repo,
    totals: {
      files: rows.length,
      symbols: sum(({ symbols }) => symbols),
      complexity: sum(({ branches }) => branches),
      hotspots: hotspots.length,
    },
    hotspots: hotspots.slice(0, most),
    modules: modules.slice(0, most),
    freshness,
  }
}
