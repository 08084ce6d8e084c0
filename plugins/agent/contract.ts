import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Positive, Size, Text } from '../../sdk/types.js'
import type { CopyRepo, ConversationState, LandRequest } from './conversation.js'
import type { CardReply, Command, ConversationId, Frame, LandConflict, QueuedMessage, RunEnd, RunId } from './frames.js'
import type { HelperSession } from './helper-session.js'
import type { TranscriptMessage, TranscriptPage } from './record.js'
import type { EditorContext, Started, SwitchInput, Switched, TurnInput } from './turn-input.js'
import { examples } from './examples.js'

export type * from './conversation.js'
export type * from './frames.js'
export type * from './helper-session.js'
export type * from './record.js'
export type * from './turn-input.js'

/** The head of a watched run: `seq` is how many frames exist now. */
export interface AttachedEvent {
  kind: 'attached'
  run: RunId
  prompt: string
  startedAt: Millis
  seq: Count
}
/** One frame; `seq` counts from 1 without a gap. */
export interface FrameEvent {
  kind: 'frame'
  seq: Count
  event: Frame
}
/** The run is over; `next` is the run a waiting message starts now. */
export interface EndEvent {
  kind: 'end'
  next?: RunId
}
export type AttachData = AttachedEvent | FrameEvent | EndEvent

/** The most recent refusal of a provider. `account` is left out for tokens. */
export interface ProviderRefusal {
  at: Millis
  kind: 'limit' | 'auth' | 'entitlement'
  message: string
  account?: string
}

// What the calls answer ----------------------------------------------------------------------------------------------

/** The messages that wait, in the order they will start. */
export interface WaitingMessages {
  messages: QueuedMessage[]
  paused: boolean
}
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

/** Where one repository of a private copy is on this machine. */
export interface CheckoutRepo extends CopyRepo {
  /** The main checkout; absent: it is gone. */
  main?: string
  /** The copy's working tree; absent: retired. */
  copy?: string
  /** The copy's own git dir, with what the repository does not have yet. */
  gitdir?: string
  /** The commit the daemon left the branch on in the repository; one that it has there otherwise is none of the conversation's. */
  tip?: string
}

/** A file of a private copy that is not committed, because it is larger than 512 MiB. */
export interface LargeFile {
  path: string
  size: Size
  /** The branch has an earlier version of it. */
  tracked?: true
}
/** How the sandbox brought one repository of a private copy onto the main line. */
export interface CheckoutSync {
  repo: string
  /** The commit of the main line it was to sit on, and the one it sat on before. */
  onto: string
  from: string
  /** Commits of the main line that came in. */
  commits: Count
  blocked: boolean
  /** What a blocked rebase stopped at. */
  paths: string[]
}

// Calls -------------------------------------------------------------------------------------------------------------

export interface Agent {
  /**
   * Say something to an agent; answers at once, and the work never depends on this connection.
   *
   * Starts a turn, says the words into the running turn, or queues them; words of a caller who may only read where the
   * running turn may write are queued. A conversation that does not exist is opened; without `conversationId` a new one
   * is minted. Sending a known `messageId` again returns what happened the first
   * time and does nothing twice. `startIn`, `isolated`, `worktreeBase` and `forkOf` count on a
   * first turn only; a fork of files of then, and pinned commits, give a private copy even without `isolated`.
   *
   * - 400: neither prompt nor attachment, `isolated` without `conversationId`, an `origin`, or an attachment that
   *   leads out of the workspace
   * - 403: `autoLand` by a caller who may not land, a conversation that an editor token did not open, or one in an
   *   area held for reading
   * - 404: no such conversation for this caller in `conversationId`, `forkOf` or `sessionId`, or `startIn` is outside
   *   the caller's areas
   * - 409: `messageId` was used in another conversation, or `forkOf` on a conversation that has messages or names
   *   files that are gone
   * - 422: unknown provider, harness, model, account, runner, repository, commit or file, no repository for a private
   *   copy, or a reserved `conversationId`
   * - 429: 50 messages wait in this conversation already
   * - 501: a program that the turn needs is not installed; the message names it
   */
  'POST /agent'(input: TurnInput): Started

