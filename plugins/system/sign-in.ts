import { type Context, type Host, type HttpFacts, type Input, refuse } from '../../sdk/index.js'
import type { OpenedSession } from '../../sdk/kernel.js'
import type { SignInOptions, System } from './contract.js'
import { plain } from './plain.js'

const PLAIN =
  'a local sign-in takes HTTPS, or a loopback connection without a proxy, found plain HTTP; ' +
  'open the link on the machine itself'

type Proof = Input<System, 'POST /system/session'>

/** The facts of a request, for calls that only make sense as one. */
export const requestOf = ({ http }: Context): HttpFacts =>
  http ?? refuse('unprocessable', 'expected a request over HTTP, found a call of another group')

/** Whether a code that opens the sandbox may travel this way. */
const isPrivate = ({ local, base }: HttpFacts): boolean => local || base.startsWith('https:')

/** What a sign-in page can offer at the address it was asked at. */
export const signInOptions = async (host: Pick<Host, 'call'>, http: HttpFacts): Promise<SignInOptions> => {
  const { claimed, local } = await host.call('kernel.identity.state')
  const { nonce, expiresAt } = await host.call('kernel.identity.nonce')
  return { claimed, local: local && isPrivate(http), nonce, nonceExpiresAt: expiresAt, providers: [] }
}

/** Turns the proof presented into a session; a code in the body goes before the bearer. */
export const openSession = async (host: Pick<Host, 'call'>, proof: Proof, context: Context): Promise<OpenedSession> => {
  const http = requestOf(context)
  const { signal } = context
  const { address, bearer } = http
  const device = plain(proof.device ?? '') || productOf(http.userAgent)
  if (proof.claim !== undefined && (await host.call('kernel.identity.state')).claimed) {
    refuse('conflict', 'the sandbox already has an owner, so no claim code is taken; leave claim out')
  }
  if (proof.login !== undefined) {
    if (!isPrivate(http)) refuse('forbidden', PLAIN)
    return host.call('kernel.session.login', { code: proof.login, device, address }, { signal })
  }
  const code = proof.invite ?? proof.claim
  if (code !== undefined) {
    // There are no invitations and no claim codes: each fails as any unknown code does, and counts as one.
    return host.call('kernel.session.login', { code: `other:${code}`, device, address }, { signal })
  }
  if (bearer !== undefined) return host.call('kernel.session.renew', { token: bearer, address }, { signal })
  return refuse('invalid', 'expected a proof: login with a code of sandbox login, or a session as bearer; found none')
}

/** The product a user agent names first, such as `Mozilla/5.0`. */
const productOf = (userAgent = ''): string => plain(userAgent.split(' ')[0]!).slice(0, 120) || 'unknown'
