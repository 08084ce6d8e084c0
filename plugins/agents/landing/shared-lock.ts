import type { Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'

/** Holds a repository, by the git dir that its worktrees share, while a landing works in it. */
export interface RepositoryLock {
  with<T>(common: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>
}

/** The lock that landings share with the calls of group git; where that is not served, one among landings. */
export const sharedLock = (host: Pick<Host, 'call' | 'serves' | 'signal'>): RepositoryLock => {
  const own = new KeyedMutex()
  return {
    with: (common, work, signal = host.signal) =>
      own.with(
        common,
        async () => {
          if (!(await host.serves('git.lock'))) return work()
          const ended = new AbortController()
          const how = { signal: AbortSignal.any([signal, ended.signal]) }
          const lock = await host.call('git.lock', { common, by: 'landing' }, how)
          const events = lock[Symbol.asyncIterator]()
          try {
            await events.next()
            return await work()
          } finally {
            ended.abort()
            await events.return?.()
          }
        },
        signal,
      ),
  }
}
