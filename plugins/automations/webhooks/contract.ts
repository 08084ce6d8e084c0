import type { tags } from 'typia'
import type { Millis, Text } from '../../../sdk/types.js'
import type { Fired } from '../fires/contract.js'

/** What a call of a webhook did. */
export interface WebhookFired extends Fired {
  /** The id of the wake that waits. */
  held?: string
  /** With `wait`: what became of the turn. */
  step?: 'completed' | 'parked' | 'failed' | 'timeout'
  /** The last thing that its agent said. */
  report?: string
}
/** The address of a webhook, and its token. */
export interface WebhookToken {
  url: string
  token: string
  createdAt: Millis
}
/** The token of a webhook and its last use. */
export interface RevealedToken extends WebhookToken {
  lastUsedAt?: Millis
  lastUsedFrom?: string
}

/** Automations that other programs fire. */
export interface WebhookCalls {
  /**
   * Call a webhook: the body, of any type and at most 1 MiB, becomes the payload.
   *
   * A turn gets its first 64,000 characters, and how many are left out.
   *
   * The token is the query field `token` or `authorization: Bearer`. Answers at once whether it fired, waits behind
   * another one (with the ids of its turn to come), is held or was skipped. `wait` keeps the connection until the turn
   * ended, at most so many seconds; the turn does not depend on it. The same header `idempotency-key` within 24 h gets
   * the first answer and fires nothing.
   *
   * - 401: the token is missing or wrong
   * - 404: no webhook of this id
   * - 409: it is switched off
   * - 422: the turn is not possible; the message says why
   * - 424: the turn could not start; the message says why
   * - 429: more than 60 calls a minute, 100 waiting, or a wrong token after 10 a minute from one address
   */
  'POST /automations/{id}/fire'(input: {
    id: Text
    token?: string & tags.MaxLength<200>
    wait?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<10800>
    body?: string
  }): WebhookFired

  /**
   * Read the address of a webhook and its token, for the sender.
   *
   * - 404: no such automation
   * - 409: its trigger is no webhook
   */
  'GET /automations/{id}/token'(input: { id: Text }): RevealedToken

  /**
   * Make a new token for a webhook; the old one stops working at once.
   *
   * - 404: no such automation
   * - 409: its trigger is no webhook
   */
  'POST /automations/{id}/token/rotate'(input: { id: Text }): WebhookToken
}
