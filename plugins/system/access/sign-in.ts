import { type Context, type Host, type HttpFacts, type Input, Refusal, refuse } from '../../../sdk/index.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'
import { ownerOfPort, showsConnections } from '../../../sdk/node/network/local/port-owner.js'
import type { IdentityProvider, OpenedSession } from '../../../sdk/kernel.js'
import type { SignInOptions, SiteIdentity, System } from '../contract.js'
import { httpRequestOf } from '../request.js'
import { IssuerEndpoints } from './issuer-endpoints.js'
import type { ReadDocument } from './issuer-keys.js'
import { Nonces } from './nonces.js'
import { IdentityTokens } from './oidc.js'
import { plainValue } from './plain.js'
import { SiteIdentities, type SiteToken } from './site-identities.js'
import { UsedTokens } from './used-tokens.js'

const PLAIN =
  'a local sign-in needs HTTPS, or a loopback connection without a proxy, found plain HTTP; '
  + 'open the link on the machine itself'
const PLAIN_INVITE = 'an invitation was sent over plain HTTP: use https, or set http.allowPlain on a private network'

type Proof = Input<System, 'POST /system/session'>

/** The session that a proof opened, and what it granted. */
export interface SignedIn {
  readonly session: OpenedSession
  readonly did?: 'claimed' | 'joined'
}

/** Whether a sign-in code may be sent over this connection. */
const isPrivate = ({ local, base }: HttpFacts): boolean => local || base.startsWith('https:')

/** Signs people in: the methods a page can offer, and the sessions their proofs open. */
export class SignIn {
  readonly #host: Pick<Host, 'call' | 'files' | 'signal'>
  readonly #nonces: Nonces
  readonly #refused: (address: string) => void
  readonly #now: () => number
  readonly #endpoints: IssuerEndpoints
  readonly #sites: SiteIdentities
  #tokens: IdentityTokens | undefined

  /** @param refused Called with each address whose identity token was refused. */
  constructor(
    host: Pick<Host, 'call' | 'files' | 'signal'>,
    refused: (address: string) => void,
    now: () => number = Date.now,
  ) {
    this.#host = host
    this.#refused = refused
    this.#now = now
    this.#nonces = new Nonces(now)
    this.#endpoints = new IssuerEndpoints(this.#read, now)
    this.#sites = new SiteIdentities(this.#read, now)
  }

  /** The sign-in methods at the address of the request. */
  async options(http: HttpFacts | undefined): Promise<SignInOptions> {
    const { claimed, local, providers } = await this.#host.call('kernel.identity.state')
    const { nonce, expiresAt } = this.#nonces.make()
    const offered = await Promise.all(
      providers.map(async ({ id, label, issuer, clientId, flow = 'code' }) => ({
        ...{ id, label, issuer, clientId, flow },
        ...(await this.#endpoints.of(issuer)),
      })),
    )
    return {
      claimed,
      local: local && http !== undefined && isPrivate(http),
      nonce,
      nonceExpiresAt: expiresAt,
      providers: offered,
    }
  }

  /** Turns the presented proof into a session; a login code takes precedence over the bearer. */
  async open(proof: Proof, context: Context): Promise<SignedIn> {
    const http = httpRequestOf(context)
    const { signal } = context
    const { login, claim, invite } = proof
    const from = { device: plainValue(proof.device ?? '') || productOf(http.userAgent), address: http.address }
    if (login !== undefined) {
      if (!isPrivate(http)) refuse('forbidden', PLAIN)
      return this.#host.call('kernel.session.open', { login, ...from }, { signal })
    }
    const { providers, claim: rule } = await this.#host.call('kernel.identity.state')
    const { bearer } = http
    const codes = { ...(claim !== undefined && { claim }), ...(invite !== undefined && { invite }) }
    if (bearer !== undefined && !bearer.startsWith('sbs_')) {
      const { person, use, release } = await this.#identityTokens(providers).verify(bearer, http.address)
      const claimNeeded = rule === 'code' || (await this.#isStranger(http))
      if (!(await use()))
        refuse('unauthenticated', 'the identity token is not accepted: it was used before; sign in again')
      try {
        return await this.#host.call('kernel.session.open', { person, ...codes, claimNeeded, ...from }, { signal })
      } catch (error) {
        if (error instanceof Refusal) await release()
        throw error
      }
    }
    if (invite !== undefined || claim !== undefined)
      return this.#byCode(proof, http, providers, () =>
        this.#host.call('kernel.session.open', { ...codes, name: plainValue(proof.name ?? ''), ...from }, { signal }),
      )
    if (bearer === undefined) {
      return refuse(
        'unauthenticated',
        'expected a proof: login with a code of sandbox login, or an identity token or a session as bearer; found none',
      )
    }
    return {
      session: await this.#host.call('kernel.session.renew', { token: bearer, address: http.address }, { signal }),
    }
  }

  /** Whom a token of a site's own sign-in names. */
  visitor(given: SiteToken): Promise<SiteIdentity> {
    return this.#sites.verify(given)
  }

  /** Without a provider, an invitation alone creates an identity. */
  #byCode(
    { invite, name }: Proof,
    { plain: readable }: HttpFacts,
    providers: readonly IdentityProvider[],
    open: () => Promise<SignedIn>,
  ): Promise<SignedIn> {
    if (readable) refuse('forbidden', PLAIN_INVITE)
    if (invite !== undefined && providers.length) {
      refuse(
        'unauthenticated',
        'expected an identity token as bearer beside the invitation: sign in '
          + `with ${providers.map(({ label }) => label).join(' or ')}`,
      )
    }
    if (invite !== undefined && !plainValue(name ?? '')) {
      refuse('invalid', 'name: expected the name that others see, found nothing', {
        errors: [{ path: 'name', expected: 'a character that can be seen' }],
      })
    }
    return open()
  }

  /** Whether a local connection is not known to belong to the daemon's user. */
  async #isStranger({ nearPort, forwarded }: HttpFacts): Promise<boolean> {
    if (nearPort === undefined) return false
    if (forwarded) return true
    if (!showsConnections) return false
    const { listeners } = await this.#host.call('kernel.listeners')
    return (
      (await ownerOfPort(
        nearPort,
        listeners.map(({ port }) => port),
      )) !== process.getuid?.()
    )
  }

  readonly #read: ReadDocument = async (url, near) => {
    const { listeners } = await this.#host.call('kernel.listeners')
    const { status, body, truncated } = await askOutside({
      url,
      reach: { near, listeners },
      redirects: 0,
      timeoutMs: 10_000,
      maxBytes: 1 << 20,
      signal: this.#host.signal,
      headers: { accept: 'application/json' },
    })
    if (status !== 200 || truncated)
      refuse('dependency', `${url} answered ${status}${truncated ? ' with more than 1 MiB' : ''}`)
    return body
  }

  #identityTokens(providers: readonly IdentityProvider[]): IdentityTokens {
    this.#tokens ??= new IdentityTokens({
      providers,
      nonces: this.#nonces,
      used: new UsedTokens(this.#host.files, this.#now),
      read: this.#read,
      refused: this.#refused,
      now: this.#now,
    })
    return this.#tokens
  }
}

/** The product a user agent names first, such as `Mozilla/5.0`. */
const productOf = (userAgent = ''): string => plainValue(userAgent.split(' ')[0]!).slice(0, 120) || 'unknown'
