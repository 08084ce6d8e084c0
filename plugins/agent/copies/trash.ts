import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { needProgram, ownEnv, run } from '../../../sdk/node/programs/run.js'
import { BESIDE } from './gitdir.js'
import type { TreeEntry } from './repositories.js'

const LATER_MS = 50

/** Moves folders away atomically and deletes them in the background. */
export class Trash {
  readonly #folder: string
  readonly #log: Pick<Log, 'warn'> | undefined
  readonly #deletions = new Set<Promise<void>>()

  constructor(folder: string, log?: Pick<Log, 'warn'>) {
    this.#folder = folder
    this.#log = log
  }

  /** Moves a folder away and returns its new path; undefined if there is none. */
  async put(folder: string): Promise<string | undefined> {
    const place = join(this.#folder, randomBytes(9).toString('hex'))
    await mkdir(dirname(place), { recursive: true, mode: 0o700 })
    try {
      await rename(folder, place)
      return place
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    }
  }

  /** Removes a folder, if there is one; deletes its files in the background. */
  async throwAway(folder: string): Promise<void> {
    const place = await this.put(folder)
    if (place) this.delete(place)
  }

  /** Removes the git dirs of a copy and the files beside them. */
  async dropGitdirs(repos: readonly Partial<Pick<TreeEntry, 'gitdir'>>[]): Promise<void> {
    for (const { gitdir } of repos) {
      if (gitdir === undefined) continue
      for (const beside of BESIDE) await rm(gitdir + beside, { force: true })
      await this.throwAway(gitdir)
    }
  }

  /**
   * Deletes with a separate process: deleting 100,000 files would block the daemon's own file operations.
   *
   * Starting the process blocks the daemon, so it happens after the call has been answered.
   */
  delete(place: string): void {
    const failed = (error: unknown) => this.#log?.warn('deleting a copy failed', { error: String(error) })
    const deletion = delay(LATER_MS)
      .then(() => needProgram('rm'))
      .then(async program => run(program, ['-rf', '--', place], { cwd: '/', env: await ownEnv() }))
      .then(({ code, stderr }) => (code === 0 ? undefined : Promise.reject(new Error(stderr.slice(0, 500)))))
      .catch(failed)
      .finally(() => this.#deletions.delete(deletion))
    this.#deletions.add(deletion)
  }

  /** Deletes everything that was put here. */
  async empty(): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => [] as string[])) this.delete(join(this.#folder, name))
  }

  /** Waits until all deletions are complete. */
  async settled(): Promise<void> {
    await Promise.all(this.#deletions)
  }
}
