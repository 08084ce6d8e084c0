import { copyFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { outputFields, nameOfBytes, bytePath, shownName } from '../../../sdk/node/byte-names.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { ConflictPath, ConflictReason, InTheWay } from '../../agent/contract.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import { leadsOut } from './link-target.js'
import { MainState } from './main-state.js'
import { keepMerged, mergeable, presentOf, threeWay, type Sides } from './three-way.js'
import { changesBetween, treeEntriesOf, same, type TreeChange, type TreeFile } from '../work/tree-diff.js'

/** One write in the person's working tree; without `after` the path is deleted. */
export interface Step {
  readonly path: string
  readonly stamp: string
  readonly before?: TreeFile
  readonly after?: TreeFile
  /** The file of the working tree whose form a new file keeps: the one that it replaces, or was renamed from. */
  readonly like?: string
}

/** A person's choice for a path: the agent's version, the workspace's, or skip it for now. */
export type Take = 'agent' | 'workspace' | 'skip'

/** A change that does not land, with the working tree's file and, if git could merge it, its sides. */
export interface Stuck {
  readonly change: TreeChange
  readonly reason: ConflictReason
  readonly inTheWay?: InTheWay
  readonly present?: TreeFile
  readonly sides?: Sides
}

/** The plan of a landing; `there` are changes that the tree already has. */
export interface Plan {
  readonly changes: readonly TreeChange[]
  readonly steps: readonly Step[]
  readonly blocked: readonly ConflictPath[]
  /** The blocked changes with their details. */
  readonly stuck: readonly Stuck[]
  readonly clean: number
  readonly there: ReadonlySet<string>
  /** The skipped changes. */
  readonly left: readonly TreeChange[]
  /** Files that get conflict markers. */
  readonly resolving: readonly string[]
  /** Changes of which the working tree has nothing. */
  readonly missing: ReadonlySet<string>
}

/** The work to land, and the target checkout. */
export interface PlanRequest {
  readonly repo: string
  /** The main checkout and the workspace around it, both real paths. */
  readonly main: string
  readonly workspace: string
  readonly head?: string
  /** The commits between which the work lies. */
  readonly from: string
  readonly to: string
  /** Also land content that HEAD has but the person removed in the working tree. */
  readonly cumulative: boolean
  /** A person's choice for a change; undefined: lands unless it has a conflict. */
  readonly choose?: (change: TreeChange) => Take | undefined
  /** Merge with conflict markers that name this branch, where only the main line changed. */
  readonly merge?: string
}

const NO_CHANGE: Plan = {
  changes: [],
  steps: [],
  blocked: [],
  stuck: [],
  clean: 0,
  there: new Set(),
  left: [],
  resolving: [],
  missing: new Set(),
}

type Writes = Map<string, TreeFile | undefined>
type Verdict =
  | { readonly kind: 'there' }
  | { readonly kind: 'clean'; readonly writes: Writes; readonly marked?: boolean }
  | { readonly kind: 'kept' }
  | { readonly kind: 'left' }
  | { readonly kind: 'blocked'; readonly reason: ConflictReason; readonly outside?: true }
  | { readonly kind: 'open' }

const LINK = '120000'
const THERE: Verdict = { kind: 'there' }
const IN_THE_WAY: Verdict = { kind: 'blocked', reason: 'workspace' }
const OUTSIDE: Verdict = { ...IN_THE_WAY, outside: true }

/** Treats a rename as a deleted and an added path. */
const sidesOf = ({ path, from, before, after }: TreeChange): { path: string; before?: TreeFile; after?: TreeFile }[] =>
  from === undefined
    ? [{ path, ...(before && { before }), ...(after && { after }) }]
    : [
        { path: from, ...(before && { before }) },
        { path, ...(after && { after }) },
      ]

/** Plans every change against the person's working tree, without writing there. */
export const planLanding = async (scratch: ScratchRepo, request: PlanRequest): Promise<Plan> => {
  const { repo, main, head, from, to } = request
  const changes = await changesBetween(scratch, repo, from, to)
  if (changes.length === 0) return NO_CHANGE
  const state = await MainState.read(scratch, main, head, from, changes)
  const verdicts = new Map<TreeChange, Verdict>(changes.map(change => [change, judge(change, state, request)]))
  await tryPatches(scratch, request, verdicts)
  if (request.choose) takeChoices(request.choose, verdicts)
  await blockLinks(scratch, request, verdicts)
  await blockObstructed(request, state, verdicts)
  for (const [change, verdict] of verdicts) {
    if (verdict.kind === 'open')
      verdicts.set(change, { kind: 'blocked', reason: await reasonOf(scratch, request, state, change) })
  }
  if (request.merge !== undefined) await mergeBlocked(scratch, request.merge, state, verdicts)
  return resultOf(changes, verdicts, state)
}

/** Replaces verdicts by a person's choices, except for changes that the tree already has. */
const takeChoices = (choose: (change: TreeChange) => Take | undefined, verdicts: Map<TreeChange, Verdict>): void => {
  for (const [change, { kind }] of verdicts) {
    const take = kind === 'there' ? undefined : choose(change)
    if (take === 'workspace') verdicts.set(change, { kind: 'kept' })
    if (take === 'skip') verdicts.set(change, { kind: 'left' })
    if (take === 'agent')
      verdicts.set(change, { kind: 'clean', writes: new Map(sidesOf(change).map(({ path, after }) => [path, after])) })
  }
}

/** Merges the changes that only the main line blocks: all blocked changes, or none. */
const mergeBlocked = async (
  scratch: ScratchRepo,
  branch: string,
  state: MainState,
  verdicts: Map<TreeChange, Verdict>,
): Promise<void> => {
  const blocked = [...verdicts].flatMap(([change, verdict]) =>
    verdict.kind === 'blocked' ? [{ change, verdict }] : [],
  )
  if (blocked.some(({ change, verdict: { reason } }) => reason !== 'diverged' || !mergeable(state, change))) return
  const merged = new Map<TreeChange, Verdict>()
  for (const { change } of blocked) {
    const sides = mergeable(state, change)!
    const result = await threeWay(scratch, sides, branch)
    if (!result) return
    const writes: Writes = new Map(change.from === undefined ? [] : [[change.from, undefined]])
    writes.set(change.path, await keepMerged(scratch, sides, result))
    merged.set(change, { kind: 'clean', writes, marked: result.hunks > 0 })
  }
  for (const [change, verdict] of merged) verdicts.set(change, verdict)
}

/** The verdict from content alone: there, clean if the tree has the agent's base version, otherwise open. */
const judge = (change: TreeChange, state: MainState, { cumulative }: PlanRequest): Verdict => {
  const writes: Writes = new Map()
  for (const { path, before, after } of sidesOf(change)) {
    const present = state.present(path)
    if (same(present, after)) continue
    if (!cumulative && same(state.committed(path), after)) continue
    if (!same(present, before)) return { kind: 'open' }
    // A deletion of what is not checked out would not show in the working tree.
    if (!after && state.isLeftOut(path)) return IN_THE_WAY
    writes.set(path, after)
  }
  return writes.size === 0 ? THERE : { kind: 'clean', writes }
}

/** Whether git can apply a change line by line. */
const patchable = ({ binary, status }: TreeChange): boolean => !binary && status !== 'type-changed'

const PATCH = ['diff-tree', '-r', '-p', '--binary', '--full-index', '-M', '-l1000']

const patchOf = async (scratch: ScratchRepo, { from, to }: PlanRequest, change: TreeChange): Promise<Buffer> => {
  const paths = change.from === undefined ? [change.path] : [change.from, change.path]
  if (paths.every(path => path.isWellFormed())) return (await scratch.git([...PATCH, from, to, '--', ...paths])).stdout
  // The arguments of a program are text, so git compares trees that hold nothing else.
  const sides = sidesOf(change)
  const before = await treeOf(scratch, new Map(sides.map(side => [side.path, side.before])))
  const after = await treeOf(scratch, new Map(sides.map(side => [side.path, side.after])))
  return (await scratch.git([...PATCH, before, after])).stdout
}

/** A tree of these files alone. */
const treeOf = async (scratch: ScratchRepo, files: ReadonlyMap<string, TreeFile | undefined>): Promise<string> => {
  const index = 'some'
  const input = [...files].map(([path, file]) => (file ? `${file.mode} ${file.id}\t${path}\0` : '')).join('')
  await scratch.git(['read-tree', '--empty'], { index })
  await scratch.git(['update-index', '--add', '-z', '--index-info'], { index, input })
  return (await scratch.git(['write-tree'], { index })).text.trim()
}

const applies = async (scratch: ScratchRepo, index: string, patch: Uint8Array, ...flags: string[]): Promise<boolean> =>
  (
    await scratch.git(['apply', '--cached', '--whitespace=nowarn', ...flags, '-'], {
      index,
      input: patch,
      ok: [0, 1, 128],
    })
  ).code === 0

/** Tries open changes as patches: all at once, then each alone, forwards and in reverse. */
const tryPatches = async (
  scratch: ScratchRepo,
  request: PlanRequest,
  verdicts: Map<TreeChange, Verdict>,
): Promise<void> => {
  const open = [...verdicts]
    .filter(([change, verdict]) => verdict.kind === 'open' && patchable(change))
    .map(([change]) => change)
  if (open.length === 0) return
  await copyFile(scratch.index('main'), scratch.index('result'))
  const patches: Buffer[] = []
  for (const change of open) patches.push(await patchOf(scratch, request, change))
  const carried = new Set<TreeChange>()
  if (await applies(scratch, 'result', Buffer.concat(patches))) open.forEach(change => carried.add(change))
  else {
    for (const [at, change] of open.entries()) {
      if (await applies(scratch, 'result', patches[at]!)) carried.add(change)
      else if (await applies(scratch, 'result', patches[at]!, '--check', '-R')) verdicts.set(change, THERE)
    }
  }
  const wanted = new Set([...carried].flatMap(({ path, from }) => (from === undefined ? [path] : [path, from])))
  const entries = await treeEntriesOf(scratch, 'result', wanted)
  for (const change of carried) {
    verdicts.set(change, {
      kind: 'clean',
      writes: new Map(sidesOf(change).map(({ path }) => [path, entries.get(path)])),
    })
  }
}

/** Blocks links that would lead out of the workspace. */
const blockLinks = async (
  scratch: ScratchRepo,
  { main, workspace }: PlanRequest,
  verdicts: Map<TreeChange, Verdict>,
): Promise<void> => {
  const planned: { [path: string]: string } = {}
  const links: { change: TreeChange; path: string; target: string }[] = []
  for (const [change, verdict] of verdicts) {
    if (verdict.kind !== 'clean') continue
    for (const [path, after] of verdict.writes) {
      if (after?.mode !== LINK) continue
      const target = nameOfBytes((await scratch.git(['cat-file', 'blob', after.id])).stdout)
      planned[join(main, path)] = target
      links.push({ change, path, target })
    }
  }
  for (const { change, path, target } of links) {
    if (await leadsOut(workspace, join(main, path), target, planned)) verdicts.set(change, OUTSIDE)
  }
}

const filesBelow = async (folder: string, prefix: string): Promise<string[]> => {
  const how = { withFileTypes: true, encoding: 'buffer' } as const
  const entries = await readdir(bytePath(folder), how).catch(error => {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  })
  const nested = await Promise.all(
    entries.map(entry => {
      const name = nameOfBytes(entry.name)
      return entry.isDirectory() ? filesBelow(join(folder, name), `${prefix}${name}/`) : [`${prefix}${name}`]
    }),
  )
  return nested.flat()
}

/** Blocks changes with an obstacle in the tree, unless this landing removes it. */
const blockObstructed = async (
  request: PlanRequest,
  state: MainState,
  verdicts: Map<TreeChange, Verdict>,
): Promise<void> => {
  for (let blocked = true; blocked;) {
    blocked = false
    const going = new Set(
      [...verdicts.values()].flatMap(verdict =>
        verdict.kind === 'clean' ? [...verdict.writes].filter(([, after]) => !after).map(([path]) => path) : [],
      ),
    )
    for (const [change, verdict] of verdicts) {
      if (verdict.kind !== 'clean') continue
      for (const [path, after] of verdict.writes) {
        if (!after || !(await obstructed(request, state, path, going))) continue
        verdicts.set(change, { kind: 'open' })
        blocked = true
        break
      }
    }
  }
}

const obstructed = async (
  { main }: PlanRequest,
  state: MainState,
  path: string,
  going: ReadonlySet<string>,
): Promise<boolean> => {
  const obstacle = state.obstacle(path)
  if (obstacle) return !going.has(obstacle.at)
  if (state.kind(path) === 'special') return true
  if (state.kind(path) !== 'folder') return false
  const below = await filesBelow(join(main, path), `${path}/`)
  return below.length === 0 ? false : below.some(file => !going.has(file))
}

/** Why an open change does not land: whether it would apply without the person's uncommitted changes. */
const reasonOf = async (
  scratch: ScratchRepo,
  request: PlanRequest,
  state: MainState,
  change: TreeChange,
): Promise<ConflictReason> => {
  const sides = sidesOf(change)
  if (sides.some(({ path }) => ['link', 'repository', 'closed'].includes(state.obstacle(path)?.what ?? '')))
    return 'workspace'
  const uncommitted = sides.some(({ path }) => {
    if (!same(state.present(path), state.committed(path)) || state.obstacle(path) !== undefined) return true
    return ['folder', 'special'].includes(state.kind(path))
  })
  if (uncommitted) {
    const committed = sides.every(({ path, before, after }) =>
      [before, after].some(entry => same(state.committed(path), entry)),
    )
    if (
      committed
      && !(await committedInTheWay(
        scratch,
        sides.map(({ path }) => path),
        state,
      ))
    )
      return 'workspace'
    const carried =
      !committed
      && patchable(change)
      && (await applies(scratch, 'head', await patchOf(scratch, request, change), '--check'))
    if (carried) return 'workspace'
  }
  return change.binary ? 'binary' : 'diverged'
}

/** Whether HEAD has a file where a folder is needed, or the reverse. */
const committedInTheWay = async (
  scratch: ScratchRepo,
  paths: readonly string[],
  state: MainState,
): Promise<boolean> => {
  for (const path of paths) {
    const above = state.obstacle(path)?.at
    const asked = above ?? (state.kind(path) === 'folder' ? path : undefined)
    if (asked === undefined) continue
    const some = asked.isWellFormed() ? ['--', asked] : []
    const found = outputFields(await scratch.git(['ls-files', '-z', ...some], { index: 'head' }))
    if (found.some(each => each === asked || each.startsWith(`${asked}/`))) return true
  }
  return false
}

const resultOf = (
  changes: readonly TreeChange[],
  verdicts: ReadonlyMap<TreeChange, Verdict>,
  state: MainState,
): Plan => {
  const steps: Step[] = []
  const stuck: Stuck[] = []
  const there = new Set<string>()
  const left: TreeChange[] = []
  const resolving: string[] = []
  const missing = new Set<string>()
  let clean = 0
  for (const [change, verdict] of verdicts) {
    const { path } = change
    if (verdict.kind === 'there') there.add(path)
    if (verdict.kind === 'left') left.push(change)
    if (verdict.kind === 'blocked') {
      const [present, sides] = [presentOf(state, change), mergeable(state, change)]
      const inTheWay = verdict.outside ? { path, what: 'outside' as const } : inTheWayOf(state, change)
      stuck.push({
        ...{ change, reason: verdict.reason },
        ...(inTheWay && { inTheWay }),
        ...(present && { present }),
        ...(sides && { sides }),
      })
      if (change.after && !present) missing.add(path)
    }
    if (verdict.kind !== 'clean') continue
    clean++
    missing.add(path)
    if (verdict.marked) resolving.push(path)
    for (const [target, after] of verdict.writes) {
      const before = state.present(target)
      if (same(before, after)) continue
      const like = [target, ...(target === path && change.from !== undefined ? [change.from] : [])].find(
        each => state.kind(each) === 'file',
      )
      steps.push({
        path: target,
        stamp: state.stamp(target),
        ...(before && { before }),
        ...(after && { after, ...(like !== undefined && { like }) }),
      })
    }
  }
  const blocked = stuck.map(({ change: { path }, reason, inTheWay }) => ({
    ...{ path: shownName(path), reason },
    ...(inTheWay && { inTheWay: { ...inTheWay, path: shownName(inTheWay.path) } }),
  }))
  return { changes, steps, blocked, stuck, clean, there, left, resolving, missing }
}

/** What prevents a file from being at the path of a change: there, or in the place of one of its folders. */
const inTheWayOf = (state: MainState, { path, after }: TreeChange): InTheWay | undefined => {
  const obstacle = state.obstacle(path)
  if (obstacle) return { path: obstacle.at, what: obstacle.what }
  const kind = state.kind(path)
  return after && (kind === 'folder' || kind === 'special') ? { path, what: kind } : undefined
}
