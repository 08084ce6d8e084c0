import type { Handlers, Host } from '../../../sdk/index.js'
import type { GitServices } from '../contract.js'
import type { RepoLocks } from './repo-locks.js'
import { repoPlaceAt } from './repo-place.js'

/** Serves the lock of a repository to other groups. */
export const lockCalls = (
  { place: { workspace, data } }: Pick<Host, 'place'>,
  locks: RepoLocks,
): Handlers<GitServices> => ({
  async *'git.lock'({ repo, repos = repo === undefined ? [] : [repo], common, by }, { signal }) {
    const keyOf = (name: string): string => {
      const place = repoPlaceAt({ workspace, data }, name)
      // A repository that does not exist is held by its name.
      return place && 'common' in place ? place.common : `name:${name}`
    }
    // Worktrees of one repository share its lock. In one order, so that two callers do not wait for each other.
    const keys = [...new Set(common === undefined ? repos.map(keyOf) : [common])].sort()
    const releases: (() => void)[] = []
    try {
      for (const key of keys) releases.push(await locks.hold(key, by, signal))
      yield { held: true as const }
      await new Promise<void>(resolve => {
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
    } finally {
      for (const release of releases) release()
    }
  },
})
