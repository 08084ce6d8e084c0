import { copyFile, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { GitAnswer } from '../../../sdk/node/programs/git.js'
import { ScratchRepo, type FilterWall, type ScratchCache } from './scratch-repo.js'
import type { Repository } from './repository.js'

const MOST_BYTES = 16 * 1024 * 1024
const LARGEST = 1024 * 1024
/** The most cached indexes of commits, enough for a few main lines. */
const MOST_INDEXES = 4

/**
 * Creates scratch repositories, and caches answers that they share.
 *
 * Commits and trees never change, so git's answers about them are cached, within a limit in bytes; also caches the most
 * recently used indexes.
 */
export class ScratchRepos implements ScratchCache {
  readonly #folder: string
  readonly #indexes: string
  /** The wall around git in checkouts of the person. */
  readonly wall: FilterWall
  readonly #answers = new Map<string, GitAnswer>()
  #bytes = 0

  /** @param folder A folder used by nothing else. */
  constructor(folder: string, wall: FilterWall) {
    this.wall = wall
    this.#folder = join(folder, 'benches')
    this.#indexes = join(folder, 'indexes')
  }

  /** Opens a scratch repository for the duration of the work. */
  async with<T>(
    { folders, own, tip }: Repository,
    work: (scratch: ScratchRepo) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    // The boundary of a shallow clone can change, so it is part of every cache key.
    const shallow = await stat(join(folders.common, 'shallow')).then(
      ({ mtimeMs, size }) => `${mtimeMs} ${size}`,
      () => '',
    )
    await using scratch = await ScratchRepo.open(
      this.#folder,
      folders,
      tip,
      this,
      `${folders.common}\0${shallow}`,
      this.wall,
      own,
      signal,
    )
    return await work(scratch)
  }

  /** Removes the files of an earlier daemon. */
  async clear(): Promise<void> {
    await Promise.all([this.#folder, this.#indexes].map(folder => rm(folder, { recursive: true, force: true })))
  }

  /** What git said of this before. */
  answer(question: string): GitAnswer | undefined {
    const known = this.#answers.get(question)
    if (!known) return undefined
    this.#answers.delete(question)
    this.#answers.set(question, known)
    return known
  }

  /**
   * Caches an answer and evicts the least recently used. Answers about missing objects are not cached, since they may
   * appear later.
   */
  keep(question: string, answer: GitAnswer): void {
    const bytes = sizeOf(question, answer)
    if (answer.code > 1 || bytes > LARGEST || this.#answers.has(question)) return
    this.#answers.set(question, answer)
    this.#bytes += bytes
    for (const [oldest, old] of this.#answers) {
      if (this.#bytes <= MOST_BYTES) return
      this.#answers.delete(oldest)
      this.#bytes -= sizeOf(oldest, old)
    }
  }

  /** Lays the index of a commit at a path, if one is kept. */
  async takeIndex(commit: string, path: string): Promise<boolean> {
    const kept = join(this.#indexes, commit)
    const now = new Date()
    return copyFile(kept, path)
      .then(() => utimes(kept, now, now))
      .then(
        () => true,
        () => false,
      )
  }

  /** Caches the index of a commit and evicts the least recently used one. */
  async keepIndex(commit: string, path: string): Promise<void> {
    await mkdir(this.#indexes, { recursive: true, mode: 0o700 })
    const half = join(this.#indexes, `.${randomUUID()}`)
    await copyFile(path, half)
    await rename(half, join(this.#indexes, commit))
    const kept = await Promise.all(
      (await readdir(this.#indexes)).map(async name => {
        const { mtimeMs } = await stat(join(this.#indexes, name)).catch(() => ({ mtimeMs: 0 }))
        return { name, mtimeMs }
      }),
    )
    const over = kept.sort((one, other) => other.mtimeMs - one.mtimeMs).slice(MOST_INDEXES)
    await Promise.all(over.map(({ name }) => rm(join(this.#indexes, name), { force: true })))
  }
}

const sizeOf = (question: string, { stdout, stderr }: GitAnswer): number =>
  2 * question.length + 3 * stdout.length + 2 * stderr.length
