import type { ErrorCode } from '../../turn/frames/frames.js'

/** The details of a failure of a model server. */
export interface FaultDetails {
  readonly status?: number
  /** The same request may succeed later. */
  readonly again?: boolean
  /** The delay that the server requested. */
  readonly retryAfterMs?: number
  readonly code?: ErrorCode
}

/** A model server refused, failed or did not answer; the message is a sentence for people, without secrets. */
export class ServerFault extends Error {
  readonly details: FaultDetails
  constructor(message: string, details: FaultDetails = {}) {
    super(message)
    this.details = details
  }
}

const MOST_WORDS = 400
const TOO_LONG =
  /context.?(length|size|window)|too (long|many tokens)|maximum.{0,40}tokens|exceeds? .{0,40}(context|token)/i
const NO_MODEL = /model/i
/** Types of errors in the middle of a stream, as the status that such a failure has before it. */
const STREAM_ERRORS: { readonly [type: string]: number } = {
  overloaded_error: 529,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  authentication_error: 401,
  permission_error: 403,
  invalid_request_error: 400,
  not_found_error: 404,
  context_length_exceeded: 400,
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as { [name: string]: unknown })[name] : undefined

const textField = (value: unknown, ...names: string[]): string | undefined => {
  for (const name of names) {
    const found = fieldOf(value, name)
    if (typeof found === 'string' && found.trim()) return found
  }
  return undefined
}

/** The error message of a server, in any of the protocols' forms. */
export const refusalWords = (body: unknown): string => {
  const error = fieldOf(body, 'error')
  const said =
    (typeof body === 'string' ? body : undefined)
    ?? (typeof error === 'string' ? error : undefined)
    ?? textField(error, 'message', 'type', 'code')
    ?? textField(body, 'message', 'detail', 'type')
    ?? ''
  // The HTML page of a proxy does not help.
  return /^\s*</.test(said)
    ? ''
    : said
        .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
        .trim()
        .slice(0, MOST_WORDS)
        .toWellFormed()
}

/** The failure that a status stands for, with what to do; `keyless`: no key was sent. */
export const faultOf = (status: number, words: string, retryAfterMs?: number, keyless = false): ServerFault => {
  const known = { status, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  const fault = (message: string, details: FaultDetails = {}) =>
    new ServerFault(`${message}${words ? `; it says: ${words}` : ''}`, { ...known, ...details })
  if (status === 401 || status === 403)
    return fault(
      keyless
        ? `the model server asks for a key (${status}): save the server with one`
        : `the model server refused the key (${status}): save the right one`,
      { code: 'token-refused' },
    )
  if (status === 402)
    return fault('the model server requires payment (402): pay there, or choose another model', {
      code: 'not-entitled',
    })
  if (status === 429) {
    const spent = /insufficient_quota|billing/i.test(words)
    return fault('the model server allows no more requests for now (429): try again later, or choose another model', {
      again: !spent,
      code: 'rate_limit',
    })
  }
  if (status >= 500 || status === 408 || status === 425)
    return fault(`the model server failed (${status}): try again, and look into its log if it fails again`, {
      again: true,
      code: 'provider-outage',
    })
  if ((status === 400 || status === 413 || status === 422) && (status === 413 || TOO_LONG.test(words)))
    return fault('the conversation is too long for the model: choose one with a larger window', {
      code: 'context-full',
    })
  if (status === 404 && NO_MODEL.test(words))
    return fault('the model server has no such model: choose another', { code: 'model-invalid' })
  if (status === 404 || status === 405)
    return fault(`nothing answers at this address of the model server (${status}): check its address and protocol`)
  return fault(`the model server refused the request (${status}): try another model, or another server`)
}

/** A lost connection, or an answer that ended in the middle. */
export const lost = (why: string): ServerFault =>
  new ServerFault(`the connection to the model server was lost: ${why}; check that it runs and can be reached`, {
    again: true,
    code: 'provider-outage',
  })

const spent = (words: string): ServerFault =>
  new ServerFault(`the model server allows no more requests: what was paid for is used up; it says: ${words}`, {
    status: 429,
    again: false,
    code: 'rate_limit',
  })

/** The failure that a server reports in the middle of its answer. */
export const streamFault = (error: unknown): ServerFault => {
  const inner = fieldOf(error, 'error') ?? error
  const kind = textField(inner, 'code', 'errorCode', 'type', 'errorType')
  const words = refusalWords(inner)
  const numbered = Number(fieldOf(inner, 'status') ?? fieldOf(inner, 'statusCode') ?? fieldOf(inner, 'code'))
  const known =
    (kind && Object.hasOwn(STREAM_ERRORS, kind) && STREAM_ERRORS[kind])
    || (numbered >= 400 && numbered < 600 ? numbered : 500)
  return kind === 'insufficient_quota' ? spent(words) : faultOf(TOO_LONG.test(words) ? 400 : known, words)
}

/** The server fault among the causes of an error, when there is one. */
const causeOf = (error: unknown): ServerFault | undefined => {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (at instanceof ServerFault) return at
  }
  return undefined
}

/** Converts the error of a provider package into a server fault. */
export const faultFrom = (error: unknown): ServerFault => {
  const own = causeOf(error)
  if (own) return own
  const name = error instanceof Error ? error.name : ''
  if (name === 'AI_InvalidResponseDataError' && /finish reason/.test((error as Error).message))
    return lost('the answer ended in the middle')
  if (/^AI_(JSONParse|TypeValidation|InvalidResponseData|NoContentGenerated|EmptyResponseBody)Error$/.test(name))
    return new ServerFault(
      'the model server sent an answer that is invalid in its protocol: check its address and protocol',
    )
  return streamFault(error)
}

/** A text without the values of headers: servers repeat the key they refuse. */
export const withoutSecrets = (words: string, own: { readonly [name: string]: string }): string => {
  const values = Object.values(own).flatMap(value => [value, value.replace(/^\w+ /, '')])
  return values.filter(value => value.length >= 6).reduce((text, value) => text.replaceAll(value, '***'), words)
}
