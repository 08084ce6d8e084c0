import { once } from 'node:events'
import { readlink } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { type PassThrough, Readable } from 'node:stream'
import type { ZipFile } from 'yazl'
import { namesOf } from '../../../sdk/node/programs/library.js'
import { refuse, Refusal, ignored } from '../../../sdk/index.js'
import {
  openExisting,
  openFile,
  openParent,
  openPath,
  type PathTree,
  shownPath,
} from '../../../sdk/node/files/open-path.js'
import { bytesOfSwept, openSweptFile, sweepTree, type SweptName } from '../tree/sweep.js'

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
/** Files up to this size are read whole, some of them at once, and compressed at once. */
const SMALL = 256 * 1024
const AHEAD = 8
/** Each file of this count is a stream, which begins once all before it are written: at most twice as many wait. */
const BATCH = 16

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
async function* entriesIn(tree: PathTree, { paths, includeIgnored }: ZipPlan): AsyncGenerator<ZipEntry> {
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
      yield { path: from === '.' ? `${path}/${at}` : path + at.slice(from.length), at, kind, swept: true }
  }
}

const linkText = async (tree: PathTree, path: string): Promise<Buffer> => {
  await using parent = await openParent(tree, path, { existing: true, reads: true })
  return await readlink(parent.target, { encoding: 'buffer' })
}

/** What a ZIP holds, and where it lies. */
interface ZipEntry extends SweptName {
  readonly at: string
  /** A sweep found it just now, within the reach of the caller. */
  readonly swept?: boolean
}

/** What an entry of a ZIP gets: its content where that is small, or how to add it in its turn. */
interface ReadEntry {
  readonly entry: ZipEntry
  readonly small?: { readonly bytes: Buffer; readonly mtime: Date; readonly mode: number }
}

const orGone = <T>(error: unknown, gone: T): T => {
  if (error instanceof Refusal || (error as NodeJS.ErrnoException).code === 'ENOENT') return gone
  throw error
}

/** Reads a small file that a sweep found; everything else is read in its turn. */
const readAhead = async ({ root }: PathTree, entry: ZipEntry): Promise<ReadEntry> => {
  using file = entry.swept && entry.kind === 'file' ? openSweptFile(root, entry.at) : undefined
  if (!file || file.stats.size > SMALL) return { entry }
  const { mtime, mode } = file.stats
  return { entry, small: { bytes: await bytesOfSwept(file), mtime, mode } }
}

/** A ZIP that is written; `cut` resolves when nobody reads it any more. */
interface OpenZip {
  readonly zip: ZipFile
  readonly cut: Promise<void>
}

/** Adds what is not a small file, and waits until it is read; false: it is missing or cannot be read. */
const addWaiting = async (
  { zip, cut }: OpenZip,
  tree: PathTree,
  { at, kind }: ZipEntry,
  name: string,
): Promise<boolean> => {
  try {
    if (kind === 'folder') zip.addEmptyDirectory(name)
    else if (kind === 'link') zip.addBuffer(await linkText(tree, at), name, { mode: LINK_MODE, compress: false })
    else {
      await using found = await openExisting(tree, at)
      const { mtime, mode, size } = found.stats
      const handle = await openFile(found, at)
      const stream = handle.createReadStream({ highWaterMark: 256 * 1024 })
      const closed = once(stream, 'close')
      void cut.then(() => stream.destroy())
      zip.addReadStream(stream, name, { mtime, mode, compress: !PACKED.test(name), forceZip64Format: size > LONG_FORM })
      await closed
    }
    return true
  } catch (error) {
    return orGone(error, false)
  }
}

/** A ZIP that is created while it is read. */
export async function* zipOf(tree: PathTree, plan: ZipPlan): AsyncGenerator<Buffer> {
  const { ZipFile } = namesOf(await import('yazl'))
  const zip = new ZipFile()
  // yazl's types name the interface; it is this stream.
  const output = zip.outputStream as PassThrough
  zip.on('error', error => output.destroy(error))
  const base = commonFolder(plan.paths)
  const cut = new Promise<void>(resolve => void output.once('close', resolve))
  const fill = async () => {
    const skipped: string[] = []
    /** Resolves when all small files are written that were added before the last one but `BATCH`. */
    let reached: Promise<unknown> = Promise.resolve()
    let added = 0
    const add = async ({ entry, small }: ReadEntry) => {
      const name = base === '' ? entry.path : entry.path.slice(base.length + 1)
      if (!small) {
        if (!(await addWaiting({ zip, cut }, tree, entry, name))) skipped.push(entry.at)
        return
      }
      const { bytes, mtime, mode } = small
      const options = { mtime, mode, compress: !PACKED.test(name) }
      if (++added % BATCH > 0) return zip.addBuffer(bytes, name, options)
      await Promise.race([reached, cut])
      const turn = Promise.withResolvers<void>()
      reached = turn.promise
      zip.addReadStreamLazy(name, options, give => {
        turn.resolve()
        // yazl's callback has null for no error.
        give(null, Readable.from([bytes]))
      })
    }
    const ahead: Promise<ReadEntry>[] = []
    for await (const entry of entriesIn(tree, plan)) {
      if (output.destroyed) return
      const next = readAhead(tree, entry)
      next.catch(ignored('a failure counts in its turn'))
      ahead.push(next)
      if (ahead.length > AHEAD) await add((await ahead.shift())!)
    }
    for (const next of ahead) await add(await next)
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
