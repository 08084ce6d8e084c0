import type { StateChange, StoredEvent, StoredIssue, StoredReporter, IssueIdentity } from './stored.js'
import { topFrame } from './ingest/read-event.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const HOURS = 24
const MOST_ENVIRONMENTS = 20
const MOST_USERS = 1_000
const MOST_RELEASES = 1_000

/** What an event did to its issue. */
export type EventEffect = 'new' | 'regressed' | 'reopened' | undefined

export const hourOf = (at: number): number => Math.floor(at / HOUR_MS)
export const dayNumber = (at: number): number => Math.floor(at / DAY_MS)

/** An issue before its first event. */
export const newIssue = (of: IssueIdentity, at: number): StoredIssue => ({
  ...of,
  ...{ state: 'open', count: 0, firstSeen: at, lastSeen: at, environments: [], hours: [] },
  ...{ applied: 0, kept: 0, entries: 0 },
})

/** Adds an event to what is counted of its reporter. */
export const countReported = (reporter: StoredReporter, { receivedAt, release }: StoredEvent, seq: number): void => {
  if (reporter.applied >= seq) return
  reporter.applied = seq
  beginDay(reporter, receivedAt)
  reporter.today.accepted += 1
  reporter.lastEventAt = receivedAt
  if (release === undefined || reporter.releases.some(([known]) => known === release)) return
  reporter.releases.push([release, seq])
  if (reporter.releases.length > MOST_RELEASES) reporter.releases.shift()
}

/** Begins to count anew on a new day. */
export const beginDay = (reporter: StoredReporter, now: number): void => {
  if (reporter.day === dayNumber(now)) return
  reporter.day = dayNumber(now)
  reporter.today = { accepted: 0, dropped: 0, limited: 0 }
}

/** Adds an event to its issue. */
export const countEvent = (
  issue: StoredIssue,
  of: IssueIdentity,
  event: StoredEvent,
  { releases }: Pick<StoredReporter, 'releases'>,
): EventEffect => {
  const isFirst = issue.count === 0
  const { receivedAt, release, environment, userHash } = event
  Object.assign(issue, of)
  issue.count += 1
  issue.lastSeen = Math.max(issue.lastSeen, receivedAt)
  if (release !== undefined) {
    issue.firstRelease ??= release
    issue.lastRelease = release
  }
  if (environment !== undefined && !issue.environments.includes(environment))
    issue.environments = [...issue.environments, environment].slice(-MOST_ENVIRONMENTS)
  if (userHash !== undefined) {
    issue.users ??= []
    if (issue.users.length < MOST_USERS && !issue.users.includes(userHash)) issue.users.push(userHash)
  }
  const top = topFrame(event)
  if (top) issue.top = top
  countHour(issue, hourOf(receivedAt))
  return isFirst ? 'new' : moved(issue, event, releases)
}

const countHour = (issue: StoredIssue, hour: number): void => {
  const last = issue.hours.at(-1)
  if (last?.[0] === hour) last[1] += 1
  else issue.hours.push([hour, 1])
  issue.hours = issue.hours.filter(([each]) => each > hour - HOURS)
}

/** The state that an event leads to. */
const moved = (
  issue: StoredIssue,
  { release, receivedAt }: StoredEvent,
  releases: StoredReporter['releases'],
): EventEffect => {
  const { resolved, ignored } = issue
  if (issue.state === 'resolved' && resolved && comesAgain(resolved, release, releases)) {
    issue.state = 'open'
    issue.regressedAt = receivedAt
    return 'regressed'
  }
  if (issue.state === 'ignored' && ignored) {
    const { until, untilCount, count } = ignored
    const isOver = until !== undefined && until <= receivedAt
    if (isOver || (untilCount !== undefined && issue.count - count >= untilCount)) {
      issue.state = 'open'
      issue.regressedAt = receivedAt
      delete issue.ignored
      return 'reopened'
    }
  }
  return undefined
}

const comesAgain = (
  { in: when, seq }: NonNullable<StoredIssue['resolved']>,
  release: string | undefined,
  releases: StoredReporter['releases'],
): boolean => {
  if (when === 'now') return true
  const known = releases.find(([each]) => each === release)
  return release !== undefined && (known === undefined || known[1] > seq)
}

/** Moves an issue to a state; false: it was there. */
export const changeState = (issue: StoredIssue, change: StateChange, seq: number): boolean => {
  if (issue.state === change.state) return false
  const { state, at, by, in: when = 'now', commit, until, untilCount } = change
  issue.state = state
  delete issue.regressedAt
  delete issue.ignored
  if (state !== 'open') delete issue.resolved
  if (state === 'resolved') issue.resolved = { at, by, in: when, seq, ...(commit !== undefined && { commit }) }
  if (state === 'ignored')
    issue.ignored = {
      ...{ at, by, count: issue.count },
      ...(until !== undefined && { until }),
      ...(untilCount !== undefined && { untilCount }),
    }
  return true
}

/** Events of each of the last 24 hours, the newest last. */
export const trendOf = ({ hours }: Pick<StoredIssue, 'hours'>, now: number): number[] => {
  const counts = new Map(hours)
  return Array.from({ length: HOURS }, (_, at) => counts.get(hourOf(now) - HOURS + 1 + at) ?? 0)
}
