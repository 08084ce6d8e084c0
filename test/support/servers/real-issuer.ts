import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import type { Test } from 'tap'
import type { IdentityProvider } from '../../../sdk/kernel.js'

/** The part of the issuer's library that is used here; it has no types. */
interface Library {
  readonly default: new (issuer: string, configuration: object) => { callback(): RequestListener }
}

/** A real OpenID provider on loopback that accepts every account. */
export interface RealIssuer {
  readonly provider: IdentityProvider
  /** Signs in like a browser, with the authorization code flow and PKCE, and returns the identity token. */
  signIn(email: string, nonce: string): Promise<string>
  /** Allows pages at this address to sign in and to exchange their codes. */
  allow(page: string): Promise<void>
  /** Replaces its signing keys. */
  rotate(): Promise<void>
}

const REDIRECT = 'http://127.0.0.1/signed-in'

/** Starts the provider. */
export const startRealIssuer = async (t: Test): Promise<RealIssuer> => {
  const library = 'oidc-provider'
  const { default: Provider } = (await import(library)) as Library
  let serve: RequestListener = (_, res) => void res.end()
  const server = createServer((req, res) => serve(req, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const redirects = [REDIRECT]
  const begin = async () => {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true })
    serve = new Provider(issuer, {
      clients: [
        {
          client_id: 'sandbox-client',
          token_endpoint_auth_method: 'none',
          application_type: 'native',
          redirect_uris: redirects,
          response_types: ['code', 'id_token'],
          grant_types: ['authorization_code', 'implicit'],
        },
      ],
      clientBasedCORS: (_: unknown, origin: string) => redirects.some(page => page.startsWith(`${origin}/`)),
      jwks: {
        keys: [{ ...(await exportJWK(privateKey)), kid: randomBytes(8).toString('hex'), use: 'sig', alg: 'RS256' }],
      },
      responseTypes: ['code', 'id_token'],
      cookies: { keys: [randomBytes(16).toString('hex')] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      conformIdTokenClaims: false,
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, email: id, email_verified: true, name: `Known as ${id.split('@')[0]}` }),
      }),
    }).callback()
  }
  await begin()
  return {
    provider: { id: 'real', label: 'Real', issuer, audience: ['sandbox-client'], clientId: 'sandbox-client' },
    allow: page => {
      redirects.push(page)
      return begin()
    },
    rotate: begin,
    signIn: (email, nonce) => browse(issuer, email, nonce),
  }
}

const browse = async (issuer: string, email: string, nonce: string): Promise<string> => {
  const { authorization_endpoint: authorize, token_endpoint: exchange } = (await (
    await fetch(`${issuer}/.well-known/openid-configuration`)
  ).json()) as { authorization_endpoint: string; token_endpoint: string }
  const verifier = randomBytes(32).toString('base64url')
  const cookies = new Map<string, string>()
  const visit = async (url: string, form?: { [field: string]: string }): Promise<string> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const next = response.headers.get('location')
    if (!next) throw new Error(`${response.status} ${await response.text()}`)
    return new URL(next, url).href
  }
  const asked = new URLSearchParams({
    client_id: 'sandbox-client',
    response_type: 'code',
    scope: 'openid email profile',
    redirect_uri: REDIRECT,
    nonce,
    state: 'here',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  let at = await visit(`${authorize}?${asked}`)
  while (!at.startsWith(REDIRECT)) {
    const consents = cookies.has('_session')
    at = at.includes('/interaction/')
      ? await visit(at, consents ? { prompt: 'consent' } : { prompt: 'login', login: email, password: 'any' })
      : await visit(at)
  }
  const code = new URL(at).searchParams.get('code')!
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    client_id: 'sandbox-client',
    code_verifier: verifier,
  })
  const { id_token: token } = (await (await fetch(exchange, { method: 'POST', body })).json()) as { id_token: string }
  return token
}
