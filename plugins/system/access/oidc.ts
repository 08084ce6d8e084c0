import type { JSONWebKeySet, JWTPayload } from 'jose'
import type { IdentityProvider } from '../../../sdk/kernel.js'
import { refuse } from '../../../sdk/index.js'
import { Failures } from '../../../sdk/node/access/failures.js'
import { LOCAL_DOMAIN } from '../../../sdk/node/access/local-domain.js'
import { isLocalEmail, plainEmail } from './email.js'
import { IssuerKeys, type ReadDocument } from './issuer-keys.js'
import type { Nonces } from './nonces.js'
import { plainValue } from './plain.js'
import type { UsedTokens } from './used-tokens.js'

const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA']
const FORM = /^[\w-]{2,}\.[\w-]{2,}\.[\w-]+$/
/** Seconds by which the issuer's clock may differ. */
const LEEWAY = 60
/** Seconds for which a token without a nonce is accepted. */
const MAX_AGE = 600

/** An identity that a provider confirmed. */
export interface Verified {
  readonly person: { issuer: string; subject: string; email: string; name?: string; picture?: string }
  /** Marks the token as used; false: it was used already. */
  use(): Promise<boolean>
  /** Marks it as unused again, because the sign-in failed. */
  release(): Promise<void>
}

/** What identity tokens are verified with. */
export interface IdentityTokensOptions {
  readonly providers: readonly IdentityProvider[]
  readonly nonces: Nonces
  readonly used: Pick<UsedTokens, 'add' | 'has' | 'remove'>
  readonly read: ReadDocument
  /** Called with each address whose token was refused. */
  readonly refused: (address: string) => void
  readonly now: () => number
}

/** Verifies identity tokens of the configured issuers. */
export class IdentityTokens {
  readonly #options: IdentityTokensOptions
  readonly #keys: ReadonlyMap<string, IssuerKeys>
  readonly #failed: Failures

  constructor(options: IdentityTokensOptions) {
    const { providers, read, now } = options
    this.#options = options
    this.#keys = new Map(providers.map(({ issuer }) => [issuer, new IssuerKeys(issuer, read, now)]))
    this.#failed = new Failures(10, 60_000, now)
  }

