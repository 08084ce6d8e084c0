import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Ok } from '../../sdk/types.js'

type Address = string & tags.MinLength<1> & tags.MaxLength<2048>

/** The keys of a browser's subscription, in base64url. */
export interface WebPushKeys {
  /** Its public key: an uncompressed point of P-256, 65 bytes. */
  p256dh: string & tags.MinLength<1> & tags.MaxLength<200>
  /** Its secret, 16 bytes. */
  auth: string & tags.MinLength<1> & tags.MaxLength<100>
}
/** A browser, reached through the push service of its vendor (RFC 8030). Its id is `endpoint`. */
export interface WebPushChannel {
  kind: 'webpush'
  endpoint: Address
  keys: WebPushKeys
}
/**
 * An app, reached through a relay: `{ deviceId, notification }` is posted to `url` as JSON with `secret` as bearer. Its
 * id is `deviceId`.
 */
export interface RelayChannel {
  kind: 'relay'
  url: Address
  deviceId: Address
  secret: string & tags.MinLength<1> & tags.MaxLength<4096>
}
/** How a device is reached. */
export type PushChannel = WebPushChannel | RelayChannel

/** `finished`: a turn ended; `stuck`: an agent waits for a person; `approval`: something waits for a yes. */
export type PushMoment = 'finished' | 'stuck' | 'approval'

/** What is sent when one of the three moments comes. */
export interface PushMessage {
  moment: PushMoment
  /** What it is about; with neither nothing is sent. */
  conversationId?: string
  approvalId?: string
  text: string
  /** Who started the turn, as `by` names them; left out or no member: the owner. */
  startedBy?: string
  /** Maintainers are told too. */
  maintainers?: boolean
  /** The real places of the conversation: people limited to areas are told only if they reach all of them. */
  within?: string[]
}

/** Notifications on the devices of people: a turn finished, an agent is stuck, something awaits approval. */
export interface PushCalls {
  /**
   * Read the public key that subscriptions are made with, and whether a device is registered for the caller.
   *
   * `publicKey` is an uncompressed point of P-256 in base64url, the `applicationServerKey` of a browser's subscription
   * (RFC 8292). The key pair is made once and never replaced. A control token stands for the person who minted it.
   *
   * - 403: a caller who is no person and no control token of one
   * - 503: the stored key pair cannot be read
   */
  'GET /push/config'(input: {
    /** A browser's push address or a device id. */
    id?: Address
  }): { publicKey: string; subscribed: boolean }

  /**
   * Register a device for the calling person.
   *
   * A device that is registered already gets its new keys, and belongs to the caller from now on.
   *
   * - 400: keys of a wrong length or on no curve, or an address that is not https
   * - 403: a caller who is no person and no control token of one
   * - 422: the address is unknown, or of a private or loopback network; the deployment's `push.privateNetworks` allows
   *   the latter
   * - 429: 20 devices of this person
   */
  'POST /push/subscribe'(input: PushChannel): Ok

  /**
   * Remove one device of the caller; the others stay. An unknown id is fine.
   *
   * - 403: a caller who is no person and no control token of one
   */
  'POST /push/unsubscribe'(input: {
    /** A browser's push address or a device id. */
    id: Address
  }): Ok

  /**
   * Send a test to every device of the caller, also while they watch.
   *
   * Waits at most 15 s for the push services; `delivered` counts the devices whose service took it.
   *
   * - 403: a caller who is no person and no control token of one
   * - 429: more than 6 a minute
   * - 503: the stored key pair cannot be read
   */
  'POST /push/test'(): { delivered: Count }

  /** Tells the people concerned on their devices, but those who watch; answers before anything is sent. */
  'push.send'(input: PushMessage): Ok
}

export const pushContract: Contract<PushCalls> = {
  schema: () => typia.json.application<PushCalls>(),
  request: typia.misc.createValidatePrune<Requests<PushCalls>>(),
  reply: () => typia.createValidate<Replies<PushCalls>>(),
}
