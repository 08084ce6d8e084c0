import { refuse, type Context, type Handlers, type Host, type Input } from '../../sdk/index.js'
import { publicAddress, type PublicAddress } from '../../sdk/node/pages/public-address.js'
import { record } from '../../sdk/node/record/record.js'
import { repoFolder } from '../../sdk/node/repositories/repo-folder.js'
import { beginDay } from './apply.js'
import type { IssuesCalls, IssuesWaiting, Reporter } from './contract.js'
import type { Fixes } from './fix/fixes.js'
import type { Ingest } from './ingest/ingest.js'
import type { Issues } from './issues.js'
import { issuePage } from './list.js'
import type { Reporters } from './reporters.js'
import type { StateChange, StoredIssue, StoredReporter } from './stored.js'
import type { IssueViews } from './view.js'

const EVENTS = 1
const MOST_EVENTS = 50

export interface IssueCallDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'place' | 'log'>
  readonly issues: Issues
  readonly reporters: Reporters
  readonly views: IssueViews
  readonly fixes: Fixes
  readonly ingest: Ingest
  readonly waiting: () => IssuesWaiting
  /** Notifies watchers of an issue or a reporter that changed. */
  readonly published: (key: string) => void
}

type StateAsked = Input<IssuesCalls, 'POST /issues/state'>

/** Refuses fields that belong to another state. */
const assertFits = ({ state, in: when, until, untilCount, commit }: StateAsked): void => {
  const wrong = (path: string, expected: string) =>
    refuse('invalid', `${path}: expected ${expected}, found it with state ${state}`, { errors: [{ path, expected }] })
  if (state !== 'resolved' && when !== undefined) wrong('in', 'it with state resolved alone')
  if (state !== 'resolved' && commit !== undefined) wrong('commit', 'it with state resolved alone')
  if (state !== 'ignored' && until !== undefined) wrong('until', 'it with state ignored alone')
  if (state !== 'ignored' && untilCount !== undefined) wrong('untilCount', 'it with state ignored alone')
  if (until !== undefined && until <= Date.now())
    refuse('invalid', 'until: expected a time to come, found one that has passed', {
      errors: [{ path: 'until', expected: 'a time to come', value: String(until) }],
    })
}

/** A reporter as maintainers see it. */
const shownReporter = (reporter: StoredReporter, base: string): Reporter => {
  beginDay(reporter, Date.now())
  const { day: _day, releases: _releases, applied: _applied, removed: _removed, today, ...rest } = reporter
  const dsn = new URL(`${base}/ingest/${reporter.id}`)
  dsn.username = reporter.key
  return { ...rest, dsn: dsn.href, today: { ...today } }
}

/** Serves the calls of the group. */
export const issueCalls = (deps: IssueCallDeps): Handlers<IssuesCalls> => {
  const { host, issues, reporters, views, fixes, ingest, waiting, published } = deps
  /** Where programs reach this sandbox; reports are taken also where nothing is served in public. */
  const address = async ({ http }: Pick<Context, 'http'>): Promise<Required<PublicAddress>> => {
    const { url } = host.place.publicPages
    const { base, reach } = await publicAddress({ ...host, place: { ...host.place, publicPages: { url } } }, http)
    return { base: base!, reach }
  }

  return {
    'GET /issues': async (asked, { caller }) => {
      const page = await issuePage(issues.all, await views.for(caller), asked)
      return { ...page, ...(issues.seenAt !== undefined && { seenAt: issues.seenAt }) }
    },
    'GET /issues/{id}': async ({ id, limit = EVENTS, before = Infinity, event }, { caller }) => {
      const view = await views.for(caller)
      const issue = await view.assertSees(issues.find(id), id)
      const kept = await issues.events(id)
      const found = kept.filter(each => (event === undefined ? each.receivedAt < before : each.id === event))
      if (event !== undefined && found.length === 0) refuse('not-found', `event ${event} of issue ${id} is not kept`)
      const page = found.slice(0, Math.min(limit, MOST_EVENTS))
      return {
        issue: await view.issue(issue),
        events: await Promise.all(page.map(each => view.event(each, issue))),
        ...(found.length > page.length && { next: page.at(-1)!.receivedAt }),
      }
    },
    'POST /issues/state': async (asked, context) => {
      assertFits(asked)
      const { ids, state, in: when, until, untilCount, commit } = asked
      const view = await views.for(context.caller)
      const found: StoredIssue[] = []
      for (const id of new Set(ids)) found.push(await view.assertSees(issues.find(id), id, true))
      const change: StateChange = {
        ...{ state, at: Date.now(), by: context.caller.actor },
        ...(when !== undefined && { in: when }),
        ...(commit !== undefined && { commit }),
        ...(until !== undefined && { until }),
        ...(untilCount !== undefined && { untilCount }),
      }
      const moving = found.filter(issue => issue.state !== state)
      if (moving.length > 0) {
        await issues.change(
          moving.map(({ id }) => id),
          change,
        )
        for (const { id, title } of moving)
          await record(host, { type: 'issue.state', audience: 'viewer', title, extra: { id, state } }, context)
      }
      return { issues: await Promise.all(found.map(issue => view.issue(issue))) }
    },
    'POST /issues/{id}/fix': async (asked, context) => {
      const view = await views.for(context.caller)
      const issue = await view.assertSees(issues.find(asked.id), asked.id, true)
      const { conversationId, run, isFirst } = await fixes.start(issue, asked, view, context)
      if (isFirst) {
        const { id, title } = issue
        const told = { type: 'issue.fix', audience: 'viewer', conversationId, title, extra: { id } } as const
        await record(host, told, context)
      }
      return { conversationId, run }
    },
    'POST /issues/seen': async () => {
      const seenAt = Math.max(Date.now(), issues.newest)
      await issues.see(seenAt)
      published('seen')
      return { seenAt }
    },
    'GET /issues/reporters': async (_input, context) => {
      const { base, reach } = await address(context)
      return {
        reporters: reporters.all.map(each => shownReporter(each, base)),
        ...{ ingest: `${base}/ingest/`, reach },
      }
    },
    'POST /issues/reporters': async ({ repo, ...asked }, context) => {
      const tree = { root: host.place.workspace, reach: undefined, readsGit: false }
      if (repo !== undefined) await repoFolder(tree, repo)
      const draft = { ...asked, ...(repo !== undefined && { repo }) }
      const reporter = await reporters.save(draft, context.caller.actor, Date.now())
      published(`reporter-${reporter.id}`)
      const extra = { id: reporter.id, label: reporter.label, enabled: reporter.enabled }
      await record(host, { type: 'reporter.saved', extra }, context)
      return shownReporter(reporter, (await address(context)).base)
    },
    'DELETE /issues/reporters/{id}': async ({ id, purge = false }, context) => {
      const { label } = reporters.get(id)
      await reporters.remove(id, purge)
      const purged = purge ? await issues.purge(id) : 0
      published(`reporter-${id}`)
      await record(host, { type: 'reporter.removed', extra: { id, label, purged } }, context)
      return { ok: true, purged }
    },
    'POST /ingest/api/{project}/envelope/': (input, context) => ingest.take(input, context, 'envelope'),
    'POST /ingest/api/{project}/store/': (input, context) => ingest.take(input, context, 'event'),
    'issues.waiting': () => waiting(),
  }
}