  /**
   * The identity of a token; refuses with 401, with 424 if its keys cannot be fetched, and with 429 if an address fails
   * too often.
   */
  async verify(token: string, address: string): Promise<Verified> {
    const wrong = (why: string): never => {
      const retryAfter = this.#failed.wait(address)
      if (retryAfter !== undefined) {
        refuse('too-many', `too many failed identity tokens from this address; try again in ${retryAfter} s`, {
          retryAfter,
        })
      }
      this.#failed.add(address)
      this.#options.refused(address)
      return refuse('unauthenticated', `the identity token is not accepted: ${why}; sign in again`)
    }
    if (!this.#options.providers.length) wrong('no identity provider is configured here, so use sandbox login')
    // Cheap checks come first, so that made-up tokens cannot cause key fetches.
    const { header, claims } = await readToken(token, wrong)
    const provider =
      this.#providerOf(claims)
      ?? wrong(`its issuer or audience is not configured here, found ${shown(claims.iss)} for ${shown(claims.aud)}`)
    judgeTimes(claims, this.#options.now(), wrong)
    const seen = await this.#notSeen(provider, token, claims, wrong)
    const person = personOf(provider, claims, wrong)
    if (!(await isSigned(token, header.kid, this.#keys.get(provider.issuer)!)))
      wrong("none of its issuer's keys made the signature")
    return { person, ...seen }
  }

  #providerOf({ iss, aud, azp }: JWTPayload): IdentityProvider | undefined {
    const audience = Array.isArray(aud) ? aud : [aud]
    return this.#options.providers.find(
      one =>
        one.issuer === iss
        && one.audience.some(name => audience.includes(name))
        && (audience.length === 1 || azp === one.clientId),
    )
  }

  /** Prevents a second use of the token: by its nonce, or by storing the token. */
  async #notSeen(
    { nonce: kind }: IdentityProvider,
    token: string,
    { nonce, iat = 0 }: JWTPayload,
    wrong: (why: string) => never,
  ): Promise<Pick<Verified, 'use' | 'release'>> {
    const { nonces, used, now } = this.#options
    if (kind === 'off') {
      if (now() / 1000 > iat + MAX_AGE) wrong('it was issued more than ten minutes ago')
      if (await used.has(token)) wrong('it was used before')
      return { use: () => used.add(token, (iat + MAX_AGE) * 1000), release: () => used.remove(token) }
    }
    if (typeof nonce !== 'string' || !nonces.isOpen(nonce))
      return wrong('expected a nonce of GET /system/sign-in from the last ten minutes, not used before')
    return { use: async () => nonces.use(nonce), release: async () => nonces.release(nonce) }
  }
}

/** The claims of a token, and what its signature needs. */
interface TokenParts {
  header: { alg?: string; kid?: string }
  claims: JWTPayload & { [claim: string]: unknown }
}

/** Reads a token without its signature; refuses what no key can have signed. */
export const readToken = async (token: string, wrong: (why: string) => never): Promise<TokenParts> => {
  if (!FORM.test(token)) wrong('expected a signed token of three parts')
  const { header, claims } = await parts(token).catch(() => wrong('its header or its claims are not JSON'))
  if (!ALGORITHMS.includes(header.alg ?? '')) wrong(`expected alg ${ALGORITHMS.join(', ')}, found ${shown(header.alg)}`)
  if ('crit' in header) wrong('expected no header crit')
  return { header, claims }
}

const parts = async (token: string): Promise<TokenParts> => {
  const { decodeJwt, decodeProtectedHeader } = await import('jose')
  return { header: decodeProtectedHeader(token), claims: decodeJwt(token) }
}

/** Refuses a token that is not valid yet or any more. */
export const judgeTimes = ({ exp, nbf, iat }: JWTPayload, at: number, wrong: (why: string) => never): void => {
  const now = at / 1000
  if (typeof exp !== 'number' || now > exp + LEEWAY) wrong('it has expired, or has no expiry (exp)')
  if (nbf !== undefined && !(typeof nbf === 'number' && now >= nbf - LEEWAY)) wrong('it is not valid yet')
  if (typeof iat !== 'number' || now < iat - LEEWAY) wrong('it was issued in the future, or has no issue time (iat)')
}

/** Whether one of an issuer's keys signed a token; asks the issuer again where none of the known ones did. */
export const isSigned = async (token: string, kid: string | undefined, keys: IssuerKeys): Promise<boolean> => {
  const found = await isSignedBy(token, await keys.current())
  if (found === 'yes' || (found === 'no' && kid !== undefined)) return found === 'yes'
  const again = await keys.again()
  return again !== undefined && (await isSignedBy(token, again)) === 'yes'
}

const isSignedBy = async (token: string, set: JSONWebKeySet): Promise<'yes' | 'no' | 'unknown'> => {
  const { compactVerify, createLocalJWKSet, errors } = await import('jose')
  const options = { algorithms: ALGORITHMS }
  try {
    await compactVerify(token, createLocalJWKSet(set), options)
    return 'yes'
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return 'unknown'
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return 'no'
    for await (const key of error) {
      const signed = await compactVerify(token, key, options).then(
        () => true,
        () => false,
      )
      if (signed) return 'yes'
    }
    return 'no'
  }
}

const personOf = (
  { issuer, emailClaim = 'email' }: IdentityProvider,
  claims: JWTPayload & { [claim: string]: unknown },
  wrong: (why: string) => never,
): Verified['person'] => {
  const { sub, name, picture, email_verified: verified } = claims
  if (typeof sub !== 'string' || !sub || sub.length > 255) return wrong('it has no subject (sub)')
  const given = claims[emailClaim]
  const email = typeof given === 'string' ? plainEmail(given) : undefined
  if (email === undefined) return wrong(`expected an e-mail of the form local@domain in ${emailClaim}`)
  if (verified !== true) return wrong('its e-mail is not verified (email_verified)')
  if (isLocalEmail(email)) return wrong(`only this sandbox issues e-mails at ${LOCAL_DOMAIN}`)
  const called = typeof name === 'string' ? plainValue(name).slice(0, 80) : ''
  const drawn =
    typeof picture === 'string' && picture.length <= 2000 && URL.parse(picture)?.protocol === 'https:'
      ? picture
      : undefined
  return { issuer, subject: sub, email, ...(called && { name: called }), ...(drawn && { picture: drawn }) }
}

const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 120) ?? 'none'
