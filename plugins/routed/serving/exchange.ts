import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { pipeline, Readable, Transform } from 'node:stream'
import { ignored } from '../../../sdk/index.js'
import { drained } from '../../../sdk/node/concurrency/drained.js'
import type { ModelCall, StreamPart } from '../../../sdk/node/models/model-call.js'
import { requestTexts, withRequestTexts } from '../../../sdk/node/models/request-texts.js'
import { restoredAnswer } from '../../../sdk/node/models/restored-answer.js'
import type { CountedTokens, LeasedRequest, TableGrant, TableProvider } from '../link/messages.js'
import { AnswerParts, BrokenAnswer, type AnswerStep, type AnswerWriter } from '../translate/answer-parts.js'
import { ChatAnswerWriter } from '../translate/chat-answer.js'
import { fromChat } from '../translate/chat-request.js'
import { errorWords } from '../translate/errors.js'
import { Unsayable, type Fields } from '../translate/fields.js'
import { MessagesAnswerWriter } from '../translate/messages-answer.js'
import { fromMessages } from '../translate/messages-request.js'
import { ResponsesAnswerWriter } from '../translate/responses-answer.js'
import { fromResponses } from '../translate/responses-request.js'
import type { TranslatedProtocol, TranslatedRequest } from '../translate/translated.js'
import { callFor, upstreamModel } from '../translate/upstream-model.js'
import { AccountSender, OtherAccount } from './account-sender.js'
import type { DaemonLink } from './daemon-link.js'
import { causeOf, ServingFailure } from './failure.js'
import { TokenSniffer } from './token-sniffer.js'

/** A request of a program or a loop. */
export interface AskedRequest {
  readonly protocol: TranslatedProtocol
  readonly provider: TableProvider
  readonly grant: TableGrant
  /** The model without the id of its provider. */
  readonly model: string
  readonly body: Fields
  /** Headers that say something to a server of the same protocol. */
  readonly passed: { readonly [name: string]: string }
  readonly signal: AbortSignal
}

const PATHS: { readonly [P in TranslatedProtocol]: string } = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
}
const READERS: { readonly [P in TranslatedProtocol]: (body: Fields) => TranslatedRequest } = {
  chat: fromChat,
  messages: fromMessages,
  responses: fromResponses,
}

const writerFor = (protocol: TranslatedProtocol, model: string, tellsUsage: boolean): AnswerWriter => {
  const id = randomBytes(12).toString('hex')
  if (protocol === 'chat') return new ChatAnswerWriter(id, model, tellsUsage)
  return protocol === 'messages' ? new MessagesAnswerWriter(id, model) : new ResponsesAnswerWriter(id, model)
}

/** What of headers says something of limits. */
const LIMITS = /limit|retry-after|used|remaining|reset|opens/i

/** Answers one request, and tells the daemon when it is over. */
export const answerRequest = async (asked: AskedRequest, link: DaemonLink, out: ServerResponse): Promise<void> => {
  const { grant, model, provider, protocol } = asked
  const sender = new AccountSender({ link, grant, model })
  link.tell({ news: 'begun', grant: grant.id })
  let tokens: CountedTokens | undefined
  let failed = true
  try {
    await sender.lease()
    for (let sent = false; !sent;) {
      const leased = sender.leased!
      try {
        tokens =
          provider.protocol === protocol && !leased.masks
            ? await passOn(asked, sender, out)
            : await translate(asked, sender, link, leased, out)
        sent = true
      } catch (error) {
        if (!causeOf(error, OtherAccount)) throw error
      }
    }
    failed = false
  } finally {
    const { lease, account } = sender.leased ?? {}
    const headers = Object.entries(sender.answered ?? {}).filter(([name, value]) => value && LIMITS.test(name))
    link.tell({
      ...{ news: 'over', grant: grant.id, failed, retried: sender.retried },
      ...(lease !== undefined && { lease }),
      ...(account !== undefined && { account }),
      ...(tokens && { tokens }),
      ...(sender.answered && { headers: Object.fromEntries(headers.map(([name, value]) => [name, String(value)])) }),
    })
  }
}

