import { refuse } from '../../sdk/refusal.js'

/** What a client presents, before anything is known of it. */
export interface Credential {
  readonly kind: 'token' | 'turn' | 'extension' | 'run' | 'bearer'
  readonly value: string
}

const HEADERS = [
  ['x-sandbox-control', 'token'],
  ['x-sandbox-turn', 'turn'],
  ['x-sandbox-extension', 'extension'],
  ['x-sandbox-run', 'run'],
  ['authorization', 'bearer'],
] as const

const ONCE = ['host', 'origin', 'content-type']

/** Refuses a head that two readers could read differently: the raw list, since a server joins or drops doubles. */
export const checkHead = (rawHeaders: readonly string[]): void => {
  for (const name of ONCE) single(rawHeaders, name)
  if (valuesOf(rawHeaders, 'content-length').length && valuesOf(rawHeaders, 'transfer-encoding').length) {
    refuse('invalid', 'expected content-length or transfer-encoding, found both')
  }
}

/** The credential that counts: the first header of the order that is present and not empty, right or wrong. */
export const readCredential = (rawHeaders: readonly string[]): Credential | undefined => {
  checkHead(rawHeaders)
  const found = HEADERS.map(([name, kind]) => ({ name, kind, value: single(rawHeaders, name) }))
  const first = found.find(({ value }) => value !== undefined && value !== '')
  if (!first) return undefined
  const value = first.kind === 'bearer' ? bearerOf(first.value!) : plain(first.name, first.value!)
  return { kind: first.kind, value }
}

/** The bearer of an open route, which reads its own proof; the other credential headers are not judged there. */
export const readBearer = (rawHeaders: readonly string[]): string | undefined => {
  const value = single(rawHeaders, 'authorization')
  return value ? bearerOf(value) : undefined
}

const valuesOf = (rawHeaders: readonly string[], name: string): string[] =>
  rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]!.toLowerCase() === name)

const single = (rawHeaders: readonly string[], name: string): string | undefined => {
  const values = valuesOf(rawHeaders, name)
  if (values.length > 1) refuse('invalid', `expected header ${name} once, found it ${values.length} times`)
  return values[0]?.trim()
}

const bearerOf = (value: string): string => {
  const [found, token] = /^bearer(?: (.*))?$/is.exec(value) ?? []
  if (found === undefined) return refuse('unauthenticated', 'expected authorization: Bearer <session>')
  if (!token) return refuse('unauthenticated', 'expected a session after authorization: Bearer, found nothing')
  return plain('authorization', token)
}

const plain = (name: string, value: string): string => {
  if (/[\s,]/.test(value)) refuse('invalid', `expected one credential in header ${name}, found a comma or blank in it`)
  return value
}
