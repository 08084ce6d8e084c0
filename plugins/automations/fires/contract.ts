import type { tags } from 'typia'
import type { ContentDigest, Count, Millis, Ok, Text } from '../../../sdk/types.js'
import type { ConversationId, HeldWake, RunId } from '../../agent/contract.js'

export type { HeldWake } from '../../agent/contract.js'

/** What made an automation fire. */
export type FireCause =
  | 'schedule'
  | 'webhook'
  | 'listener'
  | 'workspace'
  | 'hand'
  | 'approved'
  | 'countdown'
  | 'restart'
/** One fire, after it ended. */
export interface AutomationRun {
  at: Millis
  outcome: 'completed' | 'skipped' | 'error' | 'interrupted'
  detail?: string
  conversationId?: ConversationId
  run?: RunId
  durationMs?: Count
  costUsd?: number
  cause: FireCause
  /** Who started it, where a person or a sender did. */
  by?: string
}
/** What a fire started. */
export interface Fired {
  ok: true
  conversationId?: ConversationId
  run?: RunId
  /** Why it did not run. */
  skipped?: string
}
/** Wakes that wait for a person. */
export interface HeldCalls {
  /** List every wake that waits, oldest first; viewers and tokens of scope `read` get no payload. */
  'GET /automations/pending'(): { approvals: HeldWake[] }

  /**
   * Release a held wake with exactly what was held, once: of two callers one starts the turn.
   *
   * Admission is asked again, the guard is not. With `expect`, the `digest` of `GET /automations/pending`, only while
   * its automation is the one that was seen.
   *
   * - 404: nothing waits with this id any more, or its automation is gone
   * - 409: its automation is running: approve it when that has ended; or it was changed since (`digest` is that of now)
   * - 422: the turn is not possible; the wake goes on waiting
   * - 424: the turn could not start; the wake goes on waiting
   * - 429: a budget refuses; the wake goes on waiting
   * - 501: a program that the turn needs is not installed; the wake goes on waiting
   */
  'POST /automations/pending/{id}/approve'(input: { id: Text; expect?: ContentDigest }): Fired

  /**
   * Throw a held wake away; it is recorded as skipped.
   *
   * - 404: nothing waits with this id any more
   */
  'POST /automations/pending/{id}/reject'(input: { id: Text; reason?: string & tags.MaxLength<500> }): Ok

  /** Every wake that waits, without payloads. */
  'automations.held'(): { held: HeldWake[] }
}
