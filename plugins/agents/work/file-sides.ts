import { refuse, type SidePair } from '../../../sdk/index.js'
import { LARGEST_SHOWN } from '../../../sdk/node/files/large-files.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { presentSides, sideFile } from '../../../sdk/node/files/side-files.js'
import type { ScratchRepo } from './scratch-repo.js'
import { spanOf } from './changes.js'
import type { TwoSides } from '../contract.js'
import { excludedPaths } from './excluded-paths.js'
import type { Repository } from './repository.js'
import { changesBetween, type TreeFile } from './tree-diff.js'

const MOST_BYTES = 1024 * 1024
const LOOKED_AT = 8192

interface Side {
  readonly text?: string
  readonly binary: boolean
  readonly truncated: boolean
}

const NOTHING: Side = { binary: false, truncated: false }

/** Whether git would treat a file as binary. */
export const looksBinary = (bytes: Buffer): boolean => bytes.subarray(0, LOOKED_AT).includes(0)

/** The first `most` bytes of a text, never cut within a character. */
export const textOfSide = (bytes: Buffer, most: number): string => {
  if (bytes.length <= most) return bytes.toString()
  let end = most
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--
  return bytes.subarray(0, end).toString()
}

const sideOf = async (scratch: ScratchRepo, entry: TreeFile | undefined): Promise<Side> => {
  if (!entry) return NOTHING
  const { text: size } = await scratch.once(['cat-file', '-s', entry.id])
  if (Number(size) > LARGEST_SHOWN) return { binary: true, truncated: false }
  const { stdout } = await scratch.once(['cat-file', 'blob', entry.id])
  if (looksBinary(stdout)) return { binary: true, truncated: false }
  return { text: textOfSide(stdout, MOST_BYTES), binary: false, truncated: stdout.length > MOST_BYTES }
}

const entryAt = async (scratch: ScratchRepo, tree: string, path: string): Promise<TreeFile | undefined> => {
  const { text } = await scratch.once(['ls-tree', '-z', tree, '--', path])
  const [mode = '', type, id = ''] = text.slice(0, text.indexOf('\t')).split(' ')
  return type === 'blob' ? { mode, id } : undefined
}

/** Where both sides of a file are over the span of the diff. */
interface FoundSides {
  readonly path: string
  /** The earlier name of a renamed file. */
  readonly from?: string
  readonly before: TreeFile | undefined
  readonly after: TreeFile | undefined
}

/**
 * Finds both sides of a file over the span of the diff; for a renamed file the earlier side is at its earlier path, if
 * the caller may see that.
 */
const foundSides = async (
  scratch: ScratchRepo,
  repository: Repository,
  path: string,
  inside: (path: string) => boolean,
): Promise<FoundSides> => {
  const { repo } = repository.checkout
  const name = segmentsOf(path, { existing: true }).join('/')
  const absent = (): never => refuse('not-found', `neither side of the work in ${repo} has a file ${path}`)
  if (excludedPaths(repo, name) || !inside(name)) absent()
  const { from, to } = await spanOf(scratch, repository)
  const [before, after] = await Promise.all([entryAt(scratch, from, name), entryAt(scratch, to, name)])
  if (before) return { path: name, before, after }
  if (!after) return absent()
  const renamed = (await changesBetween(scratch, repo, from, to)).find(
    change => change.path === name && inside(change.from ?? name),
  )
  return {
    path: name,
    ...(renamed?.from !== undefined && { from: renamed.from }),
    before: renamed?.before,
    after,
  }
}

/** Both sides of a file as texts. */
export const fileSides = async (...asked: Parameters<typeof foundSides>): Promise<TwoSides> => {
  const [scratch] = asked
  const { before, after } = await foundSides(...asked)
  const [one, other] = await Promise.all([sideOf(scratch, before), sideOf(scratch, after)])
  if (one.binary || other.binary) return { binary: true }
  return {
    ...(one.text !== undefined && { before: one.text }),
    ...(other.text !== undefined && { after: other.text }),
    ...((one.truncated || other.truncated) && { truncated: true }),
  }
}

/** Writes both sides of a file into a folder, each up to `most` bytes. */
export const writtenSides = async (
  folder: string,
  most: number,
  ...asked: Parameters<typeof foundSides>
): Promise<SidePair> => {
  const [scratch] = asked
  const { path, from, before, after } = await foundSides(...asked)
  const fileOf = async (entry: TreeFile | undefined) => {
    if (!entry) return undefined
    const { text: size } = await scratch.once(['cat-file', '-s', entry.id])
    if (Number(size) > most) return sideFile(folder, 'large')
    return sideFile(folder, (await scratch.git(['cat-file', 'blob', entry.id])).stdout, entry.id)
  }
  return { path, ...(from !== undefined && { from }), ...presentSides(await fileOf(before), await fileOf(after)) }
}
