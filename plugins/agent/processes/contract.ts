import type { Count, Millis, Ok, Text } from '../../../sdk/types.js'
import type { ConversationId, RunId } from '../turn/frames/frames.js'

/** A command that an agent started in the background. */
export interface BackgroundCommand {
  conversationId: ConversationId
  /** Such as `sh-1`; unique in its conversation. */
  id: Text
  command: string
  startedAt: Millis
  /** The turn that started it; left out for a command that an earlier daemon ran. */
  run?: RunId
  running: boolean
  /** How it ended, such as "ended with exit code 1"; left out while it runs. */
  ended?: string
  exitCode?: number
}
/** A part of the output of such a command; `from` and `to` count its characters from the beginning. */
export interface BackgroundOutput extends BackgroundCommand {
  text: string
  from: Count
  to: Count
}
/** The number of commands in the background of a conversation that are known, and of those that run. */
export interface BackgroundCount {
  running: Count
  total: Count
}

/** The commands that agents run in the background: they outlive turns, and end with their conversation. */
export interface BackgroundCalls {
  /**
   * List the commands in the background of all conversations, or of one: those that run, and the last that ended.
   *
   * An `editor` token gets those of conversations it opened, a person limited to areas those of conversations there.
   *
   * - 403: an `editor` token names a conversation it did not open
   * - 404: no such conversation
   */
  'GET /agent/processes'(input: { conversationId?: ConversationId }): { processes: BackgroundCommand[] }

  /**
   * Read the output of a command in the background, from position `since` on.
   *
   * The last 256 Ki characters are kept; `from` says where the text really begins. Values of secrets are masked. What
   * the agent still has to read stays unread.
   *
   * - 403: an `editor` token names a conversation it did not open
   * - 404: no such conversation or command
   * - 409: an earlier daemon ran it: its output is gone
   */
  'GET /agent/processes/{conversationId}/{id}'(input: {
    conversationId: ConversationId
    id: Text
    since?: Count
  }): BackgroundOutput

  /**
   * End a command in the background with all that it started; one that has ended stays as it is.
   *
   * - 403: an `editor` token names a conversation it did not open, or the caller may only read its folders
   * - 404: no such conversation or command
   */
  'DELETE /agent/processes/{conversationId}/{id}'(input: { conversationId: ConversationId; id: Text }): Ok
}
