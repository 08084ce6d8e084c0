import { createHash } from 'node:crypto'
import { refuse } from '../../../sdk/index.js'
import { asData } from '../../../sdk/node/access/redact.js'
import type { ProviderDefinition } from '../../providers/contract.js'
import { fieldAt, answerText, fitsHeader, providerWords, type AskProvider, type WireAnswer } from '../provider-wire.js'
import type { AccountCredential } from '../stored-accounts.js'

/** What a provider granted, and to whom. */
export interface GrantedAccount {
  readonly credential: AccountCredential
  readonly email?: string
  readonly organization?: string
  readonly scope?: string
}
/** What a provider gave to begin the sign-in of a device. */
export interface DeviceStart {
  readonly url: string
  readonly code: string
  readonly deviceCode: string
  readonly intervalMs: number
  readonly lastsMs: number
}

/** A provider refused; `code` is that of OAuth (RFC 6749, section 5.2; RFC 8628, section 3.5). */
export class OAuthRefusal extends Error {
  readonly code: string
  constructor(code: string, words: string) {
    super(words)
    this.code = code
  }
}

const REVOKE_MS = 5000
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
/** RFC 8628, section 3.2. */
const DEFAULT_INTERVAL_S = 5
/** A provider that asks to be asked without a pause is asked once a second. */
const SHORTEST_INTERVAL_S = 1
/** Beyond this a credential is renewed once a century. */
const LONGEST_S = 100 * 365 * 24 * 3600
const MOST_TEXT = 200

