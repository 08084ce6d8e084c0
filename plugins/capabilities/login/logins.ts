import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import type { CapabilityStatus } from '../records/contract.js'
import type { Entries } from '../records/entries.js'
import type { Vault } from '../records/vault.js'
import { toolServerIn } from '../servers/config.js'
import type { FinishedLogin, OAuthLogin } from './contract.js'
import { isLoopback } from '../../../sdk/node/named-address.js'
import { guardedFetch } from './guarded-fetch.js'
import { Handshakes, type Handshake } from './handshakes.js'
import { ServerSignIn } from './sign-in.js'
import type { SignInTokens } from './tokens.js'

const HELLO = { jsonrpc: '2.0', id: 0, method: 'ping' }

export interface LoginsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly entries: () => Pick<Entries, 'get' | 'open'>
  readonly vault: () => Pick<Vault, 'assertOpen'>
  readonly tokens: SignInTokens
  /** Asks a connection how it is, after its sign-in changed. */
  readonly status: (id: string) => Promise<CapabilityStatus>
}

/** Signing people in to servers over HTTP. */
export class Logins {
  readonly #deps: LoginsDeps
  readonly #handshakes = new Handshakes()

  constructor(deps: LoginsDeps) {
    this.#deps = deps
  }

  async start(id: string, base: string): Promise<OAuthLogin> {
    const { entries, vault, host } = this.#deps
    const found = await entries().get(id)
    const nothing = (why: string) => refuse('conflict', `there is nothing to sign in to: ${why}`)
    if (found.kind !== 'mcp') return nothing(`${id} is of kind ${found.kind}`)
    const { entry, problem } = await entries().open(found)
    if (problem) return refuse('conflict', problem.detail!)
    const server = toolServerIn(entry)
    if (server.kind !== 'http') return nothing(`the server ${id} is a program`)
    const { auth: way, clientId, scopes } = entry.config
    if (way === 'none' || way === 'token' || server.headers.authorization !== undefined)
      return nothing(`${id} has a token, or its config says that it needs no sign-in`)
    await vault().assertOpen()

    const fetchFn = guardedFetch(server.url, async () => (await host.call('kernel.listeners')).listeners)
    const { metadata, scope: asked } = await this.#challenge(server.url, fetchFn)
    const scope = scopes === undefined ? asked : String(scopes)
    const redirect = `${base}/capabilities/oauth/callback`
    const secret = entry.secrets.clientSecret
    const signIn = new ServerSignIn(
      redirect,
      {
        server: server.url.href,
        ...(clientId !== undefined && {
          client: { client_id: String(clientId), ...(secret !== undefined && { client_secret: secret }) },
        }),
        ...(metadata && { metadata: metadata.href }),
        ...(scope !== undefined && { scope }),
      },
      { interactive: true },
    )
    const handshake = this.#handshakes.add({
      capability: id,
      server: server.url,
      signIn,
      ...(metadata && { metadata }),
      ...(scope !== undefined && { scope }),
    })
    try {
      await this.#drive(handshake)
    } catch (error) {
      this.#handshakes.remove(handshake.id)
      throw refusalFor(error, `the server ${id} offers no sign-in that is known here`)
    }
    return {
      kind: 'oauth',
      url: openable(signIn.address, id),
      handshake: handshake.id,
      expiresAt: handshake.expiresAt,
      redirect,
    }
  }

  /** How to sign in, as the server answers a request without a token. */
  async #challenge(url: URL, fetchFn: typeof fetch | ReturnType<typeof guardedFetch>) {
    const response = await fetchFn(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(HELLO),
    })
    if (response.status !== 401)
      refuse('conflict', `there is nothing to sign in to: the server asks for no sign-in (${response.status})`)
    const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client')
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
    return { ...(resourceMetadataUrl && { metadata: resourceMetadataUrl }), ...(scope !== undefined && { scope }) }
  }

  async #drive({ server, signIn, metadata, scope }: Handshake, answer?: { code: string; iss?: string }): Promise<void> {
    const { auth } = await import('@modelcontextprotocol/client')
    await auth(signIn, {
      serverUrl: server,
      fetchFn: guardedFetch(server, async () => (await this.#deps.host.call('kernel.listeners')).listeners),
      ...(metadata && { resourceMetadataUrl: metadata }),
      ...(scope !== undefined && { scope }),
      ...(answer && { authorizationCode: answer.code, ...(answer.iss !== undefined && { iss: answer.iss }) }),
    })
  }

  /** Completes the sign-in that an answer of the server belongs to; undefined: there is none with this state. */
  async callback(query: URLSearchParams): Promise<Handshake | undefined> {
    const handshake = this.#handshakes.take(query.get('state') ?? '')
    if (!handshake) return undefined
    const error = query.get('error')
    const code = query.get('code')
    const iss = query.get('iss') ?? undefined
    if (error !== null || code === null)
      return refuse('invalid', `the server reported ${JSON.stringify(error ?? 'no code')}: start the sign-in again`)
    await this.#exchange(handshake, { code, ...(iss !== undefined && { iss }) })
    return handshake
  }

  async #exchange(handshake: Handshake, answer: { code: string; iss?: string }): Promise<void> {
    const { capability, signIn } = handshake
    const { vault, tokens, status, host } = this.#deps
    await vault().assertOpen()
    const { IssuerMismatchError } = await import('@modelcontextprotocol/client')
    try {
      await this.#drive(handshake, answer)
    } catch (error) {
      if (error instanceof IssuerMismatchError)
        refuse(
          'invalid',
          'the address names another server than the sign-in began with, or none: paste the whole address',
        )
      throw refusalFor(error, 'the server refused the code')
    }
    // The connection may have been removed meanwhile.
    await this.#deps.entries().get(capability)
    await tokens.keep(capability, signIn.stored)
    handshake.finished = true
    await status(capability)
    await record(host, {
      type: 'capability.signed-in',
      actor: 'sandbox:capabilities',
      outcome: 'ok',
      extra: { id: capability, kind: 'mcp' },
    })
  }

  async finish(given: {
    id: string
    handshake: string
    redirectUrl?: string
    code?: string
    cancel?: boolean
  }): Promise<FinishedLogin> {
    const { id, redirectUrl, code, cancel } = given
    const ways = [redirectUrl, code, cancel || undefined].filter(way => way !== undefined)
    if (ways.length !== 1)
      refuse('invalid', `expected one of redirectUrl, code and cancel, found ${ways.length} of them`)
    const handshake = this.#handshakes.get(given.handshake)
    if (!handshake || handshake.capability !== id)
      return refuse('not-found', 'there is no such sign-in, or it has expired: start it again')
    const done = async () => ({ ok: true as const, status: await this.#deps.status(id) })
    if (handshake.finished) return done()
    if (cancel) {
      this.#handshakes.remove(handshake.id)
      return done()
    }
    if (redirectUrl === undefined) await this.#exchange(handshake, { code: code! })
    else {
      const query = URL.parse(redirectUrl)?.searchParams ?? refuse('invalid', 'redirectUrl: expected the whole address')
      if (query.get('state') !== handshake.signIn.state_)
        refuse('invalid', 'redirectUrl: its state is not that of this sign-in')
      await this.callback(query)
    }
    return done()
  }
}

/** An address that a person may open. */
const openable = (url: URL | undefined, id: string): string =>
  url && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url)))
    ? url.href
    : refuse('dependency', `the server ${id} names no address for signing in that is opened: expected https`)

const refusalFor = (error: unknown, what: string): Refusal => {
  if (error instanceof Refusal)
    return error.reason === 'forbidden' ? new Refusal('dependency', error.message, { cause: error }) : error
  return new Refusal('dependency', `${what}: ${(error as Error).message.slice(0, 300).toWellFormed()}`, {
    cause: error,
  })
}
