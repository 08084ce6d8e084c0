import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import type { Test } from 'tap'

interface IssuedToken {
  destroy(): Promise<void>
}
/** As much of the library of the authorization server as is used here; it brings no types. */
interface Provider {
  callback(): RequestListener
  readonly AccessToken: { find(token: string): Promise<IssuedToken | undefined> }
  readonly RefreshToken: { find(token: string): Promise<IssuedToken | undefined> }
  on(event: string, listener: (token: { jti: string }) => void): void
  use(middleware: (ctx: { path: string; body?: unknown }, next: () => Promise<void>) => Promise<void>): void
}

const listening = async (
  t: Pick<Test, 'teardown'>,
): Promise<{ url: string; serve: (listener: RequestListener) => void }> => {
  let serve: RequestListener = (_, response) => void response.end()
  const server = createServer((request, response) => serve(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serve: listener => (serve = listener),
  }
}

/**
 * A tool server that asks for a sign-in, and a real authorization server with dynamic registration.
 *
 * @param namesIssuer Whether it announces that its answers name it (RFC 9207).
 */
export const signedInServer = async (t: Pick<Test, 'teardown'>, ttl = 3600, namesIssuer = true) => {
  const issuer = await listening(t)
  const resource = await listening(t)
  const url = `${resource.url}/mcp`
  const library = 'oidc-provider'
  const { default: Made } = (await import(library)) as { default: new (issuer: string, config: object) => Provider }
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const provider = new Made(issuer.url, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'k', use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes: ['mcp', 'offline_access'],
    features: {
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope: 'mcp', accessTokenFormat: 'opaque', accessTokenTTL: ttl }),
        useGrantedResource: () => true,
      },
    },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
  })
  provider.use(async (ctx, next) => {
    await next()
    if (!namesIssuer && ctx.path.startsWith('/.well-known/'))
      delete (ctx.body as { [name: string]: unknown }).authorization_response_iss_parameter_supported
  })
  issuer.serve(provider.callback())
  const refreshTokens: string[] = []
  provider.on('refresh_token.saved', ({ jti }) => refreshTokens.push(jti))
  const accepted: string[] = []
  resource.serve(async (request, response) => {
    if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
      response.setHeader('content-type', 'application/json')
      const metadata = {
        resource: url,
        authorization_servers: [issuer.url],
        scopes_supported: ['mcp', 'offline_access'],
      }
      return response.end(JSON.stringify(metadata))
    }
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    if (token === undefined || !(await provider.AccessToken.find(token))) {
      const metadata = `${resource.url}/.well-known/oauth-protected-resource/mcp`
      return response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` }).end()
    }
    accepted.push(token)
    if (request.method !== 'POST') return response.writeHead(405).end()
    let body = ''
    for await (const piece of request) body += piece
    const { id, method, params } = JSON.parse(body) as {
      id?: number
      method: string
      params?: { protocolVersion: string }
    }
    if (id === undefined) return response.writeHead(202).end()
    const results: { [method: string]: object } = {
      initialize: {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'guarded', version: '1' },
      },
      'tools/list': { tools: [{ name: 'who', description: '', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: 'you' }] },
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    return response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }))
  })
  return { url, provider, accepted, refreshTokens }
}
