import { refuse } from '../../../sdk/index.js'
import type { SiteIdentity } from './contract.js'
import { plainEmail } from './email.js'
import { IssuerKeys, type ReadDocument } from './issuer-keys.js'
import { isSigned, judgeTimes, readToken } from './oidc.js'
import { plainValue } from './plain.js'

/** A token, and whose it has to be. */
export interface SiteToken {
  readonly token: string
  readonly issuer: string
  readonly clientId: string
}

/** Issuers whose keys are kept; the one asked longest ago goes. */
const MOST = 50

/** Verifies tokens of the sign-ins of other sites: they name a visitor there and open nothing here. */
export class SiteIdentities {
  readonly #read: ReadDocument
  readonly #now: () => number
  readonly #keys = new Map<string, IssuerKeys>()

  constructor(read: ReadDocument, now: () => number) {
    this.#read = read
    this.#now = now
  }

  async verify({ token, issuer, clientId }: SiteToken): Promise<SiteIdentity> {
    const { header, claims } = await readToken(token, wrong)
    const { iss, aud, azp, sub, email, email_verified: verified, name } = claims
    const audience = Array.isArray(aud) ? aud : [aud]
    if (iss !== issuer || !audience.includes(clientId) || (audience.length > 1 && azp !== clientId))
      wrong('expected one of the issuer and for the client of this chat')
    judgeTimes(claims, this.#now(), wrong)
    if (typeof sub !== 'string' || !sub || sub.length > 255) return wrong('it has no subject (sub)')
    if (!(await isSigned(token, header.kid, this.#keysOf(issuer))))
      wrong("none of its issuer's keys made the signature")
    const address = verified === true && typeof email === 'string' ? plainEmail(email) : undefined
    const called = typeof name === 'string' ? plainValue(name).slice(0, 80) : ''
    return { subject: sub, ...(address !== undefined && { email: address }), ...(called && { name: called }) }
  }

  #keysOf(issuer: string): IssuerKeys {
    const keys = this.#keys.get(issuer) ?? new IssuerKeys(issuer, this.#read, this.#now)
    this.#keys.delete(issuer)
    this.#keys.set(issuer, keys)
    if (this.#keys.size > MOST) this.#keys.delete(this.#keys.keys().next().value!)
    return keys
  }
}

const wrong = (why: string): never =>
  refuse('unauthenticated', `the token of the site's sign-in is not accepted: ${why}; sign in again`)
