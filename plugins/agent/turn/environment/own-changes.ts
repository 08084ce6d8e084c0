import { join } from 'node:path'
import type { Log } from '../../../../sdk/index.js'
import { git } from '../../../../sdk/node/programs/git.js'
import { pathOf } from '../../../../sdk/node/repositories/main-repository.js'
import type { CopyRepo } from '../../contract.js'
import type { Anchors } from '../../conversations/anchors.js'
import type { Copies } from '../../copies/copies.js'
import type { Tip } from '../../copies/states.js'
import { change } from '../../tools/content.js'
import type { Frame, ToolContent } from '../frames/frames.js'
import type { Turn } from '../turn.js'

/** The work of a turn in one repository: the commits before and after it. */
export interface TurnWork {
  /** The folder of the repository, which holds both commits. */
  readonly dir: string
  /** Its path in the workspace; empty: the root. */
  readonly path: string
  readonly from: string
  readonly to: string
  /** Where its main line was and is, if the turn was rebased. */
  readonly main?: readonly [from: string, to: string]
}

interface Entry {
  readonly path: string
  readonly before?: string
  readonly after?: string
}

/** Calls that show so many files; the rest is counted. */
const MOST_FILES = 50
const MOST_BYTES = 256 * 1024
const FILE = /^100/
const NULL = /^0+$/

/** Shows what an external program changed in its copy beside what it announced, once its work is committed. */
export const showOwnChanges = async (
  { anchors, copies, log }: { anchors: Anchors; copies: Copies; log: Log },
  { record, entry, conversationId, run, log: frames }: Turn,
  repos: readonly CopyRepo[],
  tips: readonly Tip[],
): Promise<void> => {
  if (record.done || entry.fields.harness !== 'vendor-code') return
  try {
    const work = await turnWork({ anchors, copies }, { conversationId, run }, repos, tips)
    for (const frame of await ownChanges(work, record.changedFiles)) frames.push(frame)
  } catch (error) {
    log.warn('showing what a program changed by itself failed', { run, error: String(error) })
  }
}

/** What a turn did in the repositories of its copy, once its work is committed. */
export const turnWork = async (
  { anchors, copies }: { readonly anchors: Pick<Anchors, 'byRun'>; readonly copies: Pick<Copies, 'repositories'> },
  { conversationId, run }: Pick<Turn, 'conversationId' | 'run'>,
  repos: readonly CopyRepo[],
  tips: readonly Tip[],
): Promise<TurnWork[]> => {
  const before = (await anchors.byRun(conversationId)).get(run)?.repos ?? []
  const folders = new Map((await copies.repositories()).map(({ repo, dir }) => [repo, dir]))
  return tips.flatMap(({ repo, tip: to, out }): TurnWork[] => {
    const dir = folders.get(repo)
    const was = before.find(each => each.repo === repo)
    const base = repos.find(each => each.repo === repo)?.base
    if (dir === undefined || was === undefined || out !== undefined) return []
    const moved = base !== undefined && base !== was.base
    return [{ dir, path: pathOf(repo), from: was.tip, to, ...(moved && { main: [was.base, base] as const }) }]
  })
}

/** Everything that this work changed, links too, from the root of the workspace. */
export const changedPaths = async (work: readonly TurnWork[]): Promise<string[]> => {
  const paths = await Promise.all(
    work.map(async ({ dir, path: around, from, to, main }) => {
      const moved = main && new Set(await namesBetween(dir, ...main))
      return (await namesBetween(dir, from, to)).filter(path => !moved?.has(path)).map(path => join(around, path))
    }),
  )
  return paths.flat()
}

const namesBetween = async (dir: string, from: string, to: string): Promise<string[]> => {
  if (from === to) return []
  const { text } = await git(dir, ['diff-tree', '-r', '-z', '--name-only', '--no-renames', from, to])
  return text.split('\0').filter(Boolean)
}