/** Passes a request on to a server of the same protocol: only its model is named in the server's words. */
const passOn = async (
  { protocol, provider, model, body, passed, signal }: AskedRequest,
  sender: AccountSender,
  out: ServerResponse,
): Promise<CountedTokens | undefined> => {
  const answer = await sender.send({
    url: new URL(provider.base + PATHS[protocol]),
    headers: { 'content-type': 'application/json', ...passed },
    body: JSON.stringify({ ...body, model }),
    signal,
  })
  const type = answer.headers['content-type'] ?? 'application/json'
  const sniffer = new TokenSniffer(/event-stream/.test(type))
  out.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' })
  try {
    for await (const piece of answer.body as AsyncIterable<Buffer>) {
      sniffer.take(piece)
      if (!out.write(piece)) await drained(out, signal)
    }
  } catch (error) {
    // What was sent cannot be taken back: the caller sees that the answer broke off.
    out.destroy()
    throw error
  }
  out.end()
  return sniffer.end()
}

const translate = async (
  asked: AskedRequest,
  sender: AccountSender,
  link: DaemonLink,
  { masks, account }: LeasedRequest,
  out: ServerResponse,
): Promise<CountedTokens | undefined> => {
  const { protocol, provider, grant, body, signal } = asked
  const translated = READERS[protocol](body)
  const row = provider.models.find(({ id }) => id === asked.model)
  const server = {
    ...{ protocol: provider.protocol, base: provider.base, model: asked.model },
    ...(row?.maxOutput !== undefined && { maxOutput: row.maxOutput }),
    send: sendOver(sender, signal),
  }
  let call: ModelCall = { ...callFor(server, translated), abortSignal: signal }
  let tokensOf = new Map<string, string>()
  if (masks) {
    const about = account === undefined ? {} : { account }
    const { texts, tokens } = await link.ask('mask', { grant: grant.id, ...about, ...requestTexts(call) })
    if (texts) call = withRequestTexts(call, texts)
    tokensOf = new Map(tokens?.map(({ token, value }) => [token, value]))
  }
  const { stream } = await upstreamModel(server)
    .doStream(call)
    .then(undefined, error => Promise.reject(causeOf(error, OtherAccount) ?? servedFailure(error)))
  const restored =
    tokensOf.size === 0
      ? stream
      : stream
          .pipeThrough(withoutPartialCalls())
          .pipeThrough(restoredAnswer(tokensOf, counts => link.tell({ news: 'restored', grant: grant.id, ...counts })))
  return write(asked, translated, restored, out)
}

/** Writes an answer in the protocol of its request. */
const write = async (
  { protocol, provider, model, signal }: AskedRequest,
  { stream: streamed, tellsUsage, dropped }: TranslatedRequest,
  stream: ReadableStream<StreamPart>,
  out: ServerResponse,
): Promise<CountedTokens | undefined> => {
  const writer = writerFor(protocol, `${provider.id}/${model}`, tellsUsage)
  const parts = new AnswerParts()
  const names = new Set(dropped)
  let end: Extract<AnswerStep, { step: 'end' }> | undefined
  const begin = (): void => {
    const headers = names.size > 0 && { 'x-translator-dropped': headerOf(names) }
    out.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', ...headers })
    out.write(writer.begin())
  }
  try {
    for await (const part of stream) {
      if (part.type === 'stream-start') for (const warning of part.warnings) addWarning(names, warning)
      const steps = parts.take(part)
      if (steps.length > 0 && streamed && !out.headersSent) begin()
      let text = ''
      for (const step of steps) {
        if (step.step === 'end') end = step
        if (streamed) text += writer.step(step)
      }
      if (text && !out.write(text)) await drained(out, signal)
    }
    if (!end) throw new BrokenAnswer('the provider ended in the middle of its answer')
  } catch (error) {
    const failure = servedFailure(error)
    if (!out.headersSent) throw failure
    out.end(writer.fail(failure))
    throw failure
  }
  const { ending, tokens } = end
  if (streamed) out.end()
  else sendWhole(out, writer.whole(parts.items, ending, tokens), names)
  return tokens
}

