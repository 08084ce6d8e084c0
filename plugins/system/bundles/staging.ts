import { createWriteStream } from 'node:fs'
import { lstat, mkdir, readdir, rm, statfs, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Refusal, refuse } from '../../../sdk/index.js'
import { isFull } from '../../../sdk/node/disk.js'
import { codeOf } from '../../../sdk/node/paths.js'
import { listEnv, ownProgram, run } from '../../../sdk/node/run.js'
import { unpackHistory } from './histories.js'
import { IN, type BundleEntry, type BundleManifest } from './manifest.js'
import type { Reader } from './reading.js'

/** What comes back, and what stays out and why. */
export interface Judged {
  readonly written: { path: string; files: number }[]
  readonly skipped: { path: string; reason: string }[]
}

const CONFIG = '.sandbox/config/'
const MOST_SKIPPED = 200

/** Why a file of the workspace does not come back; undefined: it does. */
export const reasonAgainst = ({ path, link }: Pick<BundleEntry, 'path' | 'link'>): string | undefined => {
  const parts = path.toLowerCase().split('/')
  if (parts.includes('.git')) return 'it belongs to git'
  if (parts[0] === '.sandbox' && !path.startsWith(CONFIG)) return 'it is the sandbox\'s own'
  if (link === undefined) return undefined
  if (parts[0] === '.sandbox') return 'the configuration takes no links'
  const leads = normalize(join(dirname(path), link))
  return link.startsWith('/') || leads === '..' || leads.startsWith('../') ? 'it is a link that leads out of the workspace' : undefined
}

/** Judges the entries of an archive as they are read, and writes nothing. */
export class Judge implements Reader {
  readonly #takes: (group: string) => boolean
  readonly #counts = new Map<string, number>()
  readonly #skipped: { path: string; reason: string }[] = []

  /** @param takes Whether a group of this sandbox takes back what it handed over. */
  constructor(takes: (group: string) => boolean) {
    this.#takes = takes
  }

  get judged(): Judged {
    return { written: [...this.#counts].map(([path, files]) => ({ path, files })), skipped: this.#skipped.slice(0, MOST_SKIPPED) }
  }

  async begin(_manifest: BundleManifest): Promise<void> {}

  async take(entry: BundleEntry, content: AsyncIterable<Buffer>): Promise<void> {
    const { path } = entry
    const place = path.slice(0, path.indexOf('/') + 1)
    const own = path.slice(place.length)
    const [first = ''] = own.split('/')
    if (place === IN.history) return this.keep(entry, content)
    const reason = place === IN.workspace ? reasonAgainst({ ...entry, path: own }) : this.#takes(first) ? undefined : 'no group of this sandbox takes it back'
    if (reason !== undefined) return void this.#skipped.push({ path: own, reason })
    const counted = place === IN.workspace ? first : path.slice(0, place.length + first.length)
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1)
    await this.keep(entry, content)
  }

  /** Does with an entry that comes back what is to be done with it. */
  protected async keep(_entry: BundleEntry, _content: AsyncIterable<Buffer>): Promise<void> {}
}

/** Where an archive is laid out before it counts. */
export interface StagingPlaces {
  /** On the disk of the workspace. */
  readonly workspace: string
  /** On the disk of the daemon's data. */
  readonly data: string
}

/** Lays an archive out beside what it will replace. Whoever makes one removes its places unless they are used. */
export class Staging extends Judge {
  readonly places: StagingPlaces
  readonly #links: { path: string; link: string }[] = []
  readonly #folders = new Set<string>()

  constructor(places: StagingPlaces, takes: (group: string) => boolean) {
    super(takes)
    this.places = places
  }

  override async begin(manifest: BundleManifest): Promise<void> {
    const sum = (place: string, times: number) => manifest.entries.filter(({ path }) => path.startsWith(place)).reduce((all, { size }) => all + size * times, 0)
    const { workspace, data } = this.places
    await Promise.all([workspace, data].map(folder => mkdir(folder, { recursive: true, mode: 0o700 })))
    // A history lies there once as it comes and once as a repository.
    await room(workspace, sum(IN.workspace, 1) + sum(IN.history, 1))
    await room(data, sum(IN.history, 1) + sum(IN.state, 1))
  }

  protected override async keep({ path, runs, link }: BundleEntry, content: AsyncIterable<Buffer>): Promise<void> {
    const inWorkspace = path.startsWith(IN.workspace)
    const at = inWorkspace ? join(this.places.workspace, path.slice(IN.workspace.length)) : join(this.places.data, path)
    if (link !== undefined) return void this.#links.push({ path: at, link })
    await this.#folder(dirname(at))
    await full(pipeline(content, createWriteStream(at, { flags: 'wx', mode: inWorkspace ? (runs ? 0o755 : 0o644) : 0o600 })))
  }

  /** Makes the links and the repositories, and brings everything to the disk. */
  async end(manifest: BundleManifest, signal: AbortSignal): Promise<void> {
    const { workspace, data } = this.places
    // Last, so that no file was written through one.
    for (const { path, link } of this.#links) {
      await this.#folder(dirname(path))
      await full(symlink(link, path))
    }
    for (const repository of manifest.repositories) {
      const { repo, history } = repository
      await unpackHistory(repo === 'root' ? workspace : join(workspace, repo), repository, history && join(data, history), signal)
    }
    await rm(join(data, IN.history), { recursive: true, force: true })
    await flushDisks([workspace, data])
  }

  async #folder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return
    await full(mkdir(folder, { recursive: true }))
    this.#folders.add(folder)
  }
}

/** What was written is told as too large where the disk is full. */
const full = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    throw isFull(error) ? new Refusal('too-large', 'the disk is full, and nothing was changed: make room and try again', { cause: error }) : error
  }
}

/** Refuses what a disk has no room for, with both sizes. */
export const room = async (folder: string, needed: number): Promise<void> => {
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (needed > free) refuse('too-large', `this takes about ${mebibytes(needed)} of disk, and ${mebibytes(free)} are free: make room and try again`, { fields: { neededBytes: needed, freeBytes: free } })
}

const mebibytes = (bytes: number): string => `${Math.max(1, Math.ceil(bytes / (1024 * 1024)))} MiB`

/** Everything in these places survives a power cut: one program for all files, instead of a wait for each. */
const flushDisks = async (folders: readonly string[]): Promise<void> => {
  const program = await ownProgram('sync')
  if (program) await run(program, process.platform === 'linux' ? ['-f', ...folders] : [], { cwd: '/', env: listEnv() })
}

/** The names at the top of a folder; none where there is no folder. */
export const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])

/** A folder for what the daemon keeps in the workspace for a while: git does not list it. */
export const privateFolder = async (workspace: string, ...parts: readonly string[]): Promise<string> => {
  let at = workspace
  for (const part of parts) {
    at = join(at, part)
    await full(mkdir(at, { mode: 0o700 }).catch(error => {
      if (codeOf(error) !== 'EEXIST') throw error
    }))
    const found = await lstat(at)
    if (!found.isDirectory()) refuse('unprocessable', `${at.slice(workspace.length + 1)} is ${found.isSymbolicLink() ? 'a link' : 'no folder'}: put a folder of the workspace itself in its place`)
  }
  await full(writeFile(join(at, '.gitignore'), '*\n'))
  return at
}
