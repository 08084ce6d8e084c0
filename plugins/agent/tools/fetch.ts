import { validateHeaderName, validateHeaderValue } from 'node:http'
import { askOutside, webAddress, type OutboundReply, type OutboundRequest } from '../../../sdk/node/network/outbound.js'
import { cut, MOST_RESULT, textContent, textOf } from './content.js'
import type { ToolResult } from '../providers/adapter.js'
import type { FetchInput } from './contract.js'
import { failed, tool, type Misfit, type ToolContext } from './tool.js'

const MOST_ANSWER = 4 * 1024 * 1024
const MOST_HEADERS = 50
const TIMEOUT_MS = 60_000
/** Headers that control the connection or the framing of the request. */
const TRAVEL = /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|keep-alive|expect|proxy-.*)$/i
const TEXTUAL =
  /^(?:text\/|application\/(?:[\w.+-]*(?:json|xml|javascript|yaml)|x-www-form-urlencoded|graphql))|\+(?:json|xml)/i

/** Refuses a request that cannot be sent. */
export const refineRequest = ({ url, method = 'GET', headers = {}, body }: FetchInput, misfit: Misfit): void => {
  webAddress(url)
  if (body !== undefined && (method === 'GET' || method === 'HEAD')) misfit('body', `none with ${method}`, body)
  refineHeaders(headers, misfit)
}

/** Sends a request to a web server and returns the response as text. */
export const fetchPage = tool('Fetch', {
  category: 'fetch',
  refine: refineRequest,
  describe: ({ url, method = 'GET' }) => {
    const { href } = webAddress(url)
    return { target: method === 'GET' ? href : `${method} ${href}`, url: href }
  },
  run: async (input, context) => fetched(await askOutside(await outboundOf(input, context))),
})

/** The request of a call, with the values that it refers to. */
export const outboundOf = async (
  { url, method = 'GET', headers = {}, body }: FetchInput,
  { reach, signal, references }: Pick<ToolContext, 'reach' | 'signal' | 'references'>,
): Promise<OutboundRequest> => {
  const filled = (text: string) => references.text(text, 'code')
  const sent = await Promise.all(Object.entries(headers).map(async ([name, value]) => [name, await filled(value)]))
  return {
    url: webAddress(await filled(url)).href,
    method,
    headers: Object.fromEntries(sent) as typeof headers,
    ...(body !== undefined && { body: await filled(body) }),
    reach: await reach(),
    signal,
    timeoutMs: TIMEOUT_MS,
    maxBytes: MOST_ANSWER,
  }
}

/** The result of a call from what the server answered. */
export const fetched = (answer: OutboundReply): ToolResult => {
  const text = readable(answer)
  const { status, statusText, url: from } = answer
  if (status >= 400) return failed(cut(`${status} ${statusText} from ${from}${text === '' ? '' : `\n${text}`}`))
  return { ok: true, text: cut(text, MOST_RESULT), content: textContent(text) }
}

const refineHeaders = (headers: { readonly [name: string]: string }, misfit: Misfit): void => {
  const entries = Object.entries(headers)
  if (entries.length > MOST_HEADERS) misfit('headers', `at most ${MOST_HEADERS}`, entries.length)
  for (const [name, value] of entries) {
    if (!isHeader(name, value)) misfit(`headers.${name.slice(0, 80)}`, 'a valid header', value)
    if (TRAVEL.test(name)) misfit(`headers.${name}`, 'a header that does not control the connection', value)
  }
}

const isHeader = (name: string, value: string): boolean => {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

/** An answer as text. */
export const readable = ({ body, headers, truncated }: OutboundReply): string => {
  const type = headers['content-type'] ?? ''
  const text = TEXTUAL.test(type) || type === '' ? decoded(body, type, truncated) : undefined
  if (text === undefined)
    return `[${body.length} bytes${truncated ? ' and more' : ''} of ${type || 'an unknown kind'}: no text]`
  return truncated ? `${text}\n[the rest is left out]` : text
}

const decoded = (body: Buffer, type: string, truncated: boolean): string | undefined => {
  const charset = /;\s*charset="?([\w.:-]{1,40})/i.exec(type)?.[1]
  // A cut body may end within a character and is still text.
  if (charset === undefined && !truncated) return textOf(body)
  try {
    return new TextDecoder(charset ?? 'utf-8').decode(body)
  } catch {
    return textOf(body)
  }
}
