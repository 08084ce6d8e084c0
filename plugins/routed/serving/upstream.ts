import { Agent as PlainAgent, request as plainRequest, type IncomingMessage } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { pipeline, type Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { ignored, Refusal } from '../../../sdk/index.js'
import { askableWay } from '../../../sdk/node/network/askable.js'
import { CLOSED, SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { refusedByProxy } from '../../../sdk/node/network/upstream.js'
import { ServingFailure } from './failure.js'

/** A request to a provider. */
export interface UpstreamRequest {
  readonly url: URL
  readonly headers: { readonly [name: string]: string }
  readonly body: string
  readonly signal: AbortSignal
}
/** Its answer, before its body was read. */
export interface UpstreamAnswer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Readable
}

/** The longest silence. */
const SILENCE_MS = 600_000
/** A kept connection may turn out to be closed. */
const MOST_STALE = 3

const agents = { 'http:': new PlainAgent({ keepAlive: true }), 'https:': new SecureAgent({ keepAlive: true }) }

const UNPACKING: { readonly [encoding: string]: () => Transform } = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** Asks a provider at a checked address; follows no redirect, which could take the credential elsewhere. */
export const askUpstream = async (asked: UpstreamRequest): Promise<UpstreamAnswer> => {
  for (let stale = 0; ; stale++) {
    const answer = await once(asked).catch((error: unknown) => {
      asked.signal.throwIfAborted()
      if (error instanceof Stale && stale < MOST_STALE) return undefined
      throw failureOf(error)
    })
    if (!answer) continue
    const { statusCode = 0, headers } = answer
    if (statusCode >= 300 && statusCode < 400) {
      answer.destroy()
      throw new ServingFailure(502, `the provider redirects (${statusCode}): its address is not the right one`)
    }
    const unpack = UNPACKING[(headers['content-encoding'] ?? '').trim().toLowerCase()]
    const body = unpack ? pipeline(answer, unpack(), ignored('the reader gets the failure')) : answer
    return { status: statusCode, headers, body }
  }
}

class Stale extends Error {}

const once = async ({ url, headers, body, signal }: UpstreamRequest): Promise<IncomingMessage> => {
  const secure = url.protocol === 'https:'
  const { options, proxy } = await askableWay(url, agents[secure ? 'https:' : 'http:'], signal)
  return new Promise((resolve, reject) => {
    const request = (secure ? secureRequest : plainRequest)(url, {
      ...options,
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)), ...options.headers },
      signal,
      timeout: SILENCE_MS,
    })
    request.on('timeout', () => {
      request.destroy(new ServingFailure(504, `the provider sent nothing for ${SILENCE_MS / 1000} seconds`))
    })
    request.on('error', (error: NodeJS.ErrnoException) => {
      const stale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
      reject(stale ? new Stale() : error)
    })
    // A server that switches the protocol makes no other event.
    request.once('close', () => reject(new ServingFailure(502, `the provider was not reached: ${CLOSED}`)))
    request.on('response', answer => {
      const refused = secure ? undefined : refusedByProxy(proxy, answer)
      if (refused) reject(refused)
      else resolve(answer)
    })
    request.end(body)
  })
}

const failureOf = (error: unknown): ServingFailure => {
  if (error instanceof ServingFailure) return error
  if (error instanceof Refusal) return new ServingFailure(502, error.message)
  const { code = '', message } = error as NodeJS.ErrnoException
  return new ServingFailure(502, `the provider was not reached: ${SENTENCES[code] ?? (code || message)}`)
}
