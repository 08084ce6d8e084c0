import type { Host } from '../../../sdk/index.js'
import type { RepoPlace } from '../repositories/repo-place.js'
import { GitFolderWatch } from './git-folder-watch.js'

const BATCH_MS = 250
const MOST_REPOSITORIES = 1000

/** Publishes `refsChanged` 250 ms after refs, index or a halted operation changed, by a call or another program. */
export class RefsWatch {
  readonly #host: Pick<Host, 'call' | 'log' | 'signal'>
  readonly #watches = new Map<string, { readonly place: RepoPlace; readonly folders: readonly GitFolderWatch[] }>()
  readonly #noticed: () => void
  #moved = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #exhausted = false

  /** @param noticed Called at once when a repository moved. */
  constructor(host: Pick<Host, 'call' | 'log' | 'signal'>, noticed: () => void) {
    this.#host = host
    this.#noticed = noticed
    host.signal.addEventListener('abort', () => this.#stop(), { once: true })
  }

  /** Watches the git folders of a repository from now on. */
  follow(place: RepoPlace): void {
    const { repo, gitdir, common } = place
    const known = this.#watches.get(repo)
    const same = known?.place.gitdir === gitdir && known.place.common === common
    if (same && known.folders.every(({ isCurrent }) => isCurrent)) return
    this.#forget(repo)
    if (this.#exhausted || this.#host.signal.aborted || this.#watches.size >= MOST_REPOSITORIES) return
    const events = { moved: () => this.moved(repo), exhausted: () => this.#full() }
    const folders = [...new Set([gitdir, common])].map(dir => new GitFolderWatch(dir, events))
    this.#watches.set(repo, { place, folders })
  }

  follows(repo: string): boolean {
    return this.#watches.has(repo)
  }

  /** Keeps only the watches of repositories that exist. */
  retain(repos: readonly string[]): void {
    const kept = new Set(repos)
    for (const repo of this.#watches.keys()) if (!kept.has(repo)) this.#forget(repo)
  }

  /** Notes that refs, the index or a halted operation of a repository changed. */
  moved(repo: string): void {
    this.#noticed()
    this.#moved.add(repo)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const repos = [...this.#moved].sort()
      this.#moved = new Set()
      void this.#publish(repos)
    }, BATCH_MS).unref()
  }

  async #publish(repos: readonly string[]): Promise<void> {
    const frames = repos.map(repo => {
      const data = { kind: 'refsChanged', repos: [repo] }
      return { data, limited: { forms: [{ within: [repo === 'root' ? '.' : repo], value: data }] } }
    })
    await this.#host
      .call('kernel.events.show', { frames })
      .catch(
        error =>
          this.#host.signal.aborted || this.#host.log.warn('publishing moved refs failed', { error: `${error}` }),
      )
  }

  #full(): void {
    if (this.#exhausted) return
    this.#exhausted = true
    this.#host.log.warn('the limit of watches is reached: refs that other programs move are not reported')
  }

  #forget(repo: string): void {
    for (const folder of this.#watches.get(repo)?.folders ?? []) folder.stop()
    this.#watches.delete(repo)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    for (const repo of this.#watches.keys()) this.#forget(repo)
  }
}
