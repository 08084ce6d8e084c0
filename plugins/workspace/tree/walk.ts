import { basename } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import {
  isReadable,
  openExisting,
  openPath,
  type OpenedPath,
  type PathTree,
  shownPath,
} from '../../../sdk/node/files/open-path.js'
import type { FolderPage, WorkspaceEntry, WorkspaceTree } from './contract.js'
import { IgnoreRules } from './ignore-rules.js'
import { foldersFirst, listedEntries, listedNames, listedNamesNow, type ListedEntry } from './listing.js'
import { openFolder } from './sweep.js'

/** The maximum number of entries of an answer. */
export const MOST_ENTRIES = 5_000
const MOST_MS = 3_000
/** After as many folders that did not fit, the others are left unopened unread. */
const MOST_MISSED = 100
const SLICE_MS = 5

/** A folder that is to be opened. */
interface Waiting {
  readonly entry: WorkspaceEntry
  /** Its real location. */
  readonly real: string
  /** The real locations of the folders around it. */
  readonly around: readonly string[]
}

interface Budget {
  left: number
  readonly until: number
}

const fits = ({ left, until }: Budget, count: number): boolean => count <= left && Date.now() < until

/** Whether any file is below an entry, or may be because it was not opened. */
const hasFile = ({ type, children }: WorkspaceEntry): boolean => type === 'file' || !children || children.some(hasFile)

const barrenIn = (entries: readonly WorkspaceEntry[]): string[] =>
  entries.flatMap(entry => {
    if (!entry.children) return []
    return hasFile(entry) ? barrenIn(entry.children) : [entry.path]
  })

/** Opens folders breadth first while they fit; a folder is listed completely or not at all. */
const openAll = async (
  tree: PathTree,
  rules: IgnoreRules,
  first: readonly Waiting[],
  budget: Budget,
  { depth = Infinity, ignored = false }: { depth?: number; ignored?: boolean } = {},
): Promise<void> => {
  let level = first
  let missed = 0
  let began = performance.now()
  for (let at = 0; at < depth && level.length > 0; at++) {
    const next: Waiting[] = []
    for (const { entry, real, around } of level) {
      if (!fits(budget, 1) || missed === MOST_MISSED) return
      if (performance.now() - began > SLICE_MS) {
        await new Promise<void>(resolve => setImmediate(resolve))
        began = performance.now()
      }
      using folder = isReadable(tree, real, { lists: true }) ? openFolder(tree.root, real) : undefined
      if (!folder) continue
      const opened = { at: folder.at, path: real }
      const names = listedNamesNow(tree, opened)
      if (!fits(budget, names.length)) {
        missed += 1
        continue
      }
      const found = await listedEntries({ tree, opened, named: entry.path, scope: rules.in(real) }, foldersFirst(names))
      entry.children = found.map(each => each.entry)
      budget.left -= found.length
      next.push(...waitingIn(found, [...around, real], ignored))
    }
    level = next
  }
}

const waitingIn = (found: readonly ListedEntry[], around: readonly string[], ignored: boolean): Waiting[] =>
  found.flatMap(({ entry, opens }) =>
    opens === undefined || around.includes(opens) || (entry.ignored && !ignored)
      ? []
      : [{ entry, real: opens, around }],
  )

const CLOSED_ROOT = 'the workspace folder is gone: bring it back, or start the daemon on another one'

/** The tree of a workspace or a private copy, within its budget. */
export const treeOf = async (tree: PathTree): Promise<Pick<WorkspaceTree, 'root' | 'tree' | 'hidden' | 'barren'>> => {
  const rules = new IgnoreRules(tree.root)
  const budget = { left: MOST_ENTRIES, until: Date.now() + MOST_MS }
  const names = await (async () => {
    await using opened = (await rootOf(tree)) ?? refuse('conflict', CLOSED_ROOT)
    const all = foldersFirst(await listedNames(tree, opened))
    return {
      all,
      found: await listedEntries({ tree, opened, named: '.', scope: rules.in('.') }, all.slice(0, MOST_ENTRIES)),
    }
  })()
  const { all, found } = names
  budget.left -= found.length
  await openAll(tree, rules, waitingIn(found, ['.'], false), budget)
  const entries = found.map(({ entry }) => entry)
  return {
    root: basename(tree.root),
    tree: entries,
    hidden: Math.max(0, all.length - MOST_ENTRIES),
    barren: barrenIn(entries),
  }
}

/** Every caller may open the root; each of its names is checked separately. */
const rootOf = (tree: PathTree): Promise<OpenedPath | undefined> => openPath({ ...tree, reach: undefined }, '.')

/** Opens a folder that a reach shows, or that leads down to what it shows. */
const openListed = async (tree: PathTree, path: string): Promise<OpenedPath> => {
  if (path === '.') return (await rootOf(tree)) ?? refuse('conflict', CLOSED_ROOT)
  return openExisting(tree, path, { lists: true })
}

/** One page of a folder, with the folders in it to a depth. */
export const childrenOf = async (
  tree: PathTree,
  path: string,
  { depth = 1, after }: { depth?: number; after?: string },
): Promise<FolderPage> => {
  if (after !== undefined && depth > 1)
    refuse('invalid', `after: expected it with depth 1, found depth ${depth}`, {
      errors: [{ path: 'after', expected: 'depth 1' }],
    })
  const named = path === '' ? '.' : path.replace(/\/$/, '')
  await using opened = await openListed(tree, named)
  if (!opened.stats.isDirectory()) refuse('unprocessable', `expected a folder, found the file ${shownPath(path)}`)
  const rules = new IgnoreRules(tree.root)
  const all = (await listedNames(tree, opened)).filter(({ name }) => after === undefined || name > after)
  const page = all.slice(0, MOST_ENTRIES)
  const found = await listedEntries({ tree, opened, named, scope: rules.in(opened.path) }, page)
  const budget = { left: MOST_ENTRIES - found.length, until: Date.now() + MOST_MS }
  const around = [...foldersAround(opened.path), opened.path]
  await openAll(tree, rules, waitingIn(found, around, true), budget, { depth: depth - 1, ignored: true })
  return { entries: found.map(({ entry }) => entry), hidden: all.length - page.length }
}

const foldersAround = (path: string): string[] => [
  '.',
  ...path
    .split('/')
    .map((_, at, parts) => parts.slice(0, at).join('/'))
    .filter(Boolean),
]
