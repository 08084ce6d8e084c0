import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ScratchRepo } from '../work/scratch-repo.js'
import type { MainState } from './main-state.js'
import type { TreeChange, TreeFile } from '../work/tree-diff.js'

/** A file in which both sides are brought together; `hunks` counts the places marked for a person to decide. */
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
/** git counts conflicts in its exit code, up to this one. */
const MOST_COUNTED = 127
const CANNOT = 255
const ANSWERS = [...Array.from({ length: MOST_COUNTED + 1 }, (_, code) => code), CANNOT]

const isText = ({ mode }: TreeFile): boolean => mode === '100644' || mode === '100755'

/** What the working tree holds of a changed file: under its name, or where the agent moved it away from. */
export const presentOf = (state: MainState, { path, from }: TreeChange): TreeFile | undefined => {
  if (state.obstacle(path)) return undefined
  return state.present(path) ?? (from === undefined ? undefined : state.present(from))
}

/** The sides of a change that git could merge line by line; undefined where one of them is missing or no plain file. */
export const mergeable = (state: MainState, change: TreeChange): Sides | undefined => {
  const { before, after, binary, path, from } = change
  const workspace = presentOf(state, change)
  if (binary || !after || !workspace || (from !== undefined && state.present(path))) return undefined
  if (![after, workspace, ...(before ? [before] : [])].every(isText)) return undefined
  return { ...(before && { base: before }), workspace, agent: after }
}

/**
 * Brings both sides of a file together, with markers where they differ in the same place; undefined when they are no
 * text.
 */
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

/** Keeps the merged file in the scratch repository; whether it is a program follows the side that changed that. */
export const keepMerged = async (
  scratch: ScratchRepo,
  { base, workspace, agent }: Sides,
  { content }: Merged,
): Promise<TreeFile> => {
  const { text } = await scratch.git(['hash-object', '-w', '--stdin'], { input: content })
  return { mode: base && base.mode !== agent.mode ? agent.mode : workspace.mode, id: text.trim() }
}
