import { verdictOf } from '../repositories/repo-git.js'
import type { BrokenRepo, OpenRepo, Repositories } from '../repositories/repositories.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import { GitFailure } from '../../../sdk/node/programs/git.js'
import { Refusal } from '../../../sdk/index.js'
import type { GitChange, UncommittedChanges } from '../records.js'
import { remoteStateOf } from '../remotes/remote-state.js'
import { operationOf } from './operation.js'
import { listedRows, withCounts } from './scan.js'
import { stampsOf } from './stamps.js'

interface Shared {
  readonly at: number
  readonly scan: Promise<UncommittedChanges>
}

const SHARED_MS = 500
const AT_ONCE = 4
const MOST_SHARED = 200

/**
 * Scans repositories for uncommitted changes.
 *
 * Callers with the same reach share a scan for 500 ms, or until a change is noticed.
 */
export class Scans {
  readonly #repositories: Repositories
  readonly #shared = new Map<string, Shared>()
  readonly #slots = new Semaphore(AT_ONCE)

  constructor(repositories: Repositories) {
    this.#repositories = repositories
  }

  /** Lets the next callers scan anew: files, the index or refs changed. */
  drop(): void {
    this.#shared.clear()
  }

  /** The uncommitted changes of one repository that a caller may see. */
  of(opened: OpenRepo): Promise<UncommittedChanges> {
    const key = JSON.stringify([opened.git.place.gitdir, opened.only])
    const known = this.#shared.get(key)
    if (known && performance.now() - known.at < SHARED_MS) return known.scan
    const scan = this.#slots.run(() => scanned(opened))
    if (this.#shared.size >= MOST_SHARED) this.#shared.clear()
    this.#shared.set(key, { at: performance.now(), scan })
    return scan
  }

  /** Those of the repositories that have uncommitted changes, is halted or ahead, and those that cannot be read. */
  async all(ids: readonly string[], view: AccessView): Promise<UncommittedChanges[]> {
    const found = await Promise.all(
      ids.map(async repo => {
        const opened = this.#repositories.tryOpen(repo, view)
        if (!opened) return []
        const changes = 'error' in opened ? broken(opened) : await this.of(opened)
        return says(changes) ? [changes] : []
      }),
    )
    return found.flat()
  }
}

const broken = ({ repo, error }: BrokenRepo): UncommittedChanges => ({
  repo,
  conflicted: [],
  staged: [],
  unstaged: [],
  error,
})

const says = ({ conflicted, staged, unstaged, operation, error, remote }: UncommittedChanges): boolean =>
  conflicted.length + staged.length + unstaged.length > 0
  || operation !== undefined
  || error !== undefined
  || (remote !== undefined && remote.ahead + remote.behind > 0)

const scanned = async (opened: OpenRepo): Promise<UncommittedChanges> => {
  const { repo, git } = opened
  try {
    const rows = await listedRows(opened)
    const counted = await withCounts(opened, rows)
    const { counts, branch } = rows
    const stamps = await stampsOf(opened, rows)
    const stamped = (changes: readonly GitChange[]) => changes.map(one => ({ ...one, stamp: stamps.get(one.path)! }))
    const listed = { staged: stamped(counted.staged), unstaged: stamped(counted.unstaged) }
    const conflicted = stamped(rows.conflicted)
    const shown = conflicted.length + listed.staged.length + listed.unstaged.length
    const truncated = counts.conflicted + counts.staged + counts.unstaged - shown
    const operation = operationOf(git.place.gitdir)
    return {
      repo,
      ...(branch !== undefined && { branch }),
      conflicted,
      ...(operation && { operation }),
      ...listed,
      ...(truncated > 0 && { truncated }),
      remote: await remoteStateOf(git, rows),
    }
  } catch (error) {
    if (error instanceof GitFailure) return broken({ repo, error: verdictOf(error.stderr) })
    if (error instanceof Refusal) return broken({ repo, error: error.message })
    throw error
  }
}
