import { copyFile, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { GitAnswer } from '../../../sdk/node/programs/git.js'
import { ScratchRepo, type ScratchCache } from './scratch-repo.js'
import type { Repository } from './repository.js'

const MOST_BYTES = 16 * 1024 * 1024
const LARGEST = 1024 * 1024
/** Indexes of whole commits that are kept: those of a few main lines. */
const MOST_INDEXES = 4

/**
 * Where scratch repositories are laid, and what they share.
 *
 * Commits and trees never change, so neither does what git says of them: such answers are kept within a bound of bytes,
 * and so are the indexes of the commits that were needed last.
 */
export class ScratchRepos implements ScratchCache {
  readonly #folder: string
  readonly #indexes: string
  readonly #answers = new Map<string, GitAnswer>()
  #bytes = 0

  /** @param folder A folder of its own. */
  constructor(folder: string) {
    this.#folder = join(folder, 'benches')
    this.#indexes = join(folder, 'indexes')
  }

  /** Opens a scratch repository for a repository and closes it when the work is done. */
  async with<T>(
    { folders, own, tip }: Repository,
    work: (scratch: ScratchRepo) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    // Where history begins can move: it is part of every question.
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
      own,
      signal,
    )
    return await work(scratch)
  }

  /** Removes what an earlier daemon left. */
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
   * Keeps what git said, in the place of what was asked longest ago. An object that is missing may come: that is not
   * kept.
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

  /** Keeps the index of a commit, in the place of the one that was needed longest ago. */
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
