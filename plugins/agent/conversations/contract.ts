import type { Stream } from '../../../sdk/contract.js'
import type { Count, Ok, Positive, Text } from '../../../sdk/types.js'
import type { CopyRepo, ConversationState, LandRequest } from './conversation.js'
import type { TranscriptPage } from './record.js'
import type { ConversationId, Frame, LandConflict, RunId } from '../turn/frames.js'

/** Where words were found: the line they stand in, and who said it. */
export interface Snippet {
  text: string
  speaker: 'user' | 'agent'
}
/** A conversation that was found; without a snippet its title fits. */
export interface Match {
  id: ConversationId
  snippet?: Snippet
}
export interface Matches {
  matches: Match[]
  /** How many conversations were looked at. */
  scanned: Count
  /** The index is still being built: the answer can grow. */
  indexing: boolean
}

/** Conversations and their records. */
export interface ConversationCalls {
  /**
   * Go back to before the message at `index`, which is also the number of messages kept.
   *
   * Files of the private copy first, then the record, then the provider's memory. Ignored files, the saved state and
   * waiting messages (paused) stay, what is left behind is in the log of the branch. The shared tree has no saved
   * states.
   *
   * - 403: the turns of this conversation may write in folders that the caller may only read
   * - 404: no such conversation, or `index` is past the end of its record
   * - 409: a turn is running or parked, or the message is not a person's or has no saved state
   * - 424: git refused; nothing was cut
   * - 501: git is missing; the message says how to install it
   */
  'POST /agent/rewind'(input: { conversationId: Text; index: Count }): { snapshot: string; dropped: Count }

  /** Every conversation with its live turn. */
  'agent.conversations'(): { conversations: ConversationState[] }

  /** Those of the conversations named that are there for whom the call is made: ask it as the caller being served. */
  'agent.visible'(input: { ids: string[] }): { ids: string[] }

  /** One conversation with its live turn. */
  'agent.conversation'(input: { id: string }): ConversationState

  /** The record in order; with `limit` the last rows before index `before`. */
  'agent.transcript'(input: { id: string; limit?: Positive; before?: Count }): TranscriptPage

  /** Holds the conversation's turn lock while the stream is open: no turn starts, no other landing runs. */
  'agent.lock'(input: { id: string }): Stream<{ held: true }>

  /**
   * Writes down what a landing did: tips per repository, conflicts (absent: none left); adds the frame `landed` to a
   * live run. `settled` is the newest run, where that had ended before the landing began and every repository was
   * reached.
   */
  'agent.landed'(input: {
    id: string
    repos: CopyRepo[]
    conflicts?: LandConflict[]
    frame?: Frame & { kind: 'landed' }
    settled?: RunId
  }): Ok

  /** Takes a conversation off the board: its queue, frames, copy and branch go, its transcript stays. */
  'agent.discard'(input: { id: string }): Ok

  /** Gives a conversation the title a person chose. */
  'agent.rename'(input: { id: string; title: string }): Ok

  /** Stamps the read marks of conversations; one that is unknown refuses all. */
  'agent.seen'(input: { ids: string[] }): Ok

  /** Writes down that somebody asked for a landing; without a request nobody does any more. */
  'agent.requestLand'(input: { id: string; request?: LandRequest }): Ok

  /** Writes down whether clean turns land by themselves; without a word the rules decide again. */
  'agent.autoLand'(input: { id: string; autoLand?: boolean }): Ok

  /** Puts a conversation away: what its copy holds is committed, the checkout goes, the branch is parked. */
  'agent.archive'(input: { id: string }): Ok

  /** Brings a conversation back; its next turn rebuilds the copy. */
  'agent.unarchive'(input: { id: string }): Ok

  /** Deletes an archived conversation for good: copy, branch, queue, frames and transcript. */
  'agent.purge'(input: { id: string }): Ok

  /** Finds conversations by their title or by anything either side said. */
  'agent.search'(input: { query: string; caseSensitive?: boolean }): Matches

  /** Adds a line in the agent's voice with no turn behind it; the provider's memory is cleared. */
  'agent.place'(input: { id: string; text: string; by: string }): Ok
}