  /**
   * Watch a conversation's newest run: its head, the frames after `after`, then live, then the end.
   *
   * `after` counts for the run named by `run`, or for the newest one. A run reserved for a waiting message is waited
   * for; any other run that is not the newest gets the newest one from its first frame. A stream that closes without
   * `end` was cut: attach again with the last `seq`. Any number may watch, and a slow watcher never slows the turn.
   *
   * - 404: no such conversation, or the log of its runs is not kept any more
   */
  'POST /agent/attach'(input: { conversationId: ConversationId; run?: string; after?: Count }): Stream<AttachData, { run: RunId; reason: RunEnd }>

  /**
   * Answer a card; the turn picks up where it stopped.
   *
   * The first answer wins: the very same answer again is fine, a different one is refused. `cancelled` ends the turn as
   * stopped and answers after it has ended. `always` on a card without `alwaysLabel` counts as `once`. An offer takes at
   * least a maintainer, and no token answers the two that move money.
   *
   * - 403: an offer is answered by a maintainer, one that moves money by a person, a card of another conversation by
   *   no editor token
   * - 404: no card with that `requestId`
   * - 409: the card was answered otherwise, or its turn ended
   * - 422: the card is of another kind, or an answer names a question that was not asked
   */
  'POST /agent/reply'(input: CardReply): Ok

  /**
   * Slip words into the running turn without stopping it.
   *
   * The `steer` frame is in the log before the answer. A parked turn keeps the words until its card is answered. It
   * never starts a turn and never queues.
   *
   * - 400: neither text nor attachment, or an attachment that leads out of the workspace or is not there
   * - 404: no such conversation
   * - 409: nothing runs, the turn is stopping, it may write in folders that the caller may only read, or its provider
   *   accepts no messages during a turn: use `POST /agent`
   */
  'POST /agent/steer'(input: {
    conversationId: Text
    text: string & tags.MaxLength<20000>
    attachments?: Text[] & tags.MaxItems<20>
    editorContext?: EditorContext
  }): Ok

  /**
   * Stop the turn; answers when it has fully ended, at most 15 s later.
   *
   * Files already written stay written, and nothing lands. A planned resume after an outage is dropped. With nothing running it answers at once.
   *
   * - 404: no such conversation
   */
  'POST /agent/stop'(input: { conversationId: Text }): Ok

  /**
   * Go back to before the message at `index`, which is also the number of messages kept.
   *
   * Files of the private copy first, then the record, then the provider's memory. Ignored files, the saved state and
   * waiting messages (paused) stay, what is left behind is in the log of the branch. The shared tree has no saved states.
   *
   * - 404: no such conversation, or `index` is past the end of its record
   * - 409: a turn is running or parked, or the message is not a person's or has no saved state
   * - 424: git refused; nothing was cut
   * - 501: git is missing; the message says how to install it
   */
  'POST /agent/rewind'(input: { conversationId: Text; index: Count }): { snapshot: string; dropped: Count }

  /**
   * Move a conversation to another account, model, provider or harness.
   *
   * A turn under way goes on there at its next gap between tool calls, in the same run; a call in hand is cut short after
   * 30 s. One that waits for an answer moves with the answer. Without a turn, and with `when` "next", it is written down for
   * the next one. A second move replaces one that has not happened. Work, copy and queue are untouched.
   *
   * - 400: nothing to change was given
   * - 404: no such conversation
   * - 409: the turn is stopping
   * - 422: unknown provider, harness, account or model
   * - 501: the harness needs a program that is not installed; the message names it
   */
  'POST /agent/switch-account'(input: SwitchInput): Switched

  /**
   * List the shortcut commands the provider last published.
   *
   * Invoking one is a prompt that starts with `/name`. Empty when the provider never published any.
   *
   * - 422: unknown provider
   */
  'GET /agent/commands'(input: { agent?: Text }): { commands: Command[] }

