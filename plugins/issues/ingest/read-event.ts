import { createHmac, randomBytes } from 'node:crypto'
import type { Masker } from '../../../sdk/node/access/masker.js'
import type { IssueLevel } from '../contract.js'
import type { IssueIdentity, ReportedFrame, StoredEvent } from '../stored.js'
import type { GivenObject } from './envelope.js'
import { issueIdOf } from './fingerprint.js'
import { exceptionsOf, reportedList, reportedText } from './frames.js'
import { reportedFields, Scrubber } from './scrub.js'

const MOST_TITLE = 200
const MOST_NAME = 200
const MOST_TAGS = 50
const MOST_BREADCRUMBS = 100
const MOST_EXTRA = 16 * 1024
const MOST_MESSAGE = 8_000
const MOST_FINGERPRINT = 20
const EARLY_MS = 90 * 24 * 3_600_000
const LATE_MS = 5 * 60_000
const EVENT_ID = /^[0-9a-f]{32}$/
const LEVELS = new Map<string, IssueLevel>([
  ...(['fatal', 'error', 'warning', 'info', 'debug'] as const).map(level => [level, level] as const),
  ...([
    ['critical', 'fatal'],
    ['warn', 'warning'],
    ['log', 'info'],
  ] as const),
])

/** What of a reporter and of the request decides how its events are read. */
export interface ReadingOptions {
  readonly reporter: { readonly id: number; readonly keepUser: boolean }
  readonly masker: Masker
  /** The key of the hashes of users. */
  readonly salt: string
  /** The address that the request came from. */
  readonly address: string
  readonly now: number
}

/** An event as it is stored, and the issue that it belongs to. */
export interface ReadEvent {
  readonly event: StoredEvent
  readonly of: IssueIdentity
}

/** The id of an event as 32 hexadecimal digits; undefined: it is none. */
export const eventIdOf = (value: unknown): string | undefined => {
  const id = typeof value === 'string' ? value.replaceAll('-', '').toLowerCase() : ''
  return EVENT_ID.test(id) ? id : undefined
}

export const newEventId = (): string => randomBytes(16).toString('hex')

/** Seconds since the epoch, or a date; a time that cannot be is that of the arrival. */
const timeOf = (value: unknown, now: number): number => {
  const ms = typeof value === 'number' ? Math.round(value * 1000) : typeof value === 'string' ? dateOf(value) : NaN
  return ms > now - EARLY_MS && ms < now + LATE_MS ? ms : now
}

