import type { tags } from 'typia'
import type { Count, Millis, Text } from '../../../sdk/types.js'

/** What a gate says. */
export interface GateVerdict {
  /** `fail` only when the step judged and its value does not pass; everything else that is no pass is `blocked`. */
  outcome: 'pass' | 'fail' | 'blocked'
  /** What became of the gate's step. */
  step: 'completed' | 'parked' | 'failed' | 'timeout'
  runId: string
  /** The value of the gate's field, as text. */
  value?: string
  reason: string
}
/** The address of a gate, and its token. */
export interface GateToken {
  url: string
  token: string
  createdAt: Millis
}
/** The token of a gate and its use. */
export interface RevealedGate extends GateToken {
  lastUsedAt?: Millis
  usedToday: Count
  dailyMax: Count
}

/** Designs that other programs run and wait for. */
export interface GateCalls {
  /**
   * Run a design and wait for the verdict of its gate.
   *
   * The token is the query field `token` or `authorization: Bearer`; the body, of any type and at most 64,000 bytes,
   * becomes the request. Answers 200 for each verdict, at the latest after `wait` seconds (600 unless given); then, or
   * when the caller hangs up, the run is stopped. The same header `idempotency-key` joins the run that is going, or
   * gets its verdict again for 24 h.
   *
   * - 401: the token is missing or wrong
   * - 403: the settings deny gates (`admission`)
   * - 404: no design of this id has a gate
   * - 409: no repository has a commit to start from; no maintainer saved the design as it is; or the run of this key
   *   was forgotten
   * - 422: the design has faults, a step needs a request, or a provider, harness, model or account is unknown
   * - 424: the account of a step needs a sign-in
   * - 429: all runs of this day are used, or a wrong token after 10 a minute from one address
   */
  'POST /workflows/{id}/gate'(input: {
    id: Text
    token?: string & tags.MaxLength<200>
    wait?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<10800>
    body?: string
  }): GateVerdict

  /**
   * Read the address of a gate and its token, for the pipeline that asks it.
   *
   * - 404: no design of this id has a gate
   * - 422: the file of designs cannot be read
   */
  'GET /workflows/{id}/gate'(input: { id: Text }): RevealedGate

  /**
   * Make a new token for a gate; the old one stops working at once, and verdicts that are waited for still come.
   *
   * - 404: no design of this id has a gate
   * - 422: the file of designs cannot be read
   */
  'POST /workflows/{id}/gate/rotate'(input: { id: Text }): GateToken
}
