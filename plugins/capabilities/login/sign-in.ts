import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { randomBytes } from 'node:crypto'

/** What is kept of a sign-in, in the store of secrets. */
export interface StoredSignIn {
  /** The server that its tokens are for. */
  readonly server: string
  readonly client?: StoredOAuthClientInformation
  readonly tokens?: StoredOAuthTokens
  /** When the access token ends. */
  readonly expiresAt?: number
  /** Where the server says who signs people in. */
  readonly metadata?: string
  readonly scope?: string
}

/** Only a person can sign in. */
export class PersonNeeded extends Error {}

/** One sign-in to a server, as the library drives it: what it learns is here, until it is stored. */
export class ServerSignIn implements OAuthClientProvider {
  readonly state_ = randomBytes(32).toString('base64url')
  readonly redirectUrl: string
  readonly clientMetadata: OAuthClientMetadata
  /** The address a person is to open. */
  address: URL | undefined
  #stored: StoredSignIn
  #verifier = ''
  #discovery: OAuthDiscoveryState | undefined
  readonly #interactive: boolean
  readonly #changed: (stored: StoredSignIn) => Promise<void>

  constructor(
    redirectUrl: string,
    stored: StoredSignIn,
    how: { readonly interactive: boolean; readonly changed?: (stored: StoredSignIn) => Promise<void> },
  ) {
    this.redirectUrl = redirectUrl
    this.#stored = stored
    this.#interactive = how.interactive
    this.#changed = how.changed ?? (async () => {})
    this.clientMetadata = {
      client_name: 'Sandbox',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: stored.client?.client_secret === undefined ? 'none' : 'client_secret_basic',
      ...(stored.scope !== undefined && { scope: stored.scope }),
    }
  }

  get stored(): StoredSignIn {
    return this.#stored
  }

  state(): string {
    return this.state_
  }

  clientInformation(): StoredOAuthClientInformation | undefined {
    return this.#stored.client
  }

  saveClientInformation(client: StoredOAuthClientInformation): void {
    this.#stored = { ...this.#stored, client }
  }

  /** A person who signs in does so anew: an old token is not used. */
  tokens(): StoredOAuthTokens | undefined {
    return this.#interactive ? undefined : this.#stored.tokens
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    const { tokens: before, expiresAt: _, ...rest } = this.#stored
    const refresh = tokens.refresh_token ?? (this.#interactive ? undefined : before?.refresh_token)
    this.#stored = {
      ...rest,
      tokens: { ...tokens, ...(refresh !== undefined && { refresh_token: refresh }) },
      ...(tokens.expires_in !== undefined && { expiresAt: Date.now() + tokens.expires_in * 1000 }),
    }
    await this.#changed(this.#stored)
  }

  /** The server refused what is kept: the library tries again without it. */
  invalidateCredentials(what: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): void {
    const { tokens: _, expiresAt: __, client, ...rest } = this.#stored
    if (what === 'tokens') this.#stored = { ...rest, ...(client && { client }) }
    else if (what === 'all' || what === 'client') this.#stored = rest
    if (what === 'all' || what === 'discovery') this.#discovery = undefined
  }

  redirectToAuthorization(url: URL): void {
    if (!this.#interactive) throw new PersonNeeded()
    this.address = url
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  codeVerifier(): string {
    return this.#verifier
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovery
  }
}
