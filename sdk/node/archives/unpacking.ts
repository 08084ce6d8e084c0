import { createWriteStream } from 'node:fs'
import { chmod, link, lstat, mkdir, open, rm, symlink, utimes } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { closedAs } from '../files/closed-names.js'
import { linkOnDisk, wayOf } from '../files/links.js'
import { codeOf, contains } from '../files/paths.js'
import { ignored } from '../../ignored.js'

/** A refused archive; the message ends a sentence about it. */
export class BadArchive extends Error {
  readonly kind: 'escaping' | 'damaged' | 'encrypted' | 'large'

  constructor(kind: BadArchive['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

/** An entry that was left out of an archive, and why. */
export interface OmittedEntry {
  path: string
  reason: string
}

/** The most that an archive may unpack to. */
export interface ArchiveLimits {
  readonly bytes: number
  readonly entries: number
  /** Up to this size its ratio does not count. */
  readonly free: number
}

/** An entry of an archive. */
export interface ArchiveEntry {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'hard-link' | 'other'
  readonly mode?: number | undefined
  readonly mtime?: Date | undefined
  /** Where a link leads. */
  readonly target?: string | undefined
}

const MOST: ArchiveLimits = { bytes: 10 * 1024 ** 3, entries: 500_000, free: 1024 ** 3 }
const MOST_RATIO = 200
const MOST_SKIPPED = 200
const MOST_SEGMENT = 255
const MODE = 0o777
const UNNAMEABLE = /[\x00-\x1f\x7f\\]/

/** The target of unpacking an archive, and its limits. */
export interface UnpackingOptions {
  /** An empty folder that no turn can write. */
  readonly folder: string
  /** The final path of its entries from the workspace root, which decides which names are closed. */
  readonly to: string
  /** The size of the archive. */
  readonly size: number
  /** Whether the folder of an entry already exists, so that its `.git` is not changed. */
  readonly isThere?: (path: string) => Promise<boolean>
  /** By default 10 GiB and 500,000 entries, with a ratio of at most 200 above 1 GiB. */
  readonly limits?: ArchiveLimits
}

/** Writes the entries of one archive into a folder. Links come last, so nothing is written through one. */
export class Unpacking {
  readonly #options: UnpackingOptions
  readonly #links: { at: string; path: string; target: string }[] = []
  readonly #times: { at: string; mtime: Date }[] = []
  readonly #made = new Set<string>(['.'])
  readonly skipped: OmittedEntry[] = []
  files = 0
  bytes = 0
  #entries = 0

  constructor(options: UnpackingOptions) {
    this.#options = options
  }

  get #limits(): ArchiveLimits {
    return this.#options.limits ?? MOST
  }

  /** Unpacks one entry; always reads its content to the end. */
  async add(entry: ArchiveEntry, content?: Readable): Promise<void> {
    const { entries } = this.#limits
    if (++this.#entries > entries) throw new BadArchive('large', `it has more than ${entries} entries`)
    const path = await this.#placeOf(entry)
    if (path === undefined) return drain(content)
    const at = join(this.#options.folder, path)
    if (entry.kind === 'folder') {
      await this.#folder(path)
      if (entry.mtime) this.#times.push({ at, mtime: entry.mtime })
      return drain(content)
    }
    await this.#folder(dirname(path))
    if (entry.kind === 'file' && content) return this.#file(at, path, entry, content)
    await drain(content)
    if (entry.kind === 'link') this.#links.push({ at, path, target: entry.target ?? '' })
    else if (entry.kind === 'hard-link') await this.#hardLink(at, path, entry.target ?? '')
    else this.#skip(path, 'it is a device, pipe or socket')
  }

  /** Makes the links that stay inside, and sets the times of folders. */
  async end(): Promise<void> {
    const { folder } = this.#options
    const made: { at: string; path: string; target: string }[] = []
    for (const each of this.#links) {
      if (!isTarget(each.target)) this.#skip(each.path, 'the link leads out')
      else if (await isFree(each.at)) {
        await symlink(each.target, each.at)
        made.push(each)
      } else this.#skip(each.path, 'something else has its name')
    }
    // Links may depend on each other: removing one can only break others.
    for (const { at, path, target } of made)
      for await (const place of wayOf(at, target, linkOnDisk)) {
        if (place !== undefined && contains(folder, place)) continue
        await rm(at, { force: true })
        this.#skip(path, 'the link leads out')
        break
      }
    for (const { at, mtime } of this.#times.toReversed())
      await utimes(at, mtime, mtime).catch(ignored('only its time is lost'))
  }

  /** The path of an entry in the folder; undefined: it is left out. Refuses the archive when it leads out. */
  async #placeOf({ name, kind }: ArchiveEntry): Promise<string | undefined> {
    const segments = name.split('/').filter(segment => segment !== '' && segment !== '.')
    if (name.startsWith('/') || /^[a-zA-Z]:[\\/]/.test(name) || segments.includes('..'))
      throw new BadArchive('escaping', `the entry ${JSON.stringify(name.slice(0, 200))} leads outside`)
    if (segments.length === 0) return undefined
    const path = segments.join('/')
    const to = this.#options.to === '.' ? [] : this.#options.to.split('/')
    if (segments.some(segment => UNNAMEABLE.test(segment) || !segment.isWellFormed()))
      return this.#skip(path, 'its name has a backslash or a control character')
    if (segments.some(segment => Buffer.byteLength(segment) > MOST_SEGMENT))
      return this.#skip(path, 'its name is too long')
    const closed = closedAs([...to, ...segments])
    if (closed !== undefined && closed !== 'git') return this.#skip(path, 'its name belongs to the sandbox or to git')
    if (closed === 'git') {
      const git = segments.findIndex((_, at) => closedAs([...to, ...segments.slice(0, at + 1)]) === 'git')
      const around = segments.slice(0, git).join('/') || '.'
      if (await this.#options.isThere?.(around))
        return this.#skip(path, 'its folder is there already, and has a git of its own')
    }
    if (kind !== 'folder' && this.#made.has(path)) return this.#skip(path, 'a folder has its name')
    return path
  }

  async #folder(path: string): Promise<void> {
    if (this.#made.has(path)) return
    await this.#folder(dirname(path))
    await mkdir(join(this.#options.folder, path)).catch(async error => {
      if (codeOf(error) !== 'EEXIST') throw error
      const there = await lstat(join(this.#options.folder, path))
      if (!there.isDirectory())
        throw new BadArchive('damaged', `it has both a file and a folder ${JSON.stringify(path)}`)
    })
    this.#made.add(path)
  }

  async #file(at: string, path: string, { mode, mtime }: ArchiveEntry, content: Readable): Promise<void> {
    await rm(at, { force: true })
    await pipeline(content, this.#counted(path), createWriteStream(at, { flags: 'wx', mode: 0o600 }))
    await chmod(at, ((mode ?? 0o644) & MODE) | 0o600)
    if (mtime) await utimes(at, mtime, mtime)
    this.files += 1
  }

  /** Ends an archive that grows too large. */
  #counted(path: string) {
    const { bytes: most, free } = this.#limits
    const within = `within the entry ${JSON.stringify(path.slice(0, 200))}`
    const add = (bytes: number) => {
      this.bytes += bytes
      if (this.bytes > most) throw new BadArchive('large', `it unpacks to more than ${most} bytes ${within}`)
      if (this.bytes > free && this.bytes > MOST_RATIO * this.#options.size)
        throw new BadArchive('large', `it unpacks to more than ${MOST_RATIO} times its size ${within}`)
    }
    return async function* (source: AsyncIterable<Buffer>) {
      for await (const piece of source) {
        add(piece.length)
        yield piece
      }
    }
  }

  /** No link exists yet, so the file that it names is in the folder. */
  async #hardLink(at: string, path: string, target: string): Promise<void> {
    const segments = target.split('/').filter(segment => segment !== '' && segment !== '.')
    if (target.startsWith('/') || segments.includes('..')) return void this.#skip(path, 'the link leads out')
    const from = join(this.#options.folder, ...segments)
    const there = await lstat(from).catch(() => undefined)
    if (!there?.isFile()) return void this.#skip(path, 'the file that it links to is not in the archive')
    if (relative(from, at) === '') return
    await rm(at, { force: true })
    await link(from, at)
    this.files += 1
  }

  #skip(path: string, reason: string): undefined {
    if (this.skipped.length < MOST_SKIPPED) this.skipped.push({ path: path.slice(0, 4096).toWellFormed(), reason })
    return undefined
  }
}

const isTarget = (target: string): boolean => target !== '' && !target.startsWith('/') && !target.includes('\0')

const isFree = (at: string): Promise<boolean> =>
  lstat(at).then(
    () => false,
    error => (codeOf(error) === 'ENOENT' ? true : Promise.reject(error)),
  )

const drain = async (content: Readable | undefined): Promise<void> => {
  if (!content) return
  content.resume()
  await new Promise<void>((resolve, reject) => content.once('end', resolve).once('error', reject))
}

/** The first bytes of a file. */
export const firstBytesOf = async (path: string, bytes: number): Promise<Buffer> => {
  await using handle = await open(path)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0)
  return buffer.subarray(0, bytesRead)
}
