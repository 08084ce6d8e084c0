import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

/** A credential's parts; the whole text is shown once, the hash is what is kept. */
export interface Secret {
  readonly id: string
  readonly text: string
  readonly hash: string
}

/** What kind of credential a text claims to be. */
export type Prefix = 'sbs' | 'sbc'

const FORM = /^(sb[a-z])_([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/

/** Makes a credential, or a new secret for the id of one. */
export const newSecret = (prefix: Prefix, id = randomBytes(16).toString('base64url')): Secret => {
  const secret = randomBytes(32).toString('base64url')
  return { id, text: `${prefix}_${id}.${secret}`, hash: hashOf(secret) }
}

/** The id and the hash of the secret that a text presents, when it has the form. */
export const readSecret = (prefix: Prefix, text: string): { id: string; hash: string } | undefined => {
  const [, found, id, secret] = FORM.exec(text) ?? []
  return found === prefix ? { id: id!, hash: hashOf(secret!) } : undefined
}

/** The only form in which a secret is kept. */
export const hashOf = (secret: string): string => hash('sha256', secret, 'base64url')

const UNKNOWN = hashOf(randomBytes(32).toString('base64url'))

/** Whether a hash is one of those kept, in a time that tells neither which nor whether there are any. */
export const holds = (kept: readonly string[], presented: string): boolean => {
  const given = Buffer.from(presented)
  const equal = (kept.length ? kept : [UNKNOWN]).map(one => timingSafeEqual(Buffer.from(one), given))
  return kept.length > 0 && equal.includes(true)
}
