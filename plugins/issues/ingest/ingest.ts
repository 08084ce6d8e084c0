import { refuse, Refusal, type Context } from '../../../sdk/index.js'
import { Budget } from '../../../sdk/node/access/budget.js'
import type { CurrentMasker } from '../../../sdk/node/access/value-masker.js'
import type { Issues } from '../issues.js'
import type { Reporters } from '../reporters.js'
import type { StoredReporter } from '../stored.js'
import type { IngestInput } from './contract.js'
import { isUnderstood, objectOf, readEnvelope, type Envelope, type EnvelopeItem, type GivenObject } from './envelope.js'
import { reportedText } from './frames.js'
import { ReportLimits } from './limits.js'
import { eventIdOf, newEventId, readEvent, readFeedback, type ReadingOptions } from './read-event.js'
import { unpackedBody } from './unpack.js'

const MOST_UNPACKED = 8 * 1024 * 1024
const MOST_EVENT = 1024 * 1024
const WRONG_KEYS = 60

export interface IngestDeps {
  readonly issues: Issues
  readonly reporters: Reporters
  readonly secrets: CurrentMasker
  /** The key of the hashes of users. */
  readonly salt: string
  /** Called when a reporter reaches the events of a day. */
  readonly limited: (reporter: StoredReporter) => void
}

/** Takes what programs report. */
export class Ingest {
  readonly #deps: IngestDeps
  readonly #limits = new ReportLimits()
  readonly #wrong = new Budget(WRONG_KEYS)

  constructor(deps: IngestDeps) {
    this.#deps = deps
  }

  /** Takes an envelope, or one event as JSON. */
  async take(input: IngestInput, { http }: Pick<Context, 'http'>, as: 'envelope' | 'event'): Promise<{ id: string }> {
    const address = http?.address ?? ''
    const key = input.sentry_key ?? keyOf(input['x-sentry-auth'])
    let reporter = key === undefined ? undefined : this.#admitted(input.project, key, address, http?.pageOrigin)
    const bytes = Buffer.from(input.body ?? '', 'base64')
    const text = await unpackedBody(bytes, http?.contentEncoding, as === 'event' ? MOST_EVENT : MOST_UNPACKED)
    const envelope = as === 'event' ? ofEvent(text) : readEnvelope(text)
    // The key of the header is as good as one in the request.
    reporter ??= this.#admitted(input.project, keyOfDsn(envelope.header.dsn) ?? '', address, http?.pageOrigin)
    return { id: await this.#takeAll(reporter, envelope, address) }
  }

  #admitted(project: number, key: string, address: string, origin: string | undefined): StoredReporter {
    const reporter = this.#deps.reporters.admitted(project, key)
    if (!reporter) {
      this.#wrong.spend(address)
      return refuse('unauthenticated', 'the key is missing, or not that of this reporter')
    }
    if (!reporter.enabled) refuse('forbidden', 'this reporter is switched off')
    const { allowedOrigins } = reporter
    if (allowedOrigins.length > 0 && (origin === undefined || !allowedOrigins.includes(origin.toLowerCase())))
      refuse('forbidden', 'this reporter takes reports of pages of certain origins alone, and this is none of them')
    return reporter
  }

  async #takeAll(reporter: StoredReporter, { header, items }: Envelope, address: string): Promise<string> {
    const { issues, reporters, secrets, salt } = this.#deps
    if (!items.some(isUnderstood)) refuse('invalid', 'expected an envelope with an item that can be read, found none')
    if (issues.behind)
      refuse('unavailable', 'more is reported than can be stored now', { retryAfter: 5, headers: LATER })
    const { masker } = await secrets.now()
    const now = Date.now()
    const options: ReadingOptions = { reporter, masker, salt, address, now }
    let id = eventIdOf(header.event_id)
    let broken: Refusal | undefined
    for (const item of items) {
      try {
        id = (await this.#takeItem(item, id, options, reporter)) ?? id
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        broken ??= error
        if (error.reason !== 'too-many') reporters.count(reporter, 'dropped', 1, now)
      }
    }
    if (broken) throw broken
    return id ?? newEventId()
  }

  /** Keeps an item; returns the id of an event. */
  async #takeItem(
    { type, payload }: EnvelopeItem,
    id: string | undefined,
    options: ReadingOptions,
    reporter: StoredReporter,
  ): Promise<string | undefined> {
    const { issues, reporters } = this.#deps
    const drop = () => void reporters.count(reporter, 'dropped', 1, options.now)
    if (!payload) return drop()
    if (type === 'event') return this.#takeEvent(payload, id, options, reporter)
    const feedback = readFeedback(type, payload, options)
    if (!feedback) return drop()
    const issue = feedback.event === undefined ? undefined : issues.issueOf(reporter.id, feedback.event)
    if (feedback.event !== undefined && issue !== undefined)
      return void (await issues.addFeedback(issue, feedback.event, feedback.text))
    if (type === 'user_report') return drop()
    const words = { ...payload, message: `Feedback: ${feedback.text}`, level: 'info' }
    return this.#takeEvent(words, id, options, reporter)
  }

  async #takeEvent(
    given: GivenObject,
    header: string | undefined,
    options: ReadingOptions,
    reporter: StoredReporter,
  ): Promise<string> {
    const { issues, reporters, limited } = this.#deps
    const id = eventIdOf(given.event_id) ?? header ?? newEventId()
    if (issues.issueOf(reporter.id, id) !== undefined) return id
    try {
      reporters.count(reporter, 'limited', 0, options.now)
      this.#limits.spend(reporter, options.now)
    } catch (error) {
      if (reporter.today.accepted >= reporter.dailyMax && reporter.today.limited === 0) limited(reporter)
      reporters.count(reporter, 'limited', 1, options.now)
      throw error
    }
    const { event, of } = readEvent(given, id, options)
    await issues.addEvent(of, event)
    return id
  }
}

const LATER = { 'x-sentry-rate-limits': '5:error:organization' }

const ofEvent = (text: Buffer): Envelope => {
  const payload =
    objectOf(text) ?? refuse('invalid', `expected one event as a JSON object, found ${text.length} bytes that are none`)
  return { header: {}, items: [{ type: 'event', payload }] }
}

const keyOf = (header: string | undefined): string | undefined =>
  /(?:^|[\s,])sentry_key=([^,\s]+)/i.exec(header ?? '')?.[1]

const keyOfDsn = (dsn: unknown): string | undefined => {
  const text = reportedText(dsn)
  return text === undefined ? undefined : URL.parse(text)?.username
}
