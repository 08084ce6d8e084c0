import { askDaemon, fetchDaemon } from '../api.js'
import { backendPath, entryAllowing } from './page-calls.js'
import type { PageAsks } from './page-channel.js'
import { countUse, type ShownExtension } from './shown-extensions.js'

const MOST_ANSWER = 8 * 1024 * 1024
const MOST_READ = 4 * 1024 * 1024
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** Does for a page what its manifest lets it ask for; `file` is what it draws. */
export const pageAsks = ({ id, pageCalls }: ShownExtension, file?: string): PageAsks => ({
  call: async (call, input, signal) => {
    const entry = typeof call === 'string' ? entryAllowing(pageCalls, call, input) : undefined
    if (entry === undefined)
      throw Object.assign(new Error(`the manifest allows no call ${String(call).slice(0, 200)} with this input`), {
        reason: 'denied',
      })
    countUse(id, entry)
    const made = new AbortController()
    const stop = () => made.abort()
    signal.addEventListener('abort', stop, { once: true })
    try {
      const answer: unknown = await (askDaemon as (...asked: unknown[]) => Promise<unknown>)(call, input, made.signal)
      if (typeof answer !== 'object' || answer === null || !(Symbol.asyncIterator in answer)) return answer
      made.abort()
      throw new Error(`${call} answers with a stream, which pages do not get`)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  },
  fetch: async (path, { method, body }, signal) => {
    const address = typeof path === 'string' ? backendPath(id, path) : undefined
    if (address === undefined)
      throw new Error(`expected a path of the extension's own, found ${String(path).slice(0, 200)}`)
    const verb = method ?? (body === undefined ? 'GET' : 'POST')
    if (!METHODS.has(verb))
      throw new Error(`expected GET, POST, PUT, PATCH or DELETE, found ${String(verb).slice(0, 20)}`)
    const sent = body !== undefined && verb !== 'GET'
    const response = await fetchDaemon(address, {
      method: verb,
      signal,
      ...(sent && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const type = response.headers.get('content-type') ?? ''
    if (type.startsWith('text/event-stream')) {
      await response.body?.cancel()
      throw new Error(`${path} answers with a stream, which pages do not get`)
    }
    const text = new TextDecoder().decode(await bytesUpTo(response, MOST_ANSWER))
    const value: unknown = type.startsWith('application/json') ? JSON.parse(text) : text
    if (response.ok) return value
    const { message, reason } = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
    throw Object.assign(new Error(typeof message === 'string' ? message : `${path} answered ${response.status}`), {
      reason,
    })
  },
  read: async (from, to, signal) => {
    if (file === undefined) throw new Error('this page draws no file')
    if (!Number.isInteger(from) || !Number.isInteger(to) || from < 0 || to <= from || to - from > MOST_READ)
      throw new Error('expected whole numbers from 0 with 1 to 4,194,304 bytes between them')
    return fileBytes(file, signal, { range: `bytes=${from}-${to - 1}` })
  },
})

/** Bytes of a workspace file, at most 32 MiB. */
export const fileBytes = async (
  path: string,
  signal: AbortSignal,
  headers: { readonly [name: string]: string } = {},
): Promise<Uint8Array> => {
  const response = await fetchDaemon(`/workspace/raw?path=${encodeURIComponent(path)}`, { signal, headers })
  if (response.ok) return bytesUpTo(response, 32 * 1024 * 1024)
  const { message } = (await response.json()) as { message?: string }
  throw new Error(message ?? `reading ${path} failed`)
}

const bytesUpTo = async (response: Response, most: number): Promise<Uint8Array> => {
  const pieces: Uint8Array[] = []
  let size = 0
  const reader = response.body?.getReader()
  for (let part = await reader?.read(); part && !part.done; part = await reader!.read()) {
    size += part.value.length
    if (size > most) {
      await reader!.cancel()
      throw new Error(`the answer has more than ${most / 1024 / 1024} MiB`)
    }
    pieces.push(part.value)
  }
  const all = new Uint8Array(size)
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
