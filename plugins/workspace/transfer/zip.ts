import { once } from 'node:events'
import { readlink } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { ZipFile } from 'yazl'
import { namesOf } from '../../../sdk/node/programs/library.js'
import { refuse, Refusal } from '../../../sdk/index.js'
import {
  openExisting,
  openFile,
  openParent,
  openPath,
  type PathTree,
  shownPath,
} from '../../../sdk/node/files/open-path.js'
import { sweepTree, type SweptName } from '../tree/sweep.js'

/** The contents of a ZIP. */
export interface ZipPlan {
  readonly paths: readonly string[]
  readonly includeIgnored: boolean
}

const MOST_FILES = 200_000
/** Content that is packed already. */
const PACKED =
  /\.(?:docx|pptx|xlsx|zip|gz|tgz|bz2|xz|zst|7z|rar|jar|png|jpe?g|gif|webp|mp[34]|m4[av]|mov|mkv|webm|ogg|woff2?|pdf)$/i
/** Above this a ZIP needs the longer form of an entry (APPNOTE 4.3.9.2); a file may grow while it is read. */
const LONG_FORM = 2 ** 31
const LINK_MODE = 0o120777

/** The paths without those below another one. */
const folded = (paths: readonly string[]): string[] =>
  [...new Set(paths)].filter(path => !paths.some(other => path.startsWith(`${other}/`))).sort()

/** Checks the contents of a ZIP, and counts its files. */
export const planZip = async (tree: PathTree, asked: readonly string[], includeIgnored: boolean): Promise<ZipPlan> => {
  const paths: string[] = []
  for (const path of asked) {
    await using found = await openExisting(tree, path)
    if (found.stats.isFile()) await (await openFile(found, path)).close()
    else if (!found.stats.isDirectory()) refuse('unprocessable', `${shownPath(path)} is a pipe, socket or device`)
    paths.push(path.replace(/\/$/, ''))
  }
  const plan = { paths: folded(paths), includeIgnored }
  let files = 0
  for await (const { kind } of entriesIn(tree, plan))
    if (kind !== 'folder' && ++files > MOST_FILES)
      refuse('too-large', `the paths hold more than ${MOST_FILES} files: ask for fewer of them at a time`)
  return plan
}

/** The name that browsers save a ZIP under. */
export const zipName = ({ paths }: Pick<ZipPlan, 'paths'>): string => {
  if (paths.length === 1) return `${basename(paths[0]!)}.zip`
  const folder = commonFolder(paths)
  return `${folder === '' ? 'workspace' : basename(folder)}.zip`
}

const commonFolder = (paths: readonly string[]): string => {
  const [first = '', ...others] = paths.map(path => (dirname(path) === '.' ? '' : dirname(path)))
  let parts = first.split('/').filter(Boolean)
  for (const other of others) {
    const theirs = other.split('/')
    const at = parts.findIndex((part, index) => theirs[index] !== part)
    if (at >= 0) parts = parts.slice(0, at)
  }
  return parts.join('/')
}

/** The entries of a ZIP; a link to a folder stands for the folder. */
async function* entriesIn(
  tree: PathTree,
  { paths, includeIgnored }: ZipPlan,
): AsyncGenerator<SweptName & { at: string }> {
  for (const path of paths) {
    await using found = await openPath(tree, path)
    if (!found?.stats.isDirectory()) {
      yield { path, at: path, kind: 'file' }
      continue
    }
    const from = found.path
    yield { path, at: from, kind: 'folder' }
    // The target of a link may be hidden from a person limited to areas.
    const links = tree.reach === undefined
    for await (const { path: at, kind } of sweepTree(tree, {
      from,
      links,
      ignored: includeIgnored,
      git: includeIgnored && tree.readsGit,
    }))
      yield { path: from === '.' ? `${path}/${at}` : path + at.slice(from.length), at, kind }
  }
}

const linkText = async (tree: PathTree, path: string): Promise<Buffer> => {
  await using parent = await openParent(tree, path, { existing: true, reads: true })
  return readlink(parent.target, { encoding: 'buffer' })
}

/** Adds an entry, and waits until it is read; false: it is missing or cannot be read. */
const addTo = async (zip: ZipFile, tree: PathTree, { at, kind }: { at: string; kind: string }, name: string) => {
  try {
    if (kind === 'folder') return void zip.addEmptyDirectory(name)
    if (kind === 'link') return void zip.addBuffer(await linkText(tree, at), name, { mode: LINK_MODE, compress: false })
    await using found = await openExisting(tree, at)
    const { mtime, mode, size } = found.stats
    const handle = await openFile(found, at)
    const stream = handle.createReadStream({ highWaterMark: 256 * 1024 })
    const closed = once(stream, 'close')
    zip.addReadStream(stream, name, { mtime, mode, compress: !PACKED.test(name), forceZip64Format: size > LONG_FORM })
    await closed
  } catch (error) {
    if (error instanceof Refusal || (error as NodeJS.ErrnoException).code === 'ENOENT') return at
    throw error
  }
  return undefined
}

/** A ZIP that is created while it is read. */
export async function* zipOf(tree: PathTree, plan: ZipPlan): AsyncGenerator<Buffer> {
  const { ZipFile } = namesOf(await import('yazl'))
  const zip = new ZipFile()
  const output = zip.outputStream as NodeJS.ReadableStream & { destroy(error?: Error): void }
  zip.on('error', error => output.destroy(error))
  const base = commonFolder(plan.paths)
  const fill = async () => {
    const skipped: string[] = []
    for await (const entry of entriesIn(tree, plan)) {
      const left = await addTo(zip, tree, entry, base === '' ? entry.path : entry.path.slice(base.length + 1))
      if (left !== undefined) skipped.push(left)
    }
    if (skipped.length > 0) zip.addBuffer(Buffer.from(`${skipped.join('\n')}\n`), '_skipped.txt')
    zip.end()
  }
  const filled = fill().catch((error: Error) => output.destroy(error))
  try {
    for await (const piece of output) yield piece as Buffer
    await filled
  } finally {
    output.destroy()
  }
}
