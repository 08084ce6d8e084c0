import { refuse, type Input } from '../../sdk/index.js'
import type { IssuesCalls, IssueState } from './contract.js'
import type { StoredIssue } from './stored.js'
import type { CallerView } from './view.js'

type Asked = Input<IssuesCalls, 'GET /issues'>
type Sort = NonNullable<Asked['sort']>

const MOST = 200
const LISTED = 50

const VALUE: { readonly [sort in Sort]: (issue: StoredIssue) => number } = {
  last: ({ lastSeen }) => lastSeen,
  first: ({ firstSeen }) => firstSeen,
  count: ({ count }) => count,
  users: ({ users }) => users?.length ?? 0,
}

const fits = (issue: StoredIssue, { reporter, environment, release, level, query }: Asked): boolean => {
  const { title, type, culprit, top, firstRelease, lastRelease, environments } = issue
  const words = query?.trim().toLowerCase()
  return (
    (reporter === undefined || issue.reporter === reporter)
    && (environment === undefined || environments.includes(environment))
    && (release === undefined || firstRelease === release || lastRelease === release)
    && (level === undefined || issue.level === level)
    && (!words || [title, type, culprit, top?.file].some(text => text?.toLowerCase().includes(words)))
  )
}

/** A place in a list: the value that it is sorted by, and the issue. */
const cursorOf = (issue: StoredIssue, sort: Sort): string => `${sort}.${VALUE[sort](issue)}.${issue.id}`

const CURSOR = /^(last|first|count|users)\.(\d{1,16})\.(iss_[0-9a-f]{20})$/

/** Whether an issue comes after a place. */
const isAfter = (issue: StoredIssue, sort: Sort, after: string): boolean => {
  const [, of, value, id = ''] = CURSOR.exec(after) ?? []
  if (of !== sort)
    return refuse('invalid', `after: expected the next of a list with sort ${sort}, found ${JSON.stringify(after)}`)
  const own = VALUE[sort](issue)
  return own < Number(value) || (own === Number(value) && issue.id > id)
}

/** One page of what a caller sees of the issues. */
export const issuePage = async (all: readonly StoredIssue[], view: CallerView, asked: Asked) => {
  const { state = 'open', sort = 'last', limit = LISTED, after } = asked
  const counts: { [state in IssueState]: number } = { open: 0, resolved: 0, ignored: 0 }
  const found: StoredIssue[] = []
  for (const issue of all) {
    if (!fits(issue, asked) || !(await view.sees(issue))) continue
    counts[issue.state] += 1
    if (state === 'all' || issue.state === state) found.push(issue)
  }
  const value = VALUE[sort]
  const sorted = found.sort((one, other) => value(other) - value(one) || (one.id < other.id ? -1 : 1))
  if (after !== undefined && sorted.length === 0 && !CURSOR.test(after))
    refuse('invalid', `after: expected the next of a list, found ${JSON.stringify(after)}`)
  const rest = after === undefined ? sorted : sorted.filter(issue => isAfter(issue, sort, after))
  const page = rest.slice(0, Math.min(limit, MOST))
  const issues = await Promise.all(page.map(issue => view.issue(issue)))
  const more = rest.length > page.length
  return { issues, total: found.length, counts, ...(more && { next: cursorOf(page.at(-1)!, sort) }) }
}
