import type { tags } from 'typia'
import type { AccessSession, OpenedSession, TokenRow } from '../../../sdk/kernel.js'
import type { CallerKind, Millis, Ok, Role, Scope, Text } from '../../../sdk/types.js'

/** The caller, as the sandbox sees them. */
export interface Me {
  actor: string
  kind: CallerKind
  role: Role
  scope?: Scope
  areas?: string[]
  sessionId?: string
  name?: string
  picture?: string
}
/** An identity provider a person can sign in with. */
export interface SignInProvider {
  id: string
  label: string
  issuer: string
  clientId: string
  /** Where a page sends the person, from the issuer's configuration; absent while that cannot be read. */
  authorize?: string
  /** Where a page exchanges an authorization code; absent while the issuer's configuration cannot be read. */
  token?: string
  /** How a page signs in: with an authorization code and PKCE, or with an identity token. */
  flow: 'code' | 'id_token'
}
/** What a sign-in page needs before the caller is known. */
export interface SignInOptions {
  claimed: boolean
  /** Whether the built-in local sign-in works at this address. */
  local: boolean
  name?: string
  /** Must be carried by a provider's identity token. */
  nonce: string
  nonceExpiresAt: Millis
  providers: SignInProvider[]
}

/** Whom a site's own sign-in names. */
export interface SiteIdentity {
  subject: string
  /** Only where its provider verified it. */
  email?: string
  name?: string
}

/** Who may reach the sandbox, and what they reach. */
export interface AccessCalls {
  /**
   * Tell a sign-in page what it can offer: providers, whether there is an owner, whether local sign-in works here.
   *
   * - 429: more than 120 requests a minute
   */
  'GET /system/sign-in'(): SignInOptions

  /**
   * Turn a proof into a session, or renew the session presented.
   *
   * `login` is a one-time code that `sandbox login` prints. An identity token as bearer, with the nonce of `GET
   * /system/sign-in`, signs in people with a role here; `invite` grants one; on a sandbox without an owner the first
   * identity becomes the owner, with `claim` if the code printed at start is required. Where no provider is configured
   * an `invite` alone signs in, under `name`. A bearer session is renewed: same id, new token, and the old token works
   * 10 more minutes. A code is used up only when it grants access. The token is in this answer only.
   *
   * - 401: no proof of any kind, or the token, session or code is not accepted
   * - 403: the person has no role here, the e-mail belongs to another account, or a local login came over plain HTTP
   * - 409: the sandbox has no owner and no claim code was sent, or has one and a code was sent
   * - 424: the keys of the identity provider cannot be fetched
   * - 429: too many failed attempts from this address
   */
  'POST /system/session'(input: {
    claim?: string & tags.MinLength<1> & tags.MaxLength<64>
    login?: string & tags.MinLength<1> & tags.MaxLength<128>
    invite?: string & tags.MinLength<1> & tags.MaxLength<128>
    name?: string & tags.MinLength<1> & tags.MaxLength<80>
    device?: string & tags.MinLength<1> & tags.MaxLength<120>
  }): OpenedSession

  /**
   * List the caller's active sessions, for the owner everybody's; the most recently used first.
   *
   * - 403: the caller is not a signed-in person
   */
  'GET /system/sessions'(): { sessions: AccessSession[] }

  /**
   * End sessions: this one, one by id, or every session of one person.
   *
   * An empty body ends every session of the sandbox, the caller's too. Streams of an ended session close within 1 s.
   * Repeating is harmless.
   *
   * - 400: more than one of `current`, `id` and `email`
   * - 403: another person's session, or all sessions, by a caller who is not the owner
   */
  'POST /system/sessions/revoke'(input: { current?: true; id?: Text; email?: Text }): { ok: true; revoked: number }

  /**
   * Mint a control token for a program.
   *
   * The token is in this answer only. Labels need not be unique. At most 100 tokens are active.
   *
   * - 400: a blank label, or `expiresAt` has passed
   * - 403: the caller is not the signed-in owner
   * - 429: 100 tokens are active
   */
  'POST /system/control/tokens'(input: {
    label: string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[^\\x00-\\x1f]+$'>
    scope: Scope
    expiresAt?: Millis
  }): { id: string; token: string }

  /** List every token not revoked, newest first, never with its value; expired ones stay 30 days. */
  'GET /system/control/tokens'(): { tokens: TokenRow[] }

  /**
   * Revoke a token at once and close its streams; a turn it started continues.
   *
   * - 404: no such token
   */
  'DELETE /system/control/tokens/{id}'(input: { id: Text }): Ok

  /**
   * Whom a token of a site's own sign-in names; the token can be used until it expires.
   *
   * - 401: it is not valid, or not of this issuer for this client
   * - 424: the keys of the issuer cannot be fetched
   */
  'identity.verify'(input: { token: string; issuer: string; clientId: string }): SiteIdentity
}
