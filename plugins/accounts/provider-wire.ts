import { Refusal, refuse } from '../../sdk/index.js'
import { asData } from '../../sdk/node/access/redact.js'
import { wordsOfServer, withoutValues } from '../../sdk/node/models/server-words.js'
import type { Listener } from '../../sdk/node/network/addresses.js'
import { askOutside, type OutboundReply } from '../../sdk/node/network/outbound.js'
import type { ProviderDefinition } from '../providers/contract.js'
import type { AccountCredential } from './stored-accounts.js'

/** A request to an address of a definition. */
export interface WireRequest {
  readonly url: string
  readonly form?: { readonly [field: string]: string | undefined }
  /** The fields of `form` are sent as JSON. */
  readonly asJson?: boolean
  readonly headers?: { readonly [name: string]: string }
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}
/** An answer of a provider. */
export interface WireAnswer extends Pick<OutboundReply, 'status' | 'headers'> {
  readonly text: string
  /** The JSON in it, or the fields of a form. */
  readonly value: unknown
}

const TIMEOUT_MS = 20_000
const MOST_BYTES = 1024 * 1024
const MOST_WORDS = 300

/** Asks the addresses that definitions name: never one of the daemon's own. */
export type AskProvider = (asked: WireRequest) => Promise<WireAnswer>

/** Asks providers; one that does not answer is refused as a dependency. */
export const providerWire =
  (listeners: () => Promise<readonly Listener[]>): AskProvider =>
  async ({ url, form, asJson = false, headers, timeoutMs = TIMEOUT_MS, signal }) => {
    try {
      const reply = await askOutside({
        url,
        method: form ? 'POST' : 'GET',
        headers: {
          accept: 'application/json',
          ...(form && { 'content-type': asJson ? 'application/json' : 'application/x-www-form-urlencoded' }),
          ...headers,
        },
        ...(form && { body: asJson ? JSON.stringify(given(form)) : String(new URLSearchParams(given(form))) }),
        // Definitions come with the product or its deployment, which may run providers nearby.
        reach: { near: true, listeners: [...(await listeners())] },
        timeoutMs,
        redirects: 0,
        maxBytes: MOST_BYTES,
        ...(signal && { signal }),
      })
      const text = reply.body.toString('utf8')
      return { status: reply.status, headers: reply.headers, text, value: parsed(text, reply.headers['content-type']) }
    } catch (error) {
      if (!(error instanceof Refusal) || error.reason === 'dependency') throw error
      return refuse('dependency', error.message, { cause: error })
    }
  }

const given = (form: NonNullable<WireRequest['form']>): { [field: string]: string } =>
  Object.fromEntries(Object.entries(form).filter((pair): pair is [string, string] => pair[1] !== undefined))

const parsed = (text: string, type = ''): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return type.startsWith('application/x-www-form-urlencoded') ? Object.fromEntries(new URLSearchParams(text)) : {}
  }
}

const SENDABLE = /^[\x21-\x7e]{1,4096}$/

/** Whether a header takes a key. */
export const fitsHeader = (value: string): boolean => SENDABLE.test(value)

/** A field of a JSON value, by its path such as `account.email`. */
export const fieldAt = (value: unknown, path: string): unknown => {
  let at = value
  for (const part of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined
    at = (at as { [field: string]: unknown })[part]
  }
  return at
}

/** A text of a JSON value, by its path. */
export const answerText = (value: unknown, path: string): string | undefined => {
  const found = fieldAt(value, path)
  return typeof found === 'string' && found !== '' ? found : undefined
}

/** What a provider says of its refusal, without these values. */
export const providerWords = ({ status, text, value }: WireAnswer, secrets: readonly string[]): string => {
  const described = answerText(value, 'error_description')
  const words = described ? asData(withoutValues(described, secrets), MOST_WORDS) : wordsOfServer(text, secrets)
  return words || `status ${status}`
}

/** The headers that carry a credential. */
export const headersFor = (
  { protocol, auth }: ProviderDefinition,
  { kind, value }: Pick<AccountCredential, 'kind' | 'value'>,
): { [name: string]: string } => ({
  ...(protocol === 'anthropic' && { 'anthropic-version': '2023-06-01' }),
  ...(kind === 'bearer' || auth.header === 'bearer' ? { authorization: `Bearer ${value}` } : { 'x-api-key': value }),
})
