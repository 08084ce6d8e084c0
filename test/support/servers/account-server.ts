import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import type { Test } from 'tap'

/** The part of the library that is used here; it has no types. */
interface OidcProvider {
  callback(): RequestListener
  readonly AccessToken: { find(token: string): Promise<object | undefined> }
}
interface OidcLibrary {
  readonly default: new (issuer: string, configuration: object) => OidcProvider
}
type Form = { [field: string]: string }

/** An answer of a model that is a refusal. */
interface ModelRefusal {
  readonly status: number
  readonly body: object
  readonly headers?: Form
}

/** A provider of models that people sign in to: a real OAuth server, a list of models, answers and limits. */
export interface AccountServer {
  readonly url: string
  /** Its definition, with some fields changed. */
  definition(id: string, more?: { auth?: object; [field: string]: unknown }): object
  /** What it was asked for tokens, and what it revoked. */
  readonly tokens: Form[]
  readonly revoked: string[]
  /** The challenges of its sign-in page. */
  readonly challenges: Form[]
  /** The credentials of requests to its models, in order. */
  readonly used: string[]
  readonly keys: Set<string>
  readonly script: {
    /** How long tokens last, in seconds. */
    lifetime: number
    /** The next answers to requests for tokens, before its own. */
    answers: { status: number; body: object }[]
    /** The answer to requests to models by their credential. */
    refuses: Map<string, ModelRefusal>
    /** The answer to requests to models with any credential. */
    refusesAll?: ModelRefusal
    /** Answers of models wait for it. */
    holds?: Promise<void>
    /** How full the limits of a credential are, in percent; `hang`: it never says. */
    limits: Map<string, number | 'hang'>
    resetsAt: number
    /** Further headers of the answers of its models. */
    headers: Form
  }
  /** Signs a person in like a browser; returns the address that the browser is sent to in the end, or its page. */
  approve(url: string, email: string): Promise<string>
}

const PEOPLE_KEYS = ['sk-first-key-of-the-tests', 'sk-second-key-of-the-tests']

/** Starts the server. */
export const startAccountServer = async (t: Test): Promise<AccountServer> => {
  const library = 'oidc-provider'
  const { default: Provider } = (await import(library)) as OidcLibrary
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  let serve: RequestListener = (_, res) => void res.end()
  const http = createServer((req, res) => serve(req, res)).listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.teardown(() => {
    http.close()
    http.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const server: AccountServer = {
    url,
    definition: (id, { auth, ...more } = {}) => ({
      id,
      label: id.toUpperCase(),
      serving: 'native',
      protocol: 'openai',
      baseUrl: `${url}/v1`,
      auth: {
        flows: ['redirect', 'code', 'device', 'key'],
        authorizeUrl: `${url}/auth`,
        tokenUrl: `${url}/token`,
        deviceUrl: `${url}/device/auth`,
        revokeUrl: `${url}/token/revocation`,
        clientId: 'sandbox',
        scopes: ['openid', 'email'],
        identity: { email: 'id_token.email' },
        header: 'bearer',
        keyUrl: `${url}/keys`,
        ...auth,
      },
      models: { builtIn: [{ id: 'm', label: 'M' }] },
      ...more,
    }),
    tokens: [],
    revoked: [],
    challenges: [],
    used: [],
    keys: new Set(PEOPLE_KEYS),
    script: {
      lifetime: 3600,
      answers: [],
      refuses: new Map(),
      limits: new Map(),
      resetsAt: Date.now() + 3_600_000,
      headers: {},
    },
    approve: (page, email) => browse(page, email),
  }
  const provider = new Provider(url, {
    clients: [
      {
        client_id: 'sandbox',
        token_endpoint_auth_method: 'none',
        application_type: 'native',
        redirect_uris: ['http://127.0.0.1/callback', `${url}/shown`],
        response_types: ['code'],
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      },
    ],
    jwks: {
      keys: [{ ...(await exportJWK(privateKey)), kid: randomBytes(8).toString('hex'), use: 'sig', alg: 'RS256' }],
    },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    claims: { openid: ['sub'], email: ['email'] },
    conformIdTokenClaims: false,
    features: { deviceFlow: { enabled: true }, revocation: { enabled: true } },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    ttl: { AccessToken: () => server.script.lifetime, RefreshToken: 86_400, Grant: 86_400, Session: 86_400 },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id, email: id }) }),
  })
  const own = provider.callback()
  serve = (req, res) => void answer(server, provider, own, req, res).catch(() => res.destroy())
  return server
}