const dateOf = (text: string): number => {
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1000)
  return Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`)
}

interface User {
  readonly personal: readonly string[]
  readonly hash?: string
  readonly shown?: GivenObject
}

const userOf = (event: GivenObject, { reporter, salt, address }: ReadingOptions): User => {
  const given = reportedFields(event.user)
  const ip = reportedText(given.ip_address) === '{{auto}}' ? address : reportedText(given.ip_address)
  const id = typeof given.id === 'number' ? String(given.id) : reportedText(given.id)
  const [email, username] = [reportedText(given.email), reportedText(given.username)]
  const named = id ?? email ?? username ?? ip
  const shown = { ...(id && { id }), ...(email && { email }), ...(username && { username }), ...(ip && { ip }) }
  return {
    personal: reporter.keepUser ? [] : [email, ip].filter(text => text !== undefined),
    ...(named !== undefined && { hash: createHmac('sha256', salt).update(named).digest('base64url').slice(0, 16) }),
    ...(reporter.keepUser && named !== undefined && { shown }),
  }
}

const messageOf = (event: GivenObject): string | undefined => {
  const entry = reportedFields(event.logentry ?? event.message)
  return reportedText(entry.formatted) ?? reportedText(entry.message) ?? reportedText(event.message)
}

const tagsOf = (value: unknown, scrub: Scrubber): { [tag: string]: string } => {
  const given: unknown[] = Array.isArray(value) ? value : Object.entries(reportedFields(value))
  const pairs = given.filter(pair => Array.isArray(pair)).slice(0, MOST_TAGS)
  const tags = Object.create(null) as { [tag: string]: string }
  for (const [name, text] of pairs as [unknown, unknown][])
    if (typeof name === 'string' && ['string', 'number', 'boolean'].includes(typeof text))
      tags[scrub.text(name, MOST_NAME)] = scrub.field(name, String(text), MOST_NAME)
  return { ...tags }
}

const breadcrumbsOf = (event: GivenObject, scrub: Scrubber, now: number): StoredEvent['breadcrumbs'] =>
  reportedList(event.breadcrumbs)
    .slice(-MOST_BREADCRUMBS)
    .map(({ timestamp, category, level, message, data }) => {
      const text = reportedText(message) ?? (data === undefined ? undefined : JSON.stringify(scrub.value('', data)))
      return {
        ...(timestamp !== undefined && { at: timeOf(timestamp, now) }),
        ...(reportedText(category) !== undefined && { category: scrub.text(reportedText(category)!, MOST_NAME) }),
        ...(reportedText(level) !== undefined && { level: scrub.text(reportedText(level)!, 20) }),
        ...(text !== undefined && { message: scrub.text(text, 1_000) }),
      }
    })

const nameAndVersion = (value: unknown): string | undefined => {
  const { name, version, model, family } = reportedFields(value)
  const text = [reportedText(name) ?? reportedText(model) ?? reportedText(family), reportedText(version)]
    .filter(Boolean)
    .join(' ')
  return text === '' ? undefined : text
}

const BROWSERS = [
  [/\bEdg\/([\d.]+)/, 'Edge'],
  [/\bFirefox\/([\d.]+)/, 'Firefox'],
  [/\bChrome\/([\d.]+)/, 'Chrome'],
  [/\bVersion\/([\d.]+).*\bSafari\//, 'Safari'],
] as const

const browserOf = (contexts: GivenObject, request: GivenObject): string | undefined => {
  const named = nameAndVersion(contexts.browser)
  const headers = Object.entries(reportedFields(request.headers))
  const agent = headers.find(([name]) => name.toLowerCase() === 'user-agent')?.[1]
  if (named !== undefined || typeof agent !== 'string') return named
  for (const [form, name] of BROWSERS) {
    const version = form.exec(agent)?.[1]
    if (version !== undefined) return `${name} ${version}`
  }
  return undefined
}

const extraOf = (event: GivenObject, user: User, scrub: Scrubber): StoredEvent['extra'] => {
  const extra = scrub.object({ ...reportedFields(event.extra), ...(user.shown && { user: user.shown }) })
  if (Object.keys(extra).length === 0) return undefined
  const text = JSON.stringify(extra)
  return text.length > MOST_EXTRA ? { cut: scrub.text(text, MOST_EXTRA) } : extra
}

/** The newest frame of the program's own code. */
export const topFrame = ({ exceptions }: Pick<StoredEvent, 'exceptions'>): ReportedFrame | undefined => {
  const frames = exceptions.flatMap(each => each.frames)
  const found = frames.find(({ own, file }) => own && file !== undefined)
  if (!found) return undefined
  const { before: _before, after: _after, source: _source, ...frame } = found
  return frame
}

const titleOf = ({ exceptions: [first], message }: StoredEvent): string => {
  const text = first ? [first.type, first.value].filter(Boolean).join(': ') : (message ?? '')
  const [line = ''] = text.trim().split('\n', 1)
  return line.slice(0, MOST_TITLE).toWellFormed() || 'An event without a message'
}

/** An event of a program as it is stored, and its issue. */
export const readEvent = (given: GivenObject, id: string, options: ReadingOptions): ReadEvent => {
  const { reporter, masker, now } = options
  const user = userOf(given, options)
  const scrub = new Scrubber(masker, user.personal)
  const contexts = reportedFields(given.contexts)
  const request = reportedFields(given.request)
  const [message, sdk, extra] = [messageOf(given), reportedFields(given.sdk), extraOf(given, user, scrub)]
  const level = LEVELS.get(reportedText(given.level) ?? '') ?? 'error'
  const named = (field: string, value: string | undefined, most = MOST_NAME) =>
    value === undefined ? {} : { [field]: scrub.text(value, most) }
  const event: StoredEvent = {
    ...{ id, at: timeOf(given.timestamp, now), receivedAt: now, level },
    ...named('message', message, MOST_MESSAGE),
    exceptions: exceptionsOf(given, scrub),
    breadcrumbs: breadcrumbsOf(given, scrub, now),
    tags: tagsOf(given.tags, scrub),
    ...named('release', reportedText(given.release)),
    ...named('environment', reportedText(given.environment)),
    ...named('url', reportedText(request.url), 1_000),
    ...named('transaction', reportedText(given.transaction)),
    ...named('runtime', nameAndVersion(contexts.runtime)),
    ...named('os', nameAndVersion(contexts.os)),
    ...named('browser', browserOf(contexts, request)),
    ...named('device', nameAndVersion(contexts.device)),
    ...(user.hash !== undefined && { userHash: user.hash }),
    ...(reportedText(sdk.name) !== undefined && {
      sdk: {
        name: scrub.text(reportedText(sdk.name)!, 100),
        version: scrub.text(reportedText(sdk.version) ?? '', 100),
      },
    }),
    ...(extra && { extra }),
  }
  const fingerprint = Array.isArray(given.fingerprint) ? given.fingerprint.map(String).slice(0, MOST_FINGERPRINT) : []
  const top = topFrame(event)
  const place = [top?.function, top?.file && `(${top.file})`].filter(Boolean).join(' ')
  const culprit = (event.transaction ?? place).slice(0, MOST_TITLE)
  const [type, platform] = [event.exceptions[0]?.type, reportedText(given.platform)]
  return {
    event,
    of: {
      ...{ id: issueIdOf(reporter.id, event, fingerprint), reporter: reporter.id, title: titleOf(event), level },
      ...(type !== undefined && { type }),
      ...(culprit && { culprit }),
      ...(platform !== undefined && { platform: scrub.text(platform, 40) }),
    },
  }
}

/** What a user wrote, and about which event. */
export const readFeedback = (
  type: string,
  given: GivenObject,
  { masker }: Pick<ReadingOptions, 'masker'>,
): { event: string | undefined; text: string } | undefined => {
  const { message, comments, associated_event_id: associated } = reportedFields(reportedFields(given.contexts).feedback)
  const text = type === 'user_report' ? reportedText(given.comments) : (reportedText(message) ?? reportedText(comments))
  if (text === undefined) return undefined
  const event = eventIdOf(type === 'user_report' ? given.event_id : associated)
  return { event, text: new Scrubber(masker, []).text(text, MOST_MESSAGE) }
}
