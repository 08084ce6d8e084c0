import { pathOf } from '../../../../sdk/node/repositories/main-repository.js'
import type { Tip } from '../../copies/states.js'

/** The most conversations whose files are remembered. */
const MOST_KNOWN = 1000

/** The ignored files of private copies, each of which is named once while the daemon runs. */
export class IgnoredFiles {
  readonly #named = new Map<string, ReadonlySet<string>>()

  /** The paths, from the workspace root, that were not there when they were last asked for. */
  newOf(id: string, tips: readonly Pick<Tip, 'repo' | 'ignored'>[]): string[] {
    const now = tips.flatMap(({ repo, ignored = [] }) =>
      ignored.map(path => (pathOf(repo) === '' ? path : `${pathOf(repo)}/${path}`)),
    )
    const before = this.#named.get(id)
    this.#named.delete(id)
    if (now.length > 0) this.#named.set(id, new Set(now))
    for (const oldest of this.#named.keys()) {
      if (this.#named.size <= MOST_KNOWN) break
      this.#named.delete(oldest)
    }
    return now.filter(path => !before?.has(path))
  }
}
