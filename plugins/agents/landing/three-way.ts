import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ScratchRepo } from '../work/scratch-repo.js'
import type { MainState } from './main-state.js'
import type { TreeChange, TreeFile } from '../work/tree-diff.js'

/** A merged file; `hunks` is the number of conflicts. */
export interface Merged {
  readonly content: Buffer
  readonly hunks: number
}

/** The three sides of one file; no base: both added it. */
export interface Sides {
  readonly base?: TreeFile
  readonly workspace: TreeFile
  readonly agent: TreeFile
}

const MOST_BYTES = 16 * 1024 * 1024
/** The most conflicts that git counts in its exit code. */
const MOST_COUNTED = 127
const CANNOT = 255
const ANSWERS = [...Array.from({ length: MOST_COUNTED + 1 }, (_, code) => code), CANNOT]

const isText = ({ mode }: TreeFile): boolean => mode === '100644' || mode === '100755'

/** The working tree's version of a changed file: at its path, or at the path that the agent renamed it from. */
export const presentOf = (state: MainState, { path, from }: TreeChange): TreeFile | undefined => {
  if (state.obstacle(path)) return undefined
  return state.present(path) ?? (from === undefined ? undefined : state.present(from))
}

/** The sides of a change that git could merge line by line; undefined if one is missing or not a text file. */
export const mergeable = (state: MainState, change: TreeChange): Sides | undefined => {
  const { before, after, binary, path, from } = change
  const workspace = presentOf(state, change)
  if (binary || !after || !workspace || (from !== undefined && state.present(path))) return undefined
  if (![after, workspace, ...(before ? [before] : [])].every(isText)) return undefined
  return { ...(before && { base: before }), workspace, agent: after }
}

/** Merges both sides of a file, with markers at conflicts; undefined if they are not text. */
export const threeWay = async (
  scratch: ScratchRepo,
  { base, workspace, agent }: Sides,
  branch: string,
): Promise<Merged | undefined> => {
  const folder = await scratch.place('merge')
  const files: string[] = []
  for (const [name, entry] of [
    ['workspace', workspace],
    ['base', base],
    ['agent', agent],
  ] as const) {
    const file = join(folder, name)
    if (entry && Number((await scratch.git(['cat-file', '-s', entry.id])).text) > MOST_BYTES) return undefined
    await writeFile(file, entry ? (await scratch.git(['cat-file', 'blob', entry.id])).stdout : '')
    files.push(file)
  }
  const labels = ['workspace', 'base', branch].flatMap(label => ['-L', label])
  const { code, stdout } = await scratch.git(['merge-file', '-p', '-q', ...labels, ...files], { ok: ANSWERS })
  return code === CANNOT ? undefined : { content: stdout, hunks: code }
}

/** Stores the merged file in the scratch repository; its execute bit follows the side that changed it. */
export const keepMerged = async (
  scratch: ScratchRepo,
  { base, workspace, agent }: Sides,
  { content }: Merged,
): Promise<TreeFile> => {
  const { text } = await scratch.git(['hash-object', '-w', '--stdin'], { input: content })
  return { mode: base && base.mode !== agent.mode ? agent.mode : workspace.mode, id: text.trim() }
}
