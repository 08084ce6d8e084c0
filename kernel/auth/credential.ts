import { refuse } from '../../sdk/refusal.js'

/** A credential as a client sent it, not yet checked. */
export interface Credential {
  readonly kind: 'token' | 'turn' | 'extension' | 'run' | 'bearer'
  readonly value: string
}

/** Credential headers in order of precedence. */
const KINDS = new Map<string, Credential['kind']>([
  ['x-sandbox-control', 'token'],
  ['x-sandbox-turn', 'turn'],
  ['x-sandbox-extension', 'extension'],
  ['x-sandbox-run', 'run'],
  ['authorization', 'bearer'],
])
const ONCE = new Set(['host', 'origin', 'content-type', ...KINDS.keys()])
/** Also these; of `last-event-id` the first value is used. */
const READ = new Set([...ONCE, 'last-event-id', 'content-length', 'transfer-encoding'])

/** The headers that decide access, which occur once, and `last-event-id`, by lower-case name. */
export type CredentialHead = ReadonlyMap<string, string>

/**
 * Reads the raw headers, since Node joins or drops duplicates; refuses a head that two parsers could read differently.
 */
export const readHead = (rawHeaders: readonly string[]): CredentialHead => {
  const head = new Map<string, string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!READ.has(name)) continue
    if (!head.has(name)) head.set(name, rawHeaders[at + 1]!.trim())
    else if (ONCE.has(name)) refuse('invalid', `expected header ${name} once, found it again`)
  }
  if (head.has('content-length') && head.has('transfer-encoding'))
    refuse('invalid', 'expected content-length or transfer-encoding, found both')
  return head
}

/** The credential of a request: the first credential header that is not empty, valid or not. */
export const readCredential = (head: CredentialHead): Credential | undefined => {
  for (const [name, kind] of KINDS) {
    const value = head.get(name)
    if (value) return { kind, value: kind === 'bearer' ? bearerOf(value) : plain(name, value) }
  }
  return undefined
}

/** The bearer for open routes, which check their own proof and ignore the other credential headers. */
export const readBearer = (head: CredentialHead): string | undefined => {
  const value = head.get('authorization')
  return value ? bearerOf(value) : undefined
}

const bearerOf = (value: string): string => {
  const [found, token] = /^bearer(?: (.*))?$/is.exec(value) ?? []
  if (found === undefined) return refuse('unauthenticated', 'expected authorization: Bearer <session>')
  if (!token) return refuse('unauthenticated', 'expected a session after authorization: Bearer, found nothing')
  return plain('authorization', token)
}

const plain = (name: string, value: string): string => {
  if (/[\s,]/.test(value)) refuse('invalid', `expected one credential in header ${name}, found a comma or space in it`)
  return value
}
