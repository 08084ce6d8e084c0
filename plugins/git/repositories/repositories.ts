import { posix } from 'node:path'
import { accessTo, covers, isWithin, pathOfRepo, refuse, type Caller, type Host } from '../../../sdk/index.js'
import { accessViewFor } from '../../../sdk/node/access/asked-reach.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { segmentsOf } from '../../../sdk/node/files/paths.js'
import { workNetwork } from '../../../sdk/node/programs/work-network.js'
import { FoldersWithGit } from '../../../sdk/node/repositories/git-folders.js'
import type { WallBase } from '../../../sdk/node/transport/remote-git.js'
import type { RefsWatch } from '../watch/refs-watch.js'
import { RepoGit, type RepoWall } from './repo-git.js'
import { checkedPath } from './names.js'
import { repoPlaceAt } from './repo-place.js'

/** A repository as one caller sees it. */
export interface OpenRepo {
  readonly repo: string
  readonly git: RepoGit
  readonly view: AccessView
  /** The folders of the repository that the caller sees, as paths from its root; undefined: all of it. */
  readonly only: readonly string[] | undefined
  /** Whether the caller sees a path of the repository. */
  sees(path: string): boolean
}

/** A repository that exists but cannot be read. */
export interface BrokenRepo {
  readonly repo: string
  readonly error: string
}

const MOST_REPOSITORIES = 1000

/** Finds repositories of the workspace, and opens them for their callers. */
export class Repositories {
  readonly #host: Pick<Host, 'call' | 'serves' | 'place'>
  readonly #refs: RefsWatch
  readonly #folders: FoldersWithGit
  #last: string | undefined
  readonly #repoWall: RepoWall
  /** The facts about the machine for git's wall. */
  readonly wall: WallBase

  /** @param refs Watches every repository that is listed or opened. */
  constructor(host: Pick<Host, 'call' | 'serves' | 'place'>, refs: RefsWatch) {
    this.#host = host
    this.#refs = refs
    const { workspace, data, hidden, grants } = host.place
    this.#folders = new FoldersWithGit(workspace)
    this.wall = { workspace, data, hide: hidden, grants }
    this.#repoWall = { ...this.wall, network: workNetwork(host) }
  }

  /** The ids of all repositories of which the caller sees a part, `root` first, then sorted. */
  async ids(view: AccessView): Promise<string[]> {
    const found = (await this.#folders.paths())
      .map(path => path || 'root')
      .filter(repo => covers(view.reach, repo) !== 'none')
      .slice(0, MOST_REPOSITORIES)
    const nested = found.filter(repo => repo !== 'root').sort()
    const ids = found.includes('root') ? ['root', ...nested] : nested
    if (!view.reach) this.#followAll(ids, view)
    return ids
  }

  /** Whether these are other repositories than in the last call of this method. */
  differ(ids: readonly string[]): boolean {
    const before = this.#last
    this.#last = JSON.stringify(ids)
    return this.#last !== before
  }

  viewOf(caller: Caller): Promise<AccessView> {
    return accessViewFor(this.#host, caller)
  }

  /** Opens a repository for a caller; refuses one that is unknown, outside, or leads elsewhere. */
  async open(repo: string, caller: Caller): Promise<OpenRepo> {
    const opened = this.tryOpen(repo, await this.viewOf(caller))
    if (!opened) return refuse('not-found', `the workspace has no repository ${JSON.stringify(repo.slice(0, 200))}`)
    return 'error' in opened ? refuse('unprocessable', `${repo} cannot be read: ${opened.error}`) : opened
  }

  /** Opens a repository, or returns why it cannot be read; undefined: none. */
  tryOpen(repo: string, view: AccessView): OpenRepo | BrokenRepo | undefined {
    const { workspace, data } = this.#host.place
    if (repo !== 'root' && isClosedName(segmentsOf(repo))) return undefined
    if (covers(view.reach, repo) === 'none') return undefined
    const place = repoPlaceAt({ workspace, data }, repo)
    if (!place || 'error' in place) return place && { repo, error: place.error }
    this.#refs.follow(place)
    const at = (path: string) => posix.join(pathOfRepo(repo), path)
    return {
      repo,
      git: new RepoGit(place, this.#repoWall),
      view,
      only: covers(view.reach, repo) === 'all' ? undefined : foldersIn(repo, view),
      sees: path => accessTo(view.reach, at(path)) !== undefined,
    }
  }

  #followAll(ids: readonly string[], view: AccessView): void {
    this.#refs.retain(ids)
    for (const id of ids) if (!this.#refs.follows(id)) this.tryOpen(id, view)
  }
}

/** The folders of a reach that lie in a repository, as paths from its root. */
const foldersIn = (repo: string, { reach = [] }: AccessView): string[] => {
  const root = pathOfRepo(repo)
  return reach.flatMap(({ path }) => (isWithin(root, path) && path !== root ? [posix.relative(root, path)] : []))
}

/** The checked form of a caller's path; a path outside their areas is not found. */
export const pathFor = async ({ repo, sees, view }: OpenRepo, path: string): Promise<string> => {
  const checked = checkedPath(repo, path)
  const inside = sees(checked) && (!view.reach || (await view.sees(posix.join(pathOfRepo(repo), checked))))
  return inside ? checked : refuse('not-found', `nothing in ${repo} is named ${path}`)
}

/** The arguments that limit git to what the caller sees. */
export const limitTo = ({ only }: Pick<OpenRepo, 'only'>): string[] => (only ? ['--', ...only] : [])
