import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose'
import type { Test } from 'tap'
import type { IdentityProvider } from '../../../sdk/kernel.js'

type Algorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA'

interface Key {
  readonly kid: string
  readonly alg: Algorithm
  readonly privateKey: CryptoKey
  readonly publicJwk: JWK
}

/** An issuer of the test: publishes its keys over HTTP and signs any claims. */
export interface Issuer {
  readonly url: string
  readonly provider: IdentityProvider
  /** How often its key set was fetched. */
  readonly fetched: () => number
  /** Overrides the answers to the next requests; undefined: correct answers. */
  answer:
    | ((path: string) => { status: number; body: string; headers?: { [name: string]: string } } | undefined)
    | undefined
  /** The public half of the first key, as it is published. */
  readonly publicJwk: () => JWK
  /** Creates new keys; the old ones are no longer published. */
  rotate(): Promise<void>
  /** A token of a person; the given claims replace valid ones, `undefined` omits one. */
  token(
    claims: { [claim: string]: unknown },
    more?: { alg?: Algorithm; header?: { [name: string]: unknown } },
  ): Promise<string>
}

const ALGORITHMS: readonly Algorithm[] = ['RS256', 'PS256', 'ES256', 'EdDSA']

const makeKey = async (alg: Algorithm): Promise<Key> => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const kid = randomUUID()
  return { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

/** The current time in seconds, as tokens use it. */
export const seconds = (): number => Math.floor(Date.now() / 1000)

/** Starts an issuer on loopback. */
export const startIssuer = async (t: Test, more: Partial<IdentityProvider> = {}): Promise<Issuer> => {
  let keys = await Promise.all(ALGORITHMS.map(makeKey))
  let fetched = 0
  const server = createServer((req, res) => {
    const { status, body, headers } = issuer.answer?.(req.url ?? '') ?? served(req.url ?? '')
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  })
  const served = (path: string) => {
    if (path === '/.well-known/openid-configuration')
      return { status: 200, body: JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }), headers: {} }
    if (path !== '/keys') return { status: 404, body: '{}', headers: {} }
    fetched += 1
    return { status: 200, body: JSON.stringify({ keys: keys.map(({ publicJwk }) => publicJwk) }), headers: {} }
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer: Issuer = {
    url,
    provider: { id: 'ours', label: 'Ours', issuer: url, audience: ['sandbox'], clientId: 'sandbox', ...more },
    fetched: () => fetched,
    answer: undefined,
    publicJwk: () => keys[0]!.publicJwk,
    rotate: async () => {
      keys = await Promise.all(ALGORITHMS.map(makeKey))
    },
    token: async (claims, { alg = 'RS256', header = {} } = {}) => {
      const key = keys.find(one => one.alg === alg)!
      const now = seconds()
      const all = {
        iss: url,
        aud: 'sandbox',
        sub: String(claims.email ?? 'nobody'),
        iat: now,
        exp: now + 300,
        email_verified: true,
        ...claims,
      }
      return new SignJWT(all as never)
        .setProtectedHeader({ alg, kid: key.kid, ...header } as never)
        .sign(key.privateKey)
    },
  }
  return issuer
}