  /** Give the most recent refusal of each provider: a spent limit, a dead sign-in, or an account that may not use it. */
  'GET /agent/refusals'(): { refusals: { [provider: string]: ProviderRefusal } }

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
   * Writes down what a landing did: tips per repository, conflicts (absent: none left); adds the frame `landed` to a live
   * run. `settled` is the newest run, where that had ended before the landing began and every repository was reached.
   */
  'agent.landed'(input: {
    id: string; repos: CopyRepo[]; conflicts?: LandConflict[]; frame?: Frame & { kind: 'landed' }; settled?: RunId
  }): Ok
  /** Takes a conversation off the board: its queue, frames, copy and branch go, its transcript stays. */
  'agent.discard'(input: { id: string }): Ok
  /** Gives a conversation the title a person chose. */
  'agent.rename'(input: { id: string; title: string }): Ok
  /** Stamps the read marks of conversations; one that is unknown refuses all. */
  'agent.seen'(input: { ids: string[] }): Ok
  /** The messages that wait, and the live run. */
  'agent.queue'(input: { id: string }): WaitingMessages & { running?: RunId }
  /** Takes a waiting message back: its run never starts. */
  'agent.unqueue'(input: { id: string; messageId: string }): { removed: QueuedMessage; messages: QueuedMessage[] }
  /** Puts all that waits in this order; `start` lifts the pause and starts the first when the conversation is free. */
  'agent.orderQueue'(input: { id: string; messageIds: string[]; start?: boolean }): WaitingMessages & { run?: RunId }
  /** Writes down that somebody asked for a landing; without a request nobody does any more. */
  'agent.requestLand'(input: { id: string; request?: LandRequest }): Ok
  /** Writes down whether clean turns land by themselves; without a word the rules decide again. */
  'agent.autoLand'(input: { id: string; autoLand?: boolean }): Ok
  /** Writes down whether an outage is waited out; turned on, a turn that died of one within the last hour is picked up. */
  'agent.resumeAfterOutage'(input: { id: string; resumeAfterOutage?: boolean }): Ok
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
  /** Helpers of turns under way and of those that ended within a week, newest first; `before` pages by `startedAt`. */
  'agent.helpers'(input: { conversationId?: string; status?: 'live' | 'all'; limit?: Positive; before?: Millis }): { sessions: HelperSession[]; next?: Millis }
  /** One helper's record, live while its turn is under way. */
  'agent.helperTranscript'(input: { id: string }): { conversationId: ConversationId; messages: TranscriptMessage[] }
  /** The repositories of the workspace that have a commit: what a private copy is made of. */
  'checkouts.repositories'(): { repos: string[] }
  /** The repositories of a private copy with their folders on this machine. */
  'checkouts.repos'(input: { id: string }): { repos: CheckoutRepo[] }
  /**
   * Commits what the copy holds uncommitted, per repository, takes it into the repository, and answers the tips and the files
   * that are too large for that. `out` says in a sentence why the repository does not have a tip.
   */
  'checkouts.commitRest'(input: { id: string }): { tips: { repo: string; tip: string; large?: LargeFile[]; out?: string }[] }
  /** Commits the rest and moves the branch onto the main line; answers the repositories that were behind. */
  'checkouts.sync'(input: { id: string }): { repos: CheckoutSync[] }
}

export interface AgentEvents {
  /** Something a card of the board shows may be another: the conversation, its live turn or its queue. */
  'agent.changed': { id: ConversationId }
  /** `taken`: all that the turn left in its private copy is on the branch, and in the repository. */
  'turn.settled': { conversationId: ConversationId; run: RunId; end: RunEnd; branch?: string; taken?: boolean }
  'card.raised': { conversationId: ConversationId; run: RunId; requestId: string; kind: string }
  'card.resolved': { conversationId: ConversationId; run: RunId; requestId: string; kind: string }
  /** A conversation is gone whose discard or purge the end of the last daemon had cut off. */
  'conversation.gone': { conversationId: ConversationId; how: 'discarded' | 'purged' }
}

export const agent: Contract<Agent> = {
  schema: () => typia.json.application<Agent>(),
  request: typia.misc.createValidatePrune<Requests<Agent>>(),
  reply: () => typia.createValidate<Replies<Agent>>(),
  examples,
}
