import { lstat, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, Refusal, type SidePair } from '../../../sdk/index.js'
import { outputFields, bytePath, shownName } from '../../../sdk/node/byte-names.js'
import { LARGEST_SHOWN } from '../../../sdk/node/files/large-files.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { presentSides, sideFile } from '../../../sdk/node/files/side-files.js'
import { GitFailure } from '../../../sdk/node/programs/git.js'
import { filterIn } from '../../../sdk/node/repositories/conversion.js'
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

const sideOf = async (scratch: ScratchRepo, entry: SideEntry | undefined): Promise<Side> => {
  if (!entry) return NOTHING
  const bytes = await contentOf(scratch, entry, LARGEST_SHOWN)
  if (bytes === 'large' || looksBinary(bytes)) return { binary: true, truncated: false }
  return { text: textOfSide(bytes, MOST_BYTES), binary: false, truncated: bytes.length > MOST_BYTES }
}

const entryAt = async (scratch: ScratchRepo, tree: string, path: string): Promise<SideEntry | undefined> => {
  const { text } = await scratch.once(['ls-tree', '-z', tree, '--', path])
  if (text === '' && path.includes('\uFFFD')) return entryShownAs(scratch, tree, path)
  const [mode = '', type, id = ''] = text.slice(0, text.indexOf('\t')).split(' ')
  return type === 'blob' ? { mode, id, tree, path } : undefined
}

/** The first file whose path shows as this one: bytes that are not UTF-8 do as U+FFFD. */
const entryShownAs = async (scratch: ScratchRepo, tree: string, path: string): Promise<SideEntry | undefined> => {
  for (const record of outputFields(await scratch.once(['ls-tree', '-r', '-z', tree]))) {
    const tab = record.indexOf('\t')
    const [mode = '', type, id = ''] = record.slice(0, tab).split(' ')
    const name = record.slice(tab + 1)
    if (type === 'blob' && shownName(name) === path) return { mode, id, tree, path: name }
  }
  return undefined
}

/** A file with its place, by which its attributes are found. */
export interface SideEntry extends TreeFile {
  /** The tree whose attributes count, which need not hold the file. */
  readonly tree: string
  readonly path: string
}

/**
 * The content of a file, up to `most` bytes: of one with a filter what people work with, such as the text of an
 * encrypted one, if its filter gives it.
 */
export const contentOf = async (scratch: ScratchRepo, entry: SideEntry, most: number): Promise<Buffer | 'large'> => {
  const { text: size } = await scratch.once(['cat-file', '-s', entry.id])
  if (Number(size) > most) return 'large'
  const filtered = await filteredContent(scratch, entry, most).catch((error: unknown) => {
    if (error instanceof GitFailure || error instanceof Refusal) return undefined
    throw error
  })
  return filtered ?? (await scratch.once(['cat-file', 'blob', entry.id])).stdout
}

/** The content of a file after its filter; undefined: it has none. */
const filteredContent = async (
  scratch: ScratchRepo,
  { tree, path, mode, id }: SideEntry,
  most: number,
): Promise<Buffer | 'large' | undefined> => {
  const { filters } = scratch.conversion
  if (filters.size === 0 || !mode.startsWith('100')) return undefined
  const index = `side-${tree}-${id}`
  await scratch.readTree(tree, index)
  const input = `${path}\0`
  const named = outputFields(
    await scratch.git(['check-attr', '-z', '--cached', '--stdin', 'filter'], { index, input }),
  )[2]
  if (![...filters.keys()].some(name => filterIn(name) === named)) return undefined
  const entry = `${mode} ${id}\t${path}\0`
  await scratch.git(['update-index', '--add', '--replace', '-z', '--index-info'], { index, input: entry })
  const out = await scratch.place(index)
  await scratch.convert(['checkout-index', '-f', '-q', '-z', '--stdin'], [path], { index, tree: out })
  const place = bytePath(join(out, path))
  const found = await lstat(place)
  if (!found.isFile()) return undefined
  return found.size > most ? 'large' : readFile(place)
}

/** Where both sides of a file are over the span of the diff. */
interface FoundSides {
  readonly path: string
  /** The earlier name of a renamed file. */
  readonly from?: string
  readonly before: SideEntry | undefined
  readonly after: SideEntry | undefined
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
    change => shownName(change.path) === name && inside(shownName(change.from ?? name)),
  )
  return {
    path: name,
    ...(renamed?.from !== undefined && { from: shownName(renamed.from) }),
    before: renamed?.before && { ...renamed.before, tree: from, path: renamed.from ?? renamed.path },
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
  const fileOf = async (entry: SideEntry | undefined) => {
    if (!entry) return undefined
    const bytes = await contentOf(scratch, entry, most)
    // With a filter the content depends on more than the blob.
    const blob = scratch.conversion.filters.size === 0 ? entry.id : undefined
    return sideFile(folder, bytes, bytes === 'large' ? undefined : blob)
  }
  return { path, ...(from !== undefined && { from }), ...presentSides(await fileOf(before), await fileOf(after)) }
}
