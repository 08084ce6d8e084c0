import type { AnswerFailure } from './answer-parts.js'
import { objectIn, jsonOf, textIn } from './fields.js'
import type { TranslatedProtocol } from './translated.js'

const ANTHROPIC: { readonly [status: number]: string } = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}
const OPENAI: { readonly [status: number]: readonly [type: string, code: string | null] } = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  403: ['invalid_request_error', 'permission_denied'],
  404: ['invalid_request_error', 'model_not_found'],
  413: ['invalid_request_error', 'request_too_large'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
}

/** The body of an error, as the asking protocol has it. */
export const errorBody = (protocol: TranslatedProtocol, { status, message }: AnswerFailure): object => {
  if (protocol === 'messages') return { type: 'error', error: { type: ANTHROPIC[status] ?? 'api_error', message } }
  const [type, code] = OPENAI[status] ?? ['server_error', null]
  return { error: { message, type, param: null, code } }
}

const MOST_WORDS = 2_000

/** The words of an error in any of the protocols' forms; its text where it has another. */
export const errorWords = (text: string): string => {
  const body = objectIn(jsonOf(text))
  const error = objectIn(body?.error) ?? objectIn(objectIn(body?.response)?.error)
  const said =
    textIn(error?.message) ?? textIn(body?.error) ?? textIn(body?.message) ?? textIn(body?.detail) ?? text.trim()
  // A web page says nothing to a program.
  return /^\s*</.test(said) ? '' : said.slice(0, MOST_WORDS).toWellFormed()
}
