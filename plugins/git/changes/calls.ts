import { covers, type Handlers } from '../../../sdk/index.js'
import type { Objects } from '../objects/objects.js'
import { projectOf } from '../remotes/address.js'
import { remotesOf } from '../remotes/settings.js'
import { lockOf } from '../repositories/lock-files.js'
import type { RepoLocks } from '../repositories/repo-locks.js'
import { pathFor, type Repositories } from '../repositories/repositories.js'
import type { UncommittedChanges } from '../records.js'
import type { GitChangeCalls, OperationState, OriginAgents } from './contract.js'
import { workingSides } from './file-sides.js'
import type { LandedBy } from './landed-by.js'
import { operationOf, progressOf } from './operation.js'
import { workingStatus } from './scan.js'
import type { Scans } from './scans.js'

/** The dependencies of reading uncommitted work. */
export interface ChangeCallsDeps {
  readonly repositories: Repositories
  readonly objects: Objects
  readonly scans: Scans
  readonly locks: RepoLocks
  /** The repositories in which a commit is in progress. */
  readonly committing: () => readonly string[]
  readonly landedBy: LandedBy
}

const MOST_FILES = 10_000

/** Serves uncommitted changes. */
export const changeCalls = (
  deps: ChangeCallsDeps,
): Handlers<Pick<GitChangeCalls, `GET ${string}` & keyof GitChangeCalls>> => {
  const { repositories, objects, scans, locks, landedBy } = deps
  return {
    'GET /git/changes': async ({ repo }, { caller }) => {
      const view = await repositories.viewOf(caller)
      const ids = repo === undefined ? await repositories.ids(view) : []
      const repos =
        repo === undefined ? await scans.all(ids, view) : [await scans.of(await repositories.open(repo, caller))]
      const committing = deps.committing().filter(each => covers(view.reach, each) !== 'none')
      const found = await Promise.all(
        repos.map(async one => withOrigins(one, repositories.tryOpen(one.repo, view), landedBy)),
      )
      const originAgents = Object.assign({}, ...found.map(({ agents }) => agents)) as OriginAgents
      return {
        repos: found.map(({ changes }) => changes),
        ...(Object.keys(originAgents).length > 0 && { originAgents }),
        ...(committing.length > 0 && { committing }),
      }
    },
    'GET /git/repos': async (_input, { caller }) => {
      const ids = await repositories.ids(await repositories.viewOf(caller))
      return { repos: ids.filter(repo => repo !== 'root') }
    },
    'GET /git/remote-repos': async (_input, { caller }) => {
      const view = await repositories.viewOf(caller)
      const ids = await repositories.ids(view)
      const found = await Promise.all(
        ids.map(async repo => {
          const opened = repo === 'root' ? undefined : repositories.tryOpen(repo, view)
          if (!opened || 'error' in opened) return []
          const remotes = await remotesOf(opened.git).catch(() => [])
          const project = remotes.flatMap(({ url }) => projectOf(url) ?? [])[0]
          return project ? [{ repo, ...project }] : []
        }),
      )
      return { repos: found.flat() }
    },
    'GET /git/{repo}/status': async ({ repo }, { caller, signal }) => {
      const opened = await repositories.open(repo, caller)
      const { branch = '', head, counts, ...rows } = await workingStatus(opened, MOST_FILES, signal)
      const kept = [...rows.conflicted, ...rows.staged, ...rows.unstaged]
      const files = [...new Set(kept.flatMap(({ path, from }) => (from === undefined ? [path] : [from, path])))].sort()
      const left = counts.conflicted + counts.staged + counts.unstaged - kept.length
      const truncated = Math.max(0, files.length - MOST_FILES) + left
      return {
        branch,
        dirty: files.length > 0,
        files: files.slice(0, MOST_FILES),
        ...(head !== undefined && { head }),
        ...(truncated > 0 && { truncated }),
      }
    },
    'GET /git/{repo}/file-diff': async ({ repo, path, side }, { caller }) => {
      const opened = await repositories.open(repo, caller)
      return workingSides(objects, opened, await pathFor(opened, path), side)
    },
    'GET /git/{repo}/operation': async ({ repo }, { caller }): Promise<OperationState> => {
      const opened = await repositories.open(repo, caller)
      const { git, only } = opened
      const { gitdir, common } = git.place
      const operation = operationOf(gitdir)
      const { stoppedAt, ...progress } = operation ? progressOf(gitdir, operation) : {}
      const [{ text }, head, stopped] = await Promise.all([
        git.look(['ls-files', '-u', '-z']),
        objects.head(git),
        stoppedAt === undefined ? undefined : objects.read(git, `${stoppedAt}^{commit}`, 1024 * 1024),
      ])
      const unmerged = new Set(text.split('\0').flatMap(record => record.split('\t').slice(1).join('\t') || [])).size
      const subject = stopped && typeof stopped === 'object' ? subjectOf(stopped.bytes) : undefined
      const lock = only ? undefined : lockOf(git.place)?.info
      const held = only ? undefined : locks.held(common)
      return {
        repo,
        ...(operation && { operation }),
        ...(head !== undefined && { head }),
        ...progress,
        ...(subject !== undefined && { subject }),
        unmerged,
        canContinue: operation !== undefined && unmerged === 0,
        ...(lock && { lock }),
        ...(held && { held }),
      }
    },
  }
}

/** The changes of a repository with the conversations that landed them; those that cannot be told are left out. */
const withOrigins = async (
  changes: UncommittedChanges,
  opened: ReturnType<Repositories['tryOpen']>,
  landedBy: LandedBy,
): Promise<{ changes: UncommittedChanges; agents?: OriginAgents }> => {
  if (!opened || 'error' in opened) return { changes }
  const rows = [...changes.conflicted, ...changes.staged, ...changes.unstaged]
  const paths = [...new Set(rows.flatMap(({ path, from }) => (from === undefined ? [path] : [path, from])))]
  const found = await landedBy.uncommitted(opened, paths).catch(() => undefined)
  return found ? { changes: { ...changes, origins: found.origins }, agents: found.agents } : { changes }
}

/** The subject of a commit, from its bytes. */
const subjectOf = (bytes: Buffer | undefined): string | undefined => {
  const text = bytes?.toString() ?? ''
  const at = text.indexOf('\n\n')
  return at < 0
    ? undefined
    : text
        .slice(at + 2)
        .split('\n\n')[0]!
        .replaceAll('\n', ' ')
        .trim()
        .slice(0, 500)
}