const sendWhole = (out: ServerResponse, answer: object, names: ReadonlySet<string>): void => {
  const headers = names.size > 0 && { 'x-translator-dropped': headerOf(names) }
  out.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers })
  out.end(JSON.stringify(answer))
}

const MOST_NAMES = 2_000

/** Names of fields as a header takes them. */
const headerOf = (names: ReadonlySet<string>): string =>
  [...names]
    .join(', ')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .slice(0, MOST_NAMES)

type Warning = Extract<StreamPart, { type: 'stream-start' }>['warnings'][number]

/** Packages name in their own words what they leave out. */
const addWarning = (names: Set<string>, warning: Warning): void => {
  if (warning.type !== 'unsupported' || /^providerOptions/.test(warning.feature)) return
  if (/^tool /.test(warning.feature)) throw new Unsayable(`${warning.feature}: the provider does not take it`)
  names.add(warning.feature.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`))
}

/** Values of calls are restored in whole calls: a token may be cut by two pieces of JSON. */
const withoutPartialCalls = (): TransformStream<StreamPart, StreamPart> =>
  new TransformStream({
    transform: (part, out) => {
      if (!part.type.startsWith('tool-input-')) out.enqueue(part)
    },
  })

/** The most bytes of an answer that is translated, as of those that the sandbox's own loop asks for. */
const MOST_ANSWER = 32 * 1024 * 1024

/** Passes on an answer up to a size: packages keep a line until its end. */
const answerWithin = (most: number): Transform => {
  let size = 0
  return new Transform({
    transform: (piece: Buffer, _, done) => {
      size += piece.length
      if (size <= most) done(null, piece)
      else done(new ServingFailure(502, `the provider answers with more than ${most} bytes`))
    },
  })
}

/** The `fetch` of packages, which sends with the credential of an account. */
const sendOver =
  (sender: AccountSender, signal: AbortSignal): typeof fetch =>
  async (input, init = {}) => {
    const headers = Object.fromEntries(
      [...new Headers(init.headers)].filter(
        ([name]) => !['authorization', 'x-api-key', 'content-length'].includes(name),
      ),
    )
    const url = new URL(input instanceof Request ? input.url : String(input))
    const answer = await sender.send({ url, headers, body: String(init.body ?? ''), signal })
    const { headers: answered } = answer
    const body = pipeline(answer.body, answerWithin(MOST_ANSWER), ignored('the reader gets the failure'))
    const type = answered['content-type'] ?? 'text/event-stream'
    return new Response(Readable.toWeb(body) as ReadableStream<Uint8Array>, { headers: { 'content-type': type } })
  }

/** The failure that an error of a package, of the translation or of the provider is for the caller. */
export const servedFailure = (error: unknown): ServingFailure => {
  const own = causeOf(error, ServingFailure)
  if (own) return own
  if (error instanceof Unsayable) return new ServingFailure(400, error.message)
  const name = error instanceof Error ? error.name : ''
  const words = error instanceof Error ? error.message : errorWords(JSON.stringify(error) ?? '')
  if (/^AI_(UnsupportedFunctionality|InvalidPrompt|InvalidArgument|UnsupportedModel)/.test(name))
    return new ServingFailure(400, `the provider does not take this: ${words}`)
  if (/^AI_/.test(name)) return new ServingFailure(502, `the answer of the provider is none of its protocol: ${words}`)
  return new ServingFailure(statusIn(error) ?? 502, words || 'the provider ended the answer with an error')
}

const STATUSES: { readonly [type: string]: number } = {
  overloaded_error: 529,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  authentication_error: 401,
  permission_error: 403,
  invalid_request_error: 400,
}

/** The status that a provider names in the middle of an answer. */
const statusIn = (error: unknown): number | undefined => {
  const inner = (error as { error?: unknown } | undefined)?.error ?? error
  const { type, code } = (inner ?? {}) as { type?: unknown; code?: unknown }
  return [code, type].flatMap(each => (typeof each === 'string' ? (STATUSES[each] ?? []) : []))[0]
}
