import { realpath } from 'node:fs/promises'
import { pathOfRepo, refuse, type Caller, type Host } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { accessViewWith, limitsOf, refuseReading, type AccessView } from '../../sdk/node/access/access-view.js'
import { redacted } from '../../sdk/node/access/redact.js'
import type { CurrentMasker } from '../../sdk/node/access/value-masker.js'
import { trendOf } from './apply.js'
import type { Issue, IssueEvent, IssueLocation } from './contract.js'
import { locationOf, shownExceptions, type FramesDeps } from './frames/shown-frames.js'
import { SourceFiles } from './frames/source-files.js'
import type { SourceMaps } from './frames/source-maps.js'
import type { Reporters } from './reporters.js'
import type { StoredEvent, StoredIssue, StoredReporter } from './stored.js'

const FOUND_MS = 30_000
const MOST_FOUND = 2_000

export interface ViewDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place'>
  readonly reporters: Pick<Reporters, 'stored'>
  readonly maps: SourceMaps
  readonly secrets: CurrentMasker
  /** When the issues were last seen. */
  readonly seenAt: () => number | undefined
}

/** The folder of a reporter's repository, from the root of the workspace. */
export const folderOfReporter = ({ repo = 'root' }: Pick<StoredReporter, 'repo'>): string => pathOfRepo(repo)

/** Whether an issue waits for a person. */
export const isWaiting = ({ state, firstSeen, regressedAt }: StoredIssue, seenAt = 0): boolean =>
  state === 'open' && (firstSeen > seenAt || (regressedAt ?? 0) > seenAt)

interface FoundLocation {
  readonly at: number
  readonly key: string
  readonly location: IssueLocation | undefined
}

/** Issues and events as callers see them. */
export class IssueViews {
  readonly #deps: ViewDeps
  /** Where issues are, as seen without limits. */
  readonly #found = new Map<string, FoundLocation>()

  constructor(deps: ViewDeps) {
    this.#deps = deps
  }

  /** What a caller may see, for one request. */
  async for(caller: Caller): Promise<CallerView> {
    const { host } = this.#deps
    return new CallerView(this, this.#deps, await accessViewFor(host, caller), limitsOf(caller) !== undefined)
  }

  /** Where an issue is in the workspace; looked up again after a while, because builds and files change. */
  async locationOf(issue: StoredIssue, reporter: StoredReporter): Promise<IssueLocation | undefined> {
    const { top, id } = issue
    if (!top) return undefined
    const key = JSON.stringify([top, reporter.repo])
    const known = this.#found.get(id)
    if (known?.key === key && known.at > Date.now() - FOUND_MS) return known.location
    const whole = accessViewWith(this.#deps.host.place.workspace, undefined)
    const location = await locationOf(await framesDeps(this.#deps, whole, reporter), top)
    this.#found.delete(id)
    this.#found.set(id, { at: Date.now(), key, location })
    if (this.#found.size > MOST_FOUND) this.#found.delete(this.#found.keys().next().value!)
    return location
  }
}

const framesDeps = async (
  { host, maps, secrets }: ViewDeps,
  { reach }: Pick<AccessView, 'reach'>,
  reporter: StoredReporter,
): Promise<FramesDeps> => {
  const [workspace, { masker }] = await Promise.all([realpath(host.place.workspace), secrets.now()])
  const repo = folderOfReporter(reporter)
  return {
    files: new SourceFiles({ root: workspace, reach, readsGit: false }, repo),
    ...{ maps, workspace, repo },
    clean: text => masker.mask(redacted(text)),
  }
}

/** What one caller sees of the issues. */
export class CallerView {
  readonly #views: IssueViews
  readonly #deps: ViewDeps
  readonly #access: AccessView
  readonly #isLimited: boolean

  constructor(views: IssueViews, deps: ViewDeps, access: AccessView, isLimited: boolean) {
    this.#views = views
    this.#deps = deps
    this.#access = access
    this.#isLimited = isLimited
  }

  /** Whether the caller may see an issue: that of no repository, or of one within reach. */
  async sees({ reporter }: Pick<StoredIssue, 'reporter'>): Promise<boolean> {
    const repo = this.#deps.reporters.stored(reporter)?.repo
    return repo === undefined || this.#access.sees(folderOfReporter({ repo }))
  }

  /** Refuses an issue that the caller may not see, or with `works` not work on. */
  async assertSees(issue: StoredIssue | undefined, id: string, works = false): Promise<StoredIssue> {
    if (!issue || !(await this.sees(issue))) return refuse('not-found', `there is no issue ${id}`)
    const repo = this.#deps.reporters.stored(issue.reporter)?.repo
    if (works && repo !== undefined && (await this.#access.access(folderOfReporter({ repo }))) === 'read')
      refuseReading(`issue ${id}`)
    return issue
  }

  async issue(issue: StoredIssue): Promise<Issue> {
    const { users, regressedAt, hours: _hours, top: _top, resolved, ignored, fix, ...rest } = issue
    const { applied: _applied, kept: _kept, entries: _entries, ...shown } = rest
    const location = await this.#locationOf(issue)
    return {
      ...shown,
      ...(regressedAt !== undefined && { regressed: true }),
      isNew: issue.firstSeen > (this.#deps.seenAt() ?? 0),
      ...(users && { users: users.length }),
      trend: trendOf(issue, Date.now()),
      ...(location && { location }),
      ...(resolved && { resolved: withoutSeq(resolved) }),
      ...(ignored && { ignored: withoutCount(ignored) }),
      ...(fix && { fix: { conversationId: fix.conversationId, at: fix.at } }),
    }
  }

  async #locationOf(issue: StoredIssue): Promise<IssueLocation | undefined> {
    const reporter = this.#deps.reporters.stored(issue.reporter)
    const found = reporter && (await this.#views.locationOf(issue, reporter))
    if (!found || (this.#isLimited && !(await this.#access.sees(found.path)))) return undefined
    return { ...(reporter.repo !== undefined && { repo: reporter.repo }), ...found }
  }

  /** An event with its frames mapped and found in the workspace. */
  async event(event: StoredEvent, { reporter }: Pick<StoredIssue, 'reporter'>): Promise<IssueEvent> {
    const from = this.#deps.reporters.stored(reporter)!
    const deps = await framesDeps(this.#deps, this.#access, from)
    return { ...event, exceptions: await shownExceptions(deps, event.exceptions) }
  }
}

const withoutSeq = ({ seq: _seq, ...rest }: NonNullable<StoredIssue['resolved']>) => rest
const withoutCount = ({ count: _count, ...rest }: NonNullable<StoredIssue['ignored']>) => rest
