import type { SignInProvider } from '../../../../system/contract.js'

const PENDING = 'sandbox.signing-in'

/** A started sign-in at a provider: the values that verify its answer. */
export interface PendingSignIn {
  readonly state: string
  readonly verifier: string
  readonly clientId: string
  readonly token?: string
  readonly invite?: string
  readonly claim?: string
  readonly returnTo: string
  readonly remember: boolean
}

/** Codes that go with the identity. */
export interface SignInCodes {
  readonly invite?: string
  readonly claim?: string
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)))

const redirectOf = (): string => `${location.origin}/`

/** The address at which a person signs in: an authorization code with PKCE, or an identity token (OpenID Connect). */
export const authorizeUrl = async (
  { authorize, clientId, flow, token }: SignInProvider,
  nonce: string,
  more: SignInCodes & Pick<PendingSignIn, 'returnTo' | 'remember'>,
): Promise<string> => {
  if (!authorize) throw new Error('the provider cannot be reached; try again in a minute')
  if (!globalThis.crypto?.subtle)
    throw new Error('signing in with a provider takes https, or http on this machine: this page came over plain http')
  const pending: PendingSignIn = { state: random(), verifier: random(), clientId, ...more, ...(token && { token }) }
  sessionStorage.setItem(PENDING, JSON.stringify(pending))
  const challenge = base64url(
    new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(pending.verifier))),
  )
  const url = new URL(authorize)
  const fields = {
    client_id: clientId,
    redirect_uri: redirectOf(),
    scope: 'openid email profile',
    response_mode: 'fragment',
    state: pending.state,
    nonce,
    ...(flow === 'code'
      ? { response_type: 'code', code_challenge: challenge, code_challenge_method: 'S256' }
      : { response_type: 'id_token' }),
  }
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
  return url.href
}

/** The sign-in that an answer belongs to; it can be taken once. */
export const takePending = (state: string): PendingSignIn => {
  const text = sessionStorage.getItem(PENDING)
  sessionStorage.removeItem(PENDING)
  const pending = text ? (JSON.parse(text) as PendingSignIn) : undefined
  if (pending?.state !== state)
    throw new Error('the answer of the provider belongs to no sign-in that began in this tab; sign in again')
  return pending
}

/** Exchanges an authorization code for the identity token. */
export const exchangeCode = async ({ token, clientId, verifier }: PendingSignIn, code: string): Promise<string> => {
  if (!token) throw new Error('the token address of the provider is not known; sign in again')
  const response = await fetch(token, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectOf(),
      client_id: clientId,
      code_verifier: verifier,
    }),
  }).catch(() => {
    throw new Error('the provider did not answer this page; it may not allow requests of browsers')
  })
  const answer = (await response.json().catch(() => ({}))) as { id_token?: unknown; error_description?: unknown }
  if (typeof answer.id_token === 'string') return answer.id_token
  throw new Error(
    typeof answer.error_description === 'string'
      ? answer.error_description
      : `the provider answered ${response.status} without an identity token`,
  )
}
