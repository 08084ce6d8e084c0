import { createWriteStream } from 'node:fs'
import { lstat, mkdir, readdir, realpath, rm, statfs, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Refusal, refuse } from '../../../sdk/index.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import { flushTree } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { ownEnv, ownProgram, run } from '../../../sdk/node/programs/run.js'
import { unpackHistory } from './histories.js'
import { IN, type BundleEntry, type BundleManifest } from './manifest.js'
import type { Reader } from './reading.js'
import { reasonsAgainst, type ReasonAgainst } from './returning.js'

/** What is restored, and what is left out and why. */
export interface Judged {
  readonly written: { path: string; files: number }[]
  readonly skipped: { path: string; reason: string }[]
}

/** The sandbox that is restored. */
export interface StagingTarget {
  /** The workspace's real path. */
  readonly workspace: string
  /** Whether a group restores the part that it exported. */
  readonly takes: (group: string) => boolean
}

const MOST_SKIPPED = 200

/** Checks the entries of an archive as they are read; writes nothing. */
export class Judge implements Reader {
  readonly #target: StagingTarget
  readonly #counts = new Map<string, number>()
  readonly #skipped: { path: string; reason: string }[] = []
  #reasons: ReasonAgainst = () => undefined

  constructor(target: StagingTarget) {
    this.#target = target
  }

  get judged(): Judged {
    return {
      written: [...this.#counts].map(([path, files]) => ({ path, files })),
      skipped: this.#skipped.slice(0, MOST_SKIPPED),
    }
  }

  async begin(manifest: BundleManifest): Promise<void> {
    this.#reasons = await reasonsAgainst(manifest, this.#target.workspace)
  }

  async take(entry: BundleEntry, content: AsyncIterable<Buffer>): Promise<void> {
    const { path } = entry
    const place = path.slice(0, path.indexOf('/') + 1)
    const own = path.slice(place.length)
    const [first = ''] = own.split('/')
    if (place === IN.history) return this.keep(entry, content)
    const reason =
      place === IN.workspace
        ? this.#reasons(own)
        : this.#target.takes(first)
          ? undefined
          : 'no group of this sandbox restores it'
    if (reason !== undefined) return void this.#skipped.push({ path: own, reason })
    const counted = place === IN.workspace ? first : path.slice(0, place.length + first.length)
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1)
    await this.keep(entry, content)
  }

  /** Handles an entry that is restored. */
  protected async keep(_entry: BundleEntry, _content: AsyncIterable<Buffer>): Promise<void> {}
}

/** Where an archive is unpacked before it is applied; real paths. */
export interface StagingPlaces {
  /** On the disk of the workspace. */
  readonly workspace: string
  /** On the disk of the daemon's data. */
  readonly data: string
}

/** Unpacks an archive beside what it will replace. The caller removes its folders unless they are used. */
export class Staging extends Judge {
  readonly places: StagingPlaces
  readonly #links: { path: string; link: string }[] = []
  readonly #folders = new Set<string>()

  constructor(places: StagingPlaces, target: StagingTarget) {
    super(target)
    this.places = places
  }

  override async begin(manifest: BundleManifest): Promise<void> {
    await super.begin(manifest)
    const sum = (place: string, times: number) =>
      manifest.entries.filter(({ path }) => path.startsWith(place)).reduce((all, { size }) => all + size * times, 0)
    const { workspace, data } = this.places
    await Promise.all([workspace, data].map(folder => mkdir(folder, { recursive: true, mode: 0o700 })))
    // A history is stored twice: as unpacked and as a repository.
    await assertSpace(workspace, sum(IN.workspace, 1) + sum(IN.history, 1))
    await assertSpace(data, sum(IN.history, 1) + sum(IN.state, 1))
  }

  protected override async keep({ path, runs, link }: BundleEntry, content: AsyncIterable<Buffer>): Promise<void> {
    const inWorkspace = path.startsWith(IN.workspace)
    if (link !== undefined) return void this.#links.push({ path: path.slice(IN.workspace.length), link })
    const at = inWorkspace ? join(this.places.workspace, path.slice(IN.workspace.length)) : join(this.places.data, path)
    await writeEntry(path, async () => {
      await this.#folder(dirname(at))
      await pipeline(
        content,
        createWriteStream(at, { flags: 'wx', mode: inWorkspace ? (runs ? 0o755 : 0o644) : 0o600 }),
      )
    })
  }