/** What a program changed without a call that shows it, as calls; `shown` are the paths that calls did show. */
export const ownChanges = async (work: readonly TurnWork[], shown: ReadonlySet<string>): Promise<Frame[]> => {
  const frames: Frame[] = []
  let more = 0
  for (const each of work) {
    const moved = each.main ? new Set((await entries(each.dir, ...each.main)).map(({ path }) => path)) : undefined
    const found = (await entries(each.dir, each.from, each.to)).filter(
      ({ path }) => !moved?.has(path) && !shown.has(join(each.path, path)),
    )
    const taken = found.slice(0, Math.max(0, MOST_FILES - frames.length))
    more += found.length - taken.length
    const blobs = await contents(
      each.dir,
      taken.flatMap(({ before, after }) => [before, after].filter(id => id !== undefined)),
    )
    for (const entry of taken) frames.push(callFor(join(each.path, entry.path), entry, blobs))
  }
  if (more > 0)
    frames.push({
      kind: 'notice',
      level: 'info',
      text: `the program changed ${more} more files by itself; the changes of the conversation show all`,
      source: 'copies',
    })
  return frames
}

/** The plain files that differ between two commits. */
const entries = async (dir: string, from: string, to: string): Promise<Entry[]> => {
  if (from === to) return []
  const { text } = await git(dir, ['diff-tree', '-r', '-z', '--raw', '--no-abbrev', '--no-renames', from, to])
  const parts = text.split('\0')
  const found: Entry[] = []
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [oldMode = '', newMode = '', before = '', after = ''] = parts[at]!.slice(1).split(' ')
    if (!FILE.test(oldMode) && !FILE.test(newMode)) continue
    found.push({
      path: parts[at + 1]!,
      ...(FILE.test(oldMode) && !NULL.test(before) && { before }),
      ...(FILE.test(newMode) && !NULL.test(after) && { after }),
    })
  }
  return found
}

/** Contents by their ids; of large ones the size alone. */
const contents = async (dir: string, ids: readonly string[]): Promise<Map<string, Buffer | number>> => {
  const all = new Map<string, Buffer | number>()
  if (ids.length === 0) return all
  const asked = [...new Set(ids)]
  const { text } = await git(dir, ['cat-file', '--batch-check=%(objectname) %(objectsize)'], {
    input: `${asked.join('\n')}\n`,
  })
  for (const [id = '', size = ''] of text
    .trim()
    .split('\n')
    .map(line => line.split(' ')))
    all.set(id, Number(size))
  const small = asked.filter(id => Number(all.get(id)) <= MOST_BYTES)
  if (small.length === 0) return all
  const { stdout } = await git(dir, ['cat-file', '--batch=%(objectname)'], { input: `${small.join('\n')}\n` })
  let at = 0
  for (const id of small) {
    const start = stdout.indexOf(0x0a, at) + 1
    at = start + Number(all.get(id))
    all.set(id, stdout.subarray(start, at))
    at++
  }
  return all
}

const callFor = (path: string, { before, after }: Entry, blobs: ReadonlyMap<string, Buffer | number>): Frame => {
  const [name, category] = after === undefined ? (['Delete', 'delete'] as const) : (['Write', 'edit'] as const)
  return {
    kind: 'tool_call',
    id: `own-change:${path}`,
    name,
    category,
    status: 'completed',
    target: path.slice(0, 200).toWellFormed(),
    locations: [{ path }],
    content: contentFor(path, before && blobs.get(before), after && blobs.get(after)),
  }
}

const contentFor = (
  path: string,
  before: Buffer | number | string | undefined,
  after: Buffer | number | string | undefined,
): ToolContent[] => {
  if (after === undefined) return [{ type: 'text', text: `${path} was deleted` }]
  if (Buffer.isBuffer(after) && (before === undefined || Buffer.isBuffer(before))) return change(path, before, after)
  const size = Buffer.isBuffer(after) ? after.length : after
  return [{ type: 'text', text: `${path} has ${size} bytes now: too large to show` }]
}
