import { createHash } from 'node:crypto'
import type { Files } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'

/** A landing of a path. */
export interface PathLanding {
  readonly conversationId: string
  readonly at: number
}

/** Landings by path, the newest first. */
interface RepoLandings {
  readonly repo: string
  readonly paths: { readonly [path: string]: readonly PathLanding[] }
}

const MOST_PATHS = 20_000
const MOST_EACH = 10

/** Which conversations landed a path, for its uncommitted lines and for commits that follow. */
export class LandedOrigins {
  readonly #files: Pick<Files, 'read' | 'write'>
  readonly #writes = new KeyedMutex()

  constructor(files: Pick<Files, 'read' | 'write'>) {
    this.#files = files
  }

  /** The landings of a repository by path. */
  async of(repo: string): Promise<RepoLandings['paths']> {
    return (await this.#files.read<RepoLandings>(fileOf(repo)))?.paths ?? {}
  }

  /** Adds a landing of some paths; the paths that were landed longest ago are dropped where there are too many. */
  note(repo: string, paths: readonly string[], landing: PathLanding): Promise<void> {
    return this.#writes.with(repo, async () => {
      const known = new Map(Object.entries(await this.of(repo)))
      for (const path of paths) {
        const before = (known.get(path) ?? []).filter(one => one.conversationId !== landing.conversationId)
        // The newest come last.
        known.delete(path)
        known.set(path, [landing, ...before].slice(0, MOST_EACH))
      }
      const kept = [...known].slice(-MOST_PATHS)
      await this.#files.write(fileOf(repo), { repo, paths: Object.fromEntries(kept) })
    })
  }
}

const fileOf = (repo: string): string => `origins/${createHash('sha256').update(repo).digest('hex').slice(0, 32)}`
