import { validateHeaderName, validateHeaderValue } from 'node:http'
import { askOutside, webAddress, type OutboundReply } from '../../../sdk/node/network/outbound.js'
import { cut, textContent, textOf } from './content.js'
import { failed, Fields, tool } from './tool.js'

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const MOST_BODY = 1024 * 1024
const MOST_ANSWER = 4 * 1024 * 1024
const MOST_RESULT = 256 * 1024
const MOST_HEADERS = 50
const TIMEOUT_MS = 60_000
/** Headers that say how the request itself travels. */
const TRAVEL = /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|keep-alive|expect|proxy-.*)$/i
const TEXTUAL =
  /^(?:text\/|application\/(?:[\w.+-]*(?:json|xml|javascript|yaml)|x-www-form-urlencoded|graphql))|\+(?:json|xml)/i

interface FetchInput {
  readonly url: string
  readonly method: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string
}

/** Asks a server of the web; its answer as text. */
export const fetchPage = tool<FetchInput>({
  category: 'fetch',
  check: input => {
    const fields = new Fields('Fetch', input)
    const { href } = webAddress(fields.text('url', { least: 1, most: 8192 }))
    const method = fields.value('method') === undefined ? 'GET' : fields.text('method')
    if (!METHODS.includes(method)) fields.wrong('method', `one of ${METHODS.join(', ')}`, method)
    const body = fields.value('body') === undefined ? undefined : fields.text('body', { most: MOST_BODY })
    if (body !== undefined && (method === 'GET' || method === 'HEAD')) fields.wrong('body', `none with ${method}`, body)
    return { url: href, method, headers: headersOf(fields), ...(body !== undefined && { body }) }
  },
  describe: ({ url, method }) => ({ target: method === 'GET' ? url : `${method} ${url}`, url }),
  run: async (input, { reach, signal }) => {
    const answer = await askOutside({
      ...input,
      reach: await reach(),
      signal,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MOST_ANSWER,
    })
    const text = readable(answer)
    const { status, statusText, url } = answer
    if (status >= 400) return failed(cut(`${status} ${statusText} from ${url}${text === '' ? '' : `\n${text}`}`))
    return { ok: true, text: cut(text, MOST_RESULT), content: textContent(text) }
  },
})

const headersOf = (fields: Fields): { readonly [name: string]: string } => {
  const given = fields.value('headers')
  if (given === undefined) return {}
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return fields.wrong('headers', 'an object', given)
  const entries = Object.entries(given)
  if (entries.length > MOST_HEADERS) fields.wrong('headers', `at most ${MOST_HEADERS}`, entries.length)
  for (const [name, value] of entries) {
    if (!fits(name, value)) fields.wrong(`headers.${name.slice(0, 80)}`, 'a header of the request as text', value)
    if (TRAVEL.test(name))
      fields.wrong(`headers.${name}`, 'a header other than those that say how a request travels', value)
  }
  return Object.fromEntries(entries) as { [name: string]: string }
}

const fits = (name: string, value: unknown): value is string => {
  if (typeof value !== 'string' || value.length > 16_384) return false
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

const readable = ({ body, headers, truncated }: OutboundReply): string => {
  const type = headers['content-type'] ?? ''
  const text = TEXTUAL.test(type) || type === '' ? decoded(body, type, truncated) : undefined
  if (text === undefined)
    return `[${body.length} bytes${truncated ? ' and more' : ''} of ${type || 'an unknown kind'}: no text]`
  return truncated ? `${text}\n[the rest is left out]` : text
}

const decoded = (body: Buffer, type: string, truncated: boolean): string | undefined => {
  const charset = /;\s*charset="?([\w.:-]{1,40})/i.exec(type)?.[1]
  // A cut body may end within a character, which is no reason to call it binary.
  if (charset === undefined && !truncated) return textOf(body)
  try {
    return new TextDecoder(charset ?? 'utf-8').decode(body)
  } catch {
    return textOf(body)
  }
}