  /** Creates the repositories, then the links, and syncs everything to the disk. */
  async end(manifest: BundleManifest, signal: AbortSignal): Promise<void> {
    const { workspace, data } = this.places
    for (const repository of manifest.repositories) {
      const { repo, history } = repository
      const dir = repo === 'root' ? workspace : join(workspace, repo)
      await writeEntry(repo, () => this.#folder(dir))
      // The bundle has no links yet; links that somebody adds meanwhile are not followed either.
      if ((await realpath(dir)) !== dir)
        refuse('conflict', `the folder of ${repo} became a link while the bundle was unpacked: restore again`)
      await unpackHistory(dir, repository, history && join(data, history), signal)
    }
    // Links come last, so that nothing is written through one.
    for (const { path, link } of this.#links) {
      const at = join(workspace, path)
      await writeEntry(path, async () => {
        await this.#folder(dirname(at))
        await symlink(link, at)
      })
    }
    await rm(join(data, IN.history), { recursive: true, force: true })
    await writeOut([workspace, data])
    for (const place of [workspace, data]) await flushTree(place)
  }

  async #folder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return
    await mkdir(folder, { recursive: true })
    this.#folders.add(folder)
  }
}

/** Errors of names that the disk does not support, or not beside another name. */
const UNFIT = new Set(['EEXIST', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'EILSEQ', 'EINVAL'])

/** Writes an entry of a bundle; reports names that the disk does not support. */
const writeEntry = async (path: string, work: () => Promise<void>): Promise<void> => {
  try {
    await full(work())
  } catch (error) {
    if (!UNFIT.has(codeOf(error) ?? '')) throw error
    const name = JSON.stringify(path.slice(0, 120))
    throw new Refusal(
      'unprocessable',
      `the disk of this sandbox cannot hold ${name} (${codeOf(error)}), so nothing was changed: restore on `
        + 'another disk',
      { cause: error },
    )
  }
}

/** Reports a full disk as `too-large`. */
const full = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    throw isFull(error)
      ? new Refusal('too-large', 'the disk is full, and nothing was changed: free some space and try again', {
          cause: error,
        })
      : error
  }
}

/** Refuses what does not fit on the disk, with both sizes. */
export const assertSpace = async (folder: string, needed: number): Promise<void> => {
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (needed > free)
    refuse(
      'too-large',
      `this takes about ${mebibytes(needed)} of disk, and ${mebibytes(free)} are free: free some space and try again`,
      { fields: { neededBytes: needed, freeBytes: free } },
    )
}

const mebibytes = (bytes: number): string => `${Math.max(1, Math.ceil(bytes / (1024 * 1024)))} MiB`

/** Starts writing buffered data to the disks, so that flushing each file is fast; guarantees nothing itself. */
const writeOut = async (folders: readonly string[]): Promise<void> => {
  const program = await ownProgram('sync')
  if (program)
    await run(program, process.platform === 'linux' ? ['-f', ...folders] : [], { cwd: '/', env: await ownEnv() })
}

/** The names at the top of a folder; none where there is no folder. */
export const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])

/** A folder for temporary files of the daemon in the workspace; git does not list it. */
export const privateFolder = async (workspace: string, ...parts: readonly string[]): Promise<string> => {
  let at = workspace
  for (const part of parts) {
    at = join(at, part)
    await full(
      mkdir(at, { mode: 0o700 }).catch(error => {
        if (codeOf(error) !== 'EEXIST') throw error
      }),
    )
    const found = await lstat(at)
    if (!found.isDirectory())
      refuse(
        'unprocessable',
        `${at.slice(workspace.length + 1)} is ${found.isSymbolicLink() ? 'a link' : 'no folder'}: put a folder of `
          + 'the workspace itself in its place',
      )
  }
  await full(writeFile(join(at, '.gitignore'), '*\n'))
  return at
}
