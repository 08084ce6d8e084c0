import type { Handlers, Host } from '../../../sdk/index.js'
import type { GitServices } from '../contract.js'
import type { RepoLocks } from './repo-locks.js'
import { repoPlaceAt } from './repo-place.js'

/** Serves the lock of a repository to other groups. */
export const lockCalls = (
  { place: { workspace, data } }: Pick<Host, 'place'>,
  locks: RepoLocks,
): Handlers<GitServices> => ({
  async *'git.lock'({ repo, common, by }, { signal }) {
    const place = common === undefined && repo !== undefined ? repoPlaceAt({ workspace, data }, repo) : undefined
    // A repository that does not exist is held by its name.
    const key = common ?? (place && 'common' in place ? place.common : `name:${repo}`)
    const release = await locks.hold(key, by, signal)
    try {
      yield { held: true as const }
      await new Promise<void>(resolve => {
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
    } finally {
      release()
    }
  },
})
