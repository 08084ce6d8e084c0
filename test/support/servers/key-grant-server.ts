import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import shipped from '../../../plugins/providers/shipped/openrouter.json' with { type: 'json' }
import { challengeOf } from './account-server.js'

/** A server that speaks as OpenRouter does: a page that sends a code, exchanged for a key that lasts. */
export interface KeyGrantServer {
  readonly url: string
  /** The shipped definition, with the addresses of this server. */
  definition(id: string): object
  /** Signs in like a browser; returns the address that the browser is sent to. */
  approve(page: string): Promise<string>
  /** The bodies of requests for keys, and the keys that it gave. */
  readonly exchanges: { readonly type: string | undefined; readonly body: { readonly [field: string]: unknown } }[]
  readonly keys: Set<string>
  readonly script: {
    /** The next answer to a request for a key, in place of its own. */
    answer?: { status: number; body: string }
    limit: number | null
    remaining: number | null
  }
}

const HOME = 'https://openrouter.ai'

/** Starts the server. */
export const startKeyGrantServer = async (t: Test): Promise<KeyGrantServer> => {
  const codes = new Map<string, string>()
  const http = createServer((req, res) => void answer(req, res).catch(() => res.destroy())).listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.teardown(() => {
    http.close()
    http.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const server: KeyGrantServer = {
    url,
    definition: id => ({
      ...(JSON.parse(JSON.stringify(shipped).replaceAll(HOME, url)) as object),
      id,
      label: 'Router',
    }),
    approve: async page => (await fetch(page, { redirect: 'manual' })).headers.get('location') ?? '',
    exchanges: [],
    keys: new Set(['sk-or-v1-typed-by-hand']),
    script: { limit: null, remaining: null },
  }
  const send = (res: ServerResponse, status: number, body: object) => {
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(JSON.stringify(body))
  }
  const refused = (res: ServerResponse, status: number, message: string) =>
    send(res, status, { error: { code: status, message } })
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(req.url ?? '', url)
    if (pathname === '/auth') {
      const [back, challenge] = [searchParams.get('callback_url'), searchParams.get('code_challenge')]
      if (!back || !challenge || searchParams.get('code_challenge_method') !== 'S256')
        return refused(res, 400, 'callback_url and code_challenge are required')
      const code = `auth_code_${codes.size}`
      codes.set(code, challenge)
      const to = new URL(back)
      to.searchParams.set('code', code)
      res.writeHead(302, { location: to.href })
      return void res.end()
    }
    if (pathname === '/api/v1/auth/keys' && req.method === 'POST') {
      let text = ''
      for await (const piece of req) text += String(piece)
      const body = JSON.parse(text) as { code: string; code_verifier: string }
      server.exchanges.push({ type: req.headers['content-type'], body })
      const scripted = server.script.answer
      if (scripted) {
        delete server.script.answer
        res.writeHead(scripted.status, { 'content-type': 'application/json' })
        return void res.end(scripted.body)
      }
      const challenge = codes.get(body.code)
      codes.delete(body.code)
      if (!challenge || challengeOf(body.code_verifier) !== challenge)
        return refused(res, 403, 'Invalid code or code_verifier')
      const key = `sk-or-v1-${server.keys.size}-of-a-person`
      server.keys.add(key)
      return send(res, 200, { key, user_id: 'user_1' })
    }
    const bearer = (req.headers.authorization ?? '').replace(/^Bearer /, '')
    if (pathname === '/api/v1/models') return send(res, 200, { data: [{ id: 'any/model' }] })
    if (!server.keys.has(bearer)) return refused(res, 401, 'No auth credentials found')
    const { limit, remaining } = server.script
    if (pathname === '/api/v1/key')
      return send(res, 200, {
        data: { label: 'sk-or-v1-0…', limit, limit_remaining: remaining, limit_reset: 'monthly' },
      })
    return refused(res, 404, 'not found')
  }
  return server
}
