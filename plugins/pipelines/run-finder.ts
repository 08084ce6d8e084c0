import { pathOfRepo, refuse, type Caller, type Host, type Input, type Reply } from '../../sdk/index.js'
import type { AccessView } from '../../sdk/node/access/access-view.js'
import { refuseReading } from '../../sdk/node/access/access-view.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { repoFolder } from '../../sdk/node/repositories/repo-folder.js'
import { isCheck, type Checks } from './checks/checks.js'
import type { StoredCheck } from './checks/stored.js'
import { runOfCheck } from './checks/view.js'
import type { CiRepo, PipelineRun, PipelinesCalls } from './contract.js'
import type { MappedRepo, MappedRepos } from './forges/mapped-repos.js'
import type { HookRegistrar } from './hooks/registering.js'
import type { Results } from './results/results.js'
import type { StoredPipelineRun } from './results/stored.js'
import type { Watching } from './results/watching.js'

const USUAL_LIMIT = 50

/** One run: a check before a push, or a run of a forge. */
export type FoundRun =
  | { readonly kind: 'check'; readonly check: StoredCheck }
  | { readonly kind: 'forge'; readonly mapped: MappedRepo; readonly run: StoredPipelineRun }

export interface RunFinderDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place'>
  readonly checks: Checks
  readonly mapped: MappedRepos
  readonly results: Results
  readonly watching: Watching
  readonly registrar: HookRegistrar
}

type Asked = Input<PipelinesCalls, 'GET /ci/runs'>

/** Finds runs for callers: each sees those of the repositories within reach. */
export class RunFinder {
  readonly #deps: RunFinderDeps

  constructor(deps: RunFinderDeps) {
    this.#deps = deps
  }

  /** Whether a caller may see a check: every repository that it is about. */
  async seesCheck({ repos, repo }: StoredCheck, view: Pick<AccessView, 'sees'>): Promise<boolean> {
    for (const each of new Set([repo, ...repos])) if (!(await view.sees(pathOfRepo(each)))) return false
    return true
  }

  /** One page of runs, with the repositories that they are of. */
  async list(asked: Asked, caller: Caller): Promise<Reply<PipelinesCalls, 'GET /ci/runs'>> {
    const { host, mapped, results, watching } = this.#deps
    const { repo, branch, status, host: of, limit = USUAL_LIMIT, before = Infinity, fresh = false } = asked
    const view = await accessViewFor(host, caller)
    const isAsked = (each: { repo: string; host: string }) =>
      (repo === undefined || each.repo === repo) && (of === undefined || each.host === of)
    const known: MappedRepo[] = []
    for (const each of await mapped.all(fresh))
      if (isAsked(each) && (await view.sees(pathOfRepo(each.repo)))) known.push(each)
    const checks: StoredCheck[] = []
    for (const check of this.#deps.checks.all)
      if (isAsked({ repo: check.repo, host: 'local' }) && (await this.seesCheck(check, view))) checks.push(check)
    if (repo !== undefined && known.length === 0 && checks.length === 0)
      await repoFolder({ root: host.place.workspace, reach: view.reach, readsGit: false }, repo)
    if (fresh) await Promise.all(known.map(each => watching.fresh(each)))
    else for (const each of known) watching.stale(each)

    const runs = [...known.flatMap(each => this.#runsOf(each)), ...checks.map(runOfCheck)]
      .filter(run => run.createdAt < before)
      .filter(run => (branch === undefined || run.branch === branch) && (status === undefined || run.status === status))
      .sort((one, other) => other.createdAt - one.createdAt || other.runId - one.runId)
    const last = runs[limit - 1]
    // Runs of one moment are not parted by a page, which `before` could not continue.
    const page = last ? runs.filter(({ createdAt }, at) => at < limit || createdAt === last.createdAt) : runs
    const { seenAt } = results
    return {
      repos: [...known.map(each => this.#rowOf(each, caller)), ...(await this.#localRows(asked, checks, view))],
      runs: page,
      ...(seenAt !== undefined && { seenAt }),
      ...(page.length < runs.length && last && { next: last.createdAt }),
    }
  }

  /** One run; refuses what the caller may not see, or with `works` not work on. */
  async find({ repo, runId }: { repo: string; runId: number }, caller: Caller, works = false): Promise<FoundRun> {
    const { host, checks, mapped, results } = this.#deps
    const view = await accessViewFor(host, caller)
    const missing = () => refuse('not-found', `there is no run ${runId} of ${JSON.stringify(repo.slice(0, 200))}`)
    if (!(await view.sees(pathOfRepo(repo)))) return missing()
    if (works && (await view.access(pathOfRepo(repo))) === 'read') refuseReading('this repository')
    if (isCheck(runId)) {
      const check = checks.find(runId)
      return check?.repo === repo && (await this.seesCheck(check, view)) ? { kind: 'check', check } : missing()
    }
    const found = (await mapped.all()).find(each => each.repo === repo)
    const run = found && results.of(found)?.runs.find(each => each.runId === runId)
    return found && run ? { kind: 'forge', mapped: found, run } : missing()
  }

  #runsOf(mapped: MappedRepo): PipelineRun[] {
    const { repo, host, project } = mapped
    return (this.#deps.results.of(mapped)?.runs ?? []).map(
      ({ updatedAt: _updatedAt, definition: _file, fix, ...run }) => ({
        ...{ repo, host, project, ...run },
        ...(fix && { fix: { conversationId: fix.conversationId, at: fix.at } }),
      }),
    )
  }

  #rowOf(mapped: MappedRepo, { kind }: Pick<Caller, 'kind'>): CiRepo {
    const { results, watching, registrar } = this.#deps
    const { repo, host, project, url, account } = mapped
    const { polledAt, error, can } = watching.of(mapped)
    const { hookWarning } = results.of(mapped) ?? {}
    return {
      ...{ repo, host, project, url, delivery: registrar.deliveryOf(mapped), can: { ...can } },
      ...(kind !== 'token' && { account }),
      ...(polledAt !== undefined && { polledAt }),
      ...(hookWarning !== undefined && { hookWarning }),
      ...(error !== undefined && { error }),
    }
  }

  /** The repositories that checks are of, and the workspace's own where rules stand. */
  async #localRows({ repo, host: of }: Asked, checks: readonly StoredCheck[], view: AccessView): Promise<CiRepo[]> {
    if (of !== undefined && of !== 'local') return []
    const repos = new Set(checks.map(check => check.repo))
    if ((repo === undefined || repo === 'root') && (await this.rulesStand()) && (await view.sees('.')))
      repos.add('root')
    return [...repos].sort().map(each => ({
      ...{ repo: each, host: 'local', project: 'local', url: '', delivery: 'none' },
      can: { rerun: true, rerunFailed: false, cancel: true, jobs: true, log: true },
    }))
  }

  /** Whether an enabled rule stands before pushes. */
  async rulesStand(): Promise<boolean> {
    const { host } = this.#deps
    if (!(await host.serves('rules.standing'))) return false
    return (await host.call('rules.standing', { moment: 'push.starting' })).rules.length > 0
  }
}