const sendJson = (res: ServerResponse, status: number, body: object, headers: Form = {}): void => {
  res.writeHead(status, { 'content-type': 'application/json', ...headers })
  res.end(JSON.stringify(body))
}

const formOf = async (req: IncomingMessage): Promise<Form> => {
  let text = ''
  for await (const piece of req) text += String(piece)
  return Object.fromEntries(new URLSearchParams(text))
}

const answer = async (
  server: AccountServer,
  provider: OidcProvider,
  own: RequestListener,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> => {
  const { pathname, searchParams } = new URL(req.url ?? '', server.url)
  if (pathname === '/auth') server.challenges.push(Object.fromEntries(searchParams))
  if (pathname === '/token' || pathname === '/token/revocation') {
    const form = await formOf(req)
    const scripted = pathname === '/token' ? server.script.answers.shift() : undefined
    if (pathname === '/token') server.tokens.push(form)
    else server.revoked.push(form.token ?? '')
    if (scripted) return sendJson(res, scripted.status, scripted.body)
    Object.assign(req, { body: form })
    return void own(req, res)
  }
  if (!pathname.startsWith('/v1/') && pathname !== '/limits') return void own(req, res)
  const credential = (req.headers.authorization ?? '').replace(/^Bearer /, '')
  server.used.push(credential)
  const known = server.keys.has(credential) || (await provider.AccessToken.find(credential)) !== undefined
  const refusal = server.script.refusesAll ?? server.script.refuses.get(credential)
  if (!known) return sendJson(res, 401, { error: { message: `the credential ${credential} is unknown` } })
  if (pathname === '/limits') {
    const percent = server.script.limits.get(credential)
    if (percent === 'hang') return
    return sendJson(res, 200, { week: { used: percent, opens: server.script.resetsAt } })
  }
  if (refusal && pathname === '/v1/chat/completions')
    return sendJson(res, refusal.status, refusal.body, refusal.headers)
  if (pathname === '/v1/models') return sendJson(res, 200, { data: [{ id: 'm' }, { id: 'n' }] })
  if (pathname === '/v1/chat/completions') await server.script.holds
  if (pathname === '/v1/chat/completions') return speak(res, server.script.headers)
  return sendJson(res, 404, {})
}

/** A streamed answer of the model. */
const speak = (res: ServerResponse, more: Form): void => {
  const week = { 'x-week-used': '42', 'x-week-opens': '3600' }
  res.writeHead(200, { 'content-type': 'text/event-stream', ...week, ...more })
  const piece = (delta: object, finish: string | null, usage?: object): string => {
    const choices = [{ index: 0, delta, finish_reason: finish }]
    const said = { id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...(usage && { usage }) }
    return `data: ${JSON.stringify(said)}\n\n`
  }
  res.write(piece({ role: 'assistant', content: 'Hello.' }, null))
  res.end(`${piece({}, 'stop', { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 })}data: [DONE]\n\n`)
}

/** The digest that a verifier has as a challenge. */
export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

/** A browser that fills in every form: it signs in, consents, and confirms the code of a device. */
const browse = async (start: string, email: string): Promise<string> => {
  const cookies = new Map<string, string>()
  const { origin } = new URL(start)
  let at = start
  let form: Form | undefined
  for (let steps = 0; steps < 20; steps++) {
    const response = await fetch(at, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value) cookies.set(name, value)
      else cookies.delete(name)
    }
    form = undefined
    const next = response.headers.get('location')
    if (next) {
      at = new URL(next, at).href
      if (new URL(at).origin !== origin || at.startsWith(`${origin}/shown`)) return at
      continue
    }
    const page = await response.text()
    const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1]
    if (action === undefined) return page
    form = Object.fromEntries(
      [...page.matchAll(/<input[^>]*>/g)].flatMap(([input]) => {
        const name = /name="([^"]*)"/.exec(input)?.[1]
        return name === undefined ? [] : [[name, /value="([^"]*)"/.exec(input)?.[1] ?? '']]
      }),
    )
    if ('login' in form) Object.assign(form, { login: email, password: 'any' })
    at = new URL(action, at).href
  }
  throw new Error(`the sign-in at ${start} has no end`)
}
