import { request as plainRequest, type IncomingMessage } from 'node:http'
import { request as secureRequest } from 'node:https'
import { isIP, type Socket } from 'node:net'
import { connect as secured } from 'node:tls'
import { refuse } from '../../../sdk/index.js'
import { plainAddress } from '../../../sdk/node/network/addresses.js'
import { SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { countryName } from '../catalogue/countries.js'
import type { RangeFile } from '../catalogue/ranges.js'
import type { ExitObservation } from '../contract.js'

/** Public addresses that say which address asked them. */
export const CHECKS: readonly string[] = [
  'https://www.cloudflare.com/cdn-cgi/trace',
  'https://ifconfig.co/json',
  'http://ip-api.com/json',
]
const CHECK_MS = 20_000
const MOST_BYTES = 16 * 1024

/** What an answer says: lines `ip=…` and `loc=…`, or JSON; undefined: it names no address. */
export const observationIn = (text: string): { ip: string; country?: string } | undefined => {
  const said = (ip: unknown, country: unknown) => {
    const plain = typeof ip === 'string' && isIP(ip) ? plainAddress(ip) : undefined
    if (plain === undefined) return undefined
    const known = typeof country === 'string' && /^[A-Za-z]{2}$/.test(country) ? country.toUpperCase() : undefined
    // Where nobody knows the country, answers have these.
    return { ip: plain, ...(known !== undefined && !['XX', 'ZZ', 'T1'].includes(known) && { country: known }) }
  }
  if (text.trimStart().startsWith('{')) {
    try {
      const { ip, query, country_iso, countryCode, country } = JSON.parse(text) as { [field: string]: unknown }
      return said(ip ?? query, country_iso ?? countryCode ?? country)
    } catch {
      return undefined
    }
  }
  const line = (name: string) => new RegExp(`^${name}=(\\S+)\\s*$`, 'm').exec(text)?.[1]
  return said(line('ip'), line('loc'))
}

/** A tunnel through the proxy to a host, for TLS. */
const tunnelTo = (door: string, url: URL, signal: AbortSignal): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const asked = plainRequest({
      socketPath: door,
      method: 'CONNECT',
      path: `${url.hostname}:${url.port || 443}`,
      signal,
    })
    asked.once('connect', ({ statusCode }, socket) => {
      if (statusCode === 200) return resolve(socket)
      socket.destroy()
      reject(new Error(`the proxy answered ${statusCode}`))
    })
    asked.once('response', answer => {
      answer.destroy()
      reject(new Error(`the proxy answered ${answer.statusCode}`))
    })
    asked.once('error', reject).end()
  })

const asked = async (door: string, url: URL, signal: AbortSignal): Promise<IncomingMessage> => {
  const headers = { accept: 'application/json, text/plain', 'user-agent': 'curl/8', host: url.host }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  if (url.protocol === 'http:')
    plainRequest({ socketPath: door, path: url.href, headers, agent: false, signal })
      .once('response', resolve)
      .once('error', reject)
      .end()
  else {
    const socket = await tunnelTo(door, url, signal)
    const through = secured({ socket, ...(!isIP(url.hostname) && { servername: url.hostname }), host: url.hostname })
    secureRequest(url, { headers, createConnection: () => through, signal })
      .once('response', resolve)
      .once('error', reject)
      .end()
  }
  return promise
}

const textOf = async (answer: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const piece of answer.setEncoding('utf8')) {
    text += piece as string
    if (text.length > MOST_BYTES) {
      answer.destroy()
      break
    }
  }
  return text.slice(0, MOST_BYTES)
}

/**
 * Asks the check addresses through a proxy which address and country they see; the first answer wins. 424: none
 * answered, with why.
 */
export const observe = async (
  door: string,
  urls: readonly string[],
  ranges: Pick<RangeFile, 'ranges'>,
  signal: AbortSignal,
  checkMs = CHECK_MS,
): Promise<ExitObservation> => {
  const failures: string[] = []
  for (const address of urls) {
    signal.throwIfAborted()
    const url = new URL(address)
    const late = AbortSignal.timeout(checkMs)
    try {
      const answer = await asked(door, url, AbortSignal.any([signal, late]))
      const text = await textOf(answer)
      const seen = answer.statusCode === 200 ? observationIn(text) : undefined
      if (!seen) throw new Error(answer.statusCode === 200 ? 'it names no address' : `it answered ${answer.statusCode}`)
      const country = seen.country ?? (await ranges.ranges()).countryOf(seen.ip)
      return { ip: seen.ip, ...(country !== undefined && { country, countryName: countryName(country) }) }
    } catch (error) {
      signal.throwIfAborted()
      const why = late.aborted ? `it did not answer within ${checkMs / 1000} s` : wordsOf(error)
      failures.push(`${url.host}: ${why}`)
    }
  }
  return refuse('dependency', `no check address answered through the exit (${failures.join('; ')})`)
}

const wordsOf = (error: unknown): string =>
  SENTENCES[codeOf(error) ?? ''] ?? (error instanceof Error ? error.message : String(error)).slice(0, 100)
