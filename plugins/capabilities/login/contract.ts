import type { tags } from 'typia'
import type { Media } from '../../../sdk/contract.js'
import type { Millis } from '../../../sdk/types.js'
import type { CapabilityId, CapabilityStatus } from '../records/contract.js'

/** A sign-in that a person continues at an address. */
export interface OAuthLogin {
  kind: 'oauth'
  url: string
  handshake: string
  expiresAt: Millis
  /** Where the server sends the browser when it is done. */
  redirect: string
}
/** A sign-in in a live window of the connection's own browser. */
export interface BrowserLogin {
  kind: 'browser'
  /** The window, for `GET /system/browser-view`; also the handshake. */
  session: string
}
export type LoginStarted = OAuthLogin | BrowserLogin
/** A sign-in that was completed, or abandoned, with the state of the connection. */
export interface FinishedLogin {
  ok: true
  status: CapabilityStatus
}
/** A page that says whether a sign-in worked. */
export interface LoginPage extends Media {
  'content-type': 'text/html; charset=utf-8'
}

/** Signing in to connected servers. */
export interface LoginCalls {
  /**
   * Start to sign in. To a server over HTTP: open `url`, and the sandbox does the rest when the browser comes back.
   *
   * To an account of kind `browser` or `identity`: a live window of its own browser, which you close when you are
   * signed in.
   *
   * A new start replaces an unfinished one; a handshake is good for 10 minutes, a window until it is closed.
   *
   * - 404: no such connection
   * - 409: there is nothing to sign in to, or a turn uses the browser of the account
   * - 424: the server cannot be reached, or offers no sign-in that is known here
   * - 429: too many browsers are open
   * - 501: Chromium is missing
   * - 503: the store of secrets is locked
   */
  'POST /capabilities/{id}/login'(input: { id: CapabilityId; kind?: 'oauth' | 'browser' }): LoginStarted

  /**
   * Complete a sign-in by hand, with the address the browser was sent to, or the code in it; or abandon it. With the
   * session of a window as handshake, it closes the window, and you are signed in.
   *
   * Finishing what is finished is a success.
   *
   * - 400: none or several of `redirectUrl`, `code` and `cancel`, a `state` that differs, or a bare code where the
   *   server names itself in the address: then paste the whole address
   * - 404: unknown or expired handshake
   * - 424: the server refused the code
   * - 503: the store of secrets is locked
   */
  'POST /capabilities/{id}/login/finish'(input: {
    id: CapabilityId
    handshake: string & tags.MaxLength<100>
    redirectUrl?: string & tags.MaxLength<4000>
    code?: string & tags.MinLength<1> & tags.MaxLength<2000>
    cancel?: boolean
  }): FinishedLogin

  /**
   * Where a server sends the browser at the end of a sign-in: completes it, and shows a page that says so.
   *
   * The `state` of a waiting sign-in is the credential, for one use. A failure is a page too, for a client that accepts
   * HTML, and the usual JSON for all others.
   *
   * - 400: the state is unknown, used or expired, the issuer differs, or the server reported an error
   * - 424: the server refused the code
   * - 429: 30 unknown states in a minute
   * - 503: the store of secrets is locked
   */
  'GET /capabilities/oauth/callback'(input: {
    state: string & tags.MaxLength<200>
    code?: string & tags.MaxLength<2000>
    error?: string & tags.MaxLength<200>
    iss?: string & tags.MaxLength<2000>
  }): LoginPage
}