/** The page where a person signs in, with the challenge of a verifier (RFC 7636). */
export const signInPage = (
  { auth: { authorizeUrl: page = '', clientId, scopes = [], grants, parameters = {} } }: ProviderDefinition,
  { verifier, state, redirectUri }: { verifier: string; state: string; redirectUri?: string },
): string => {
  const url = new URL(page)
  const oauth = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: scopes.length > 0 ? scopes.join(' ') : undefined,
    state,
  }
  const asked = {
    ...parameters,
    // A page that takes an address alone has no field for the state: the address ends with it.
    ...(grants === 'key' ? { callback_url: redirectUri } : oauth),
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(asked)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

/** The definition with the client of the person who signs in; undefined: it has its own. */
export const asClient = (definition: ProviderDefinition, clientId: string | undefined): ProviderDefinition =>
  clientId === undefined ? definition : { ...definition, auth: { ...definition.auth, clientId } }

/** Speaks OAuth with the providers of definitions. */
export class OAuth {
  readonly #ask: AskProvider

  constructor(ask: AskProvider) {
    this.#ask = ask
  }

  /** Redeems a code. */
  redeem(
    definition: ProviderDefinition,
    { code, verifier, redirectUri }: { code: string; verifier: string; redirectUri?: string },
  ): Promise<GrantedAccount> {
    if (definition.auth.grants === 'key') return this.#key(definition, { code, verifier })
    const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier }
    return this.#tokens(definition, form, [code, verifier])
  }

  /** Redeems a code for a key that lasts. */
  async #key(
    { auth: { tokenUrl = '' } }: ProviderDefinition,
    { code, verifier }: { code: string; verifier: string },
  ): Promise<GrantedAccount> {
    const form = { code, code_verifier: verifier, code_challenge_method: 'S256' }
    const answer = await this.#ask({ url: tokenUrl, form, asJson: true })
    const value = answerText(answer.value, 'key')
    if (answer.status !== 200 || !value) throw refusalOf(answer, [code, verifier])
    if (!fitsHeader(value)) throw new OAuthRefusal('invalid_key', 'its key has characters that no header takes')
    return { credential: { kind: 'key', value } }
  }

  /** Renews a credential; the provider may keep its refresh token, or rotate it. */
  async renew(definition: ProviderDefinition, refresh: string, clientId?: string): Promise<AccountCredential> {
    const form = { grant_type: 'refresh_token', refresh_token: refresh }
    const { credential } = await this.#tokens(asClient(definition, clientId), form, [refresh])
    return { refresh, ...credential, ...(clientId !== undefined && { clientId }) }
  }

  /** Begins the sign-in of a device. */
  async device(definition: ProviderDefinition): Promise<DeviceStart> {
    const { deviceUrl = '', clientId, scopes = [] } = definition.auth
    const scope = scopes.length > 0 ? scopes.join(' ') : undefined
    const answer = await this.#ask({ url: deviceUrl, form: { client_id: clientId, scope } })
    const { value } = answer
    const deviceCode = answerText(value, 'device_code')
    const code = answerText(value, 'user_code')
    const page = answerText(value, 'verification_uri_complete') ?? answerText(value, 'verification_uri')
    if (answer.status !== 200 || !deviceCode || !code || !page)
      return refuse('dependency', `${definition.label} refused to begin: ${providerWords(answer, [deviceCode ?? ''])}`)
    return {
      url: page,
      code,
      deviceCode,
      intervalMs: Math.max(numberAt(value, 'interval') ?? DEFAULT_INTERVAL_S, SHORTEST_INTERVAL_S) * 1000,
      lastsMs: (numberAt(value, 'expires_in') ?? Infinity) * 1000,
    }
  }

  /** Asks whether a device was approved; throws `authorization_pending` or `slow_down` while it was not. */
  poll(definition: ProviderDefinition, deviceCode: string): Promise<GrantedAccount> {
    return this.#tokens(definition, { grant_type: DEVICE_GRANT, device_code: deviceCode }, [deviceCode])
  }

  /** Asks the provider to revoke a credential; false: it cannot, or did not. */
  async revoke(definition: ProviderDefinition, { value, refresh, clientId: own }: AccountCredential): Promise<boolean> {
    const { revokeUrl, clientId, clientSecret } = asClient(definition, own).auth
    if (revokeUrl === undefined) return false
    const revoked = async (token: string, hint: string): Promise<boolean> => {
      const form = { token, token_type_hint: hint, client_id: clientId, client_secret: clientSecret }
      return (await this.#ask({ url: revokeUrl, form, timeoutMs: REVOKE_MS })).status === 200
    }
    const tokens = [...(refresh ? [revoked(refresh, 'refresh_token')] : []), revoked(value, 'access_token')]
    return (await Promise.allSettled(tokens)).every(one => one.status === 'fulfilled' && one.value)
  }

  async #tokens(
    definition: ProviderDefinition,
    form: { readonly [field: string]: string | undefined },
    secrets: readonly string[],
  ): Promise<GrantedAccount> {
    const { tokenUrl = '', clientId, clientSecret, identity, tokenBody } = definition.auth
    const answer = await this.#ask({
      url: tokenUrl,
      form: { ...form, client_id: clientId, client_secret: clientSecret },
      asJson: tokenBody === 'json',
    })
    const { value } = answer
    const access = answerText(value, 'access_token')
    const refresh = answerText(value, 'refresh_token')
    if (answer.status !== 200 || !access) throw refusalOf(answer, secrets)
    const now = Date.now()
    const lasts = numberAt(value, 'expires_in')
    const [email, organization] = [named(value, identity?.email), named(value, identity?.organization)]
    const scope = answerText(value, 'scope')
    return {
      credential: {
        kind: 'bearer',
        value: access,
        issuedAt: now,
        ...(refresh !== undefined && { refresh }),
        ...(lasts !== undefined && { expiresAt: now + lasts * 1000 }),
      },
      ...(email !== undefined && { email }),
      ...(organization !== undefined && { organization }),
      ...(scope !== undefined && { scope: asData(scope, MOST_TEXT) }),
    }
  }
}

const refusalOf = (answer: WireAnswer, secrets: readonly string[]): OAuthRefusal =>
  new OAuthRefusal(answerText(answer.value, 'error') ?? `status_${answer.status}`, providerWords(answer, secrets))

const numberAt = (value: unknown, path: string): number | undefined => {
  const given = fieldAt(value, path)
  const found = typeof given === 'number' || typeof given === 'string' ? Number(given) : NaN
  return Number.isFinite(found) && found >= 0 ? Math.min(found, LONGEST_S) : undefined
}

/** Who signed in, by a path into the answer; one that begins with `id_token` goes on in the claims of that token. */
const named = (answer: unknown, path: string | undefined): string | undefined => {
  if (path === undefined) return undefined
  const inToken = /^id_token\.(.+)$/.exec(path)?.[1]
  const found =
    inToken === undefined ? answerText(answer, path) : answerText(claimsOf(answerText(answer, 'id_token')), inToken)
  return found && asData(found, MOST_TEXT)
}

/** The claims of a token that came from the provider itself over a checked connection, so its signature is not. */
const claimsOf = (token = ''): unknown => {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  } catch {
    return {}
  }
}
