import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** The parts of a credential. The text is shown once; only the hash is stored. */
export interface Secret {
  readonly id: string
  readonly text: string
  readonly hash: string
}

/** The kind of a credential, by its prefix. */
export type Prefix = 'sbs' | 'sbc' | 'sbe' | 'sbt' | 'sbl'

const FORM = /^(sb[a-z])_([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/

/** Makes a credential, or a new secret for an existing id. */
export const newSecret = (prefix: Prefix, id = randomBytes(16).toString('base64url')): Secret => {
  const secret = randomBytes(32).toString('base64url')
  return { id, text: `${prefix}_${id}.${secret}`, hash: hashOf(secret) }
}

/** Parses a credential into its id and the hash of its secret; undefined if it is malformed. */
export const readSecret = (prefix: Prefix, text: string): { id: string; hash: string } | undefined => {
  const [, found, id, secret] = FORM.exec(text) ?? []
  return found === prefix ? { id: id!, hash: hashOf(secret!) } : undefined
}

/** The hash under which a secret is stored. */
export const hashOf = (secret: string): string => hash('sha256', secret, 'base64url')

const UNKNOWN = hashOf(randomBytes(32).toString('base64url'))

/**
 * Whether a hash is among the stored ones; in constant time, so that timing does not show which one or whether there
 * are any.
 */
export const holds = (kept: readonly string[], presented: string): boolean => {
  const given = Buffer.from(presented)
  const equal = (kept.length ? kept : [UNKNOWN]).map(one => timingSafeEqual(Buffer.from(one), given))
  return kept.length > 0 && equal.includes(true)
}
