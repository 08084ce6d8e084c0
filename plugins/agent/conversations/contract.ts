import type { Stream } from '../../../sdk/contract.js'
import type { Count, Ok, Text } from '../../../sdk/types.js'
import type { ConversationState, CopyRepo } from './conversation.js'
import type { CheckoutRepo } from '../copies/contract.js'
import type { ConversationId, Frame, LandConflict, RunId } from '../turn/frames/frames.js'

/** A search match: its line, and who said it. */
export interface Snippet {
  text: string
  speaker: 'user' | 'agent'
}
/** A conversation that was found; without a snippet its title matches. */
export interface Match {
  id: ConversationId
  snippet?: Snippet
}
export interface Matches {
  matches: Match[]
  /** The number of conversations searched. */
  scanned: Count
  /** The index is still being built: the answer can grow. */
  indexing: boolean
}

/** A conversation whose turn lock is held, with the repositories of its copy. */
export interface HeldConversation {
  held: true
  state: ConversationState
  repos: CheckoutRepo[]
}

/** Conversations and their records. */
export interface ConversationCalls {
  /**
   * Go back to before the message at `index`, which is also the number of messages kept.
   *
   * Restores the files of the private copy, then the record, then the provider's session. Ignored files, the saved
   * state and waiting messages (paused) stay; discarded commits remain in the branch's reflog. The shared tree goes
   * back to the point that was saved before the message, which undoes what others changed there since, but for
   * `.sandbox/config/`; a point is saved first. With `expect`, the run of the newest message that was seen, only
   * messages up to that run are dropped.
   *
   * - 403: the turns of this conversation may write in folders that the caller may only read
   * - 404: no such conversation, or `index` is past the end of its record
   * - 409: a turn is running or parked, also another one in the shared tree; the message is not a person's or has no
   *   saved state; another run than `expect` is the newest one (`run`); or a repository is in the middle of a merge
   *   or another operation
   * - 424: git refused; nothing was removed
   * - 501: git is missing; the message says how to install it
   */
  'POST /agent/rewind'(input: { conversationId: Text; index: Count; expect?: RunId }): {
    snapshot: string
    dropped: Count
  }

  /** Every conversation with its live turn, or only those that are archived or not. */
  'agent.conversations'(input: { archived?: boolean }): { conversations: ConversationState[] }

  /** Gives the conversations that the caller may see; make the call on behalf of the caller being served. */
  'agent.visible'(input: { ids: string[] }): { ids: string[] }

  /** One conversation with its live turn. */
  'agent.conversation'(input: { id: string }): ConversationState

  /**
   * Holds the conversation's turn lock while the stream is open: no turn starts, no other landing runs. Its only event
   * is the conversation as read under the lock.
   */
  'agent.lock'(input: { id: string }): Stream<HeldConversation>

  /**
   * Records the result of a landing: tips per repository, conflicts; adds the frame `landed` to a live run. Without
   * conflicts none are left, and the request for a landing is answered. `settled` is the newest run, where that had
   * ended before the landing began and every repository was reached.
   */
  'agent.landed'(input: {
    id: string
    repos: CopyRepo[]
    conflicts?: LandConflict[]
    frame?: Frame & { kind: 'landed' }
    settled?: RunId
  }): Ok

  /**
   * Discards a conversation: deletes its queue, frames, copy and branch, and keeps its transcript. With `lastRun`
   * (empty: none), only if no run began since.
   */
  'agent.discard'(input: { id: string; lastRun?: string }): Ok
}
