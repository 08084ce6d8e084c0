import type { tags } from 'typia'
import type { Count, MostCharacters, Positive, Text } from '../../../sdk/types.js'
import type { ModelChoice, Origin } from '../conversations/conversation.js'
import type { ConversationId, Harness, PermissionMode, ProviderId, RunId } from './frames/frames.js'

/** The caller's idempotency id, kept 30 days; minted as `m-…` when left out. */
export type MessageId = string & tags.MinLength<1> & tags.MaxLength<128>
/** How a message was delivered: it started a turn, was sent into the running one, or waits. */
export type Delivery = 'started' | 'said' | 'queued'

/** What the person has open: 1-based lines, and the text selected. */
export interface EditorContext {
  file: string & tags.MinLength<1> & tags.MaxLength<4096>
  startLine?: Positive
  endLine?: Positive
  selection?: string & tags.MaxLength<20000>
}
export interface LocalPlacement {
  kind: 'local'
}
export interface RunnerPlacement {
  kind: 'runner'
  id: Text
}
/** One repository of a new private copy and the commit, by its id, that the copy stays on. */
export interface BaseCommit {
  repo: string
  base: Text
}
/** `keep` counts the rows of the other conversation's record that this one begins with. */
export interface ForkSource {
  conversationId: ConversationId
  keep: Count
  /** `then`: a private copy in its state before the message at `keep`; `now`: the files as they are. */
  files: 'then' | 'now'
}

/** A message and the options of its turn. */
export interface TurnInput extends ModelChoice {
  /** May be empty when there is an attachment. */
  prompt: string & tags.MaxLength<1048576>
  /** The message was composed by the app or the sandbox. */
  errand?:
    | 'land-conflict'
    | 'verify-nudge'
    | 'land-breakage'
    | 'land-fix'
    | 'land-fix-nudge'
    | 'land-held'
    | 'push-fix'
    | 'push-fix-nudge'
    | 'ci-fix'
    | 'ci-fix-nudge'
  messageId?: MessageId
  /** Ignored when the conversation has a title. */
  title?: string & MostCharacters<80>
  /** Workspace paths. */
  attachments?: Text[] & tags.MaxItems<20>
  /** Workspace paths; one that escapes or names no file is ignored. */
  mentions?: string[] & tags.MaxItems<20>
  /** Left out: the conversation's provider, else the default one. */
  agent?: ProviderId
  /** Left out: the provider's own loop. */
  harness?: Harness
  account?: string
  actsAs?: string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
  sessionId?: string
  conversationId?: ConversationId
  /** Work in a private copy of the repositories; needs `conversationId`. */
  isolated?: boolean
  /** Folder from the workspace root to start in; first turn only. */
  startIn?: string & tags.MaxLength<200>
  placement?: LocalPlacement | RunnerPlacement
  /** Pins a new private copy to exact commits, and asks for one; first turn only. */
  worktreeBase?: BaseCommit[] & tags.MinItems<1> & tags.MaxItems<50>
  /** Land the work of this turn when it completes; for callers who may land. */
  autoLand?: boolean
  runRole?:
    | 'commit-message'
    | 'session-title'
    | 'safety-judge'
    | 'loop-verdict'
    | 'model-router'
    | 'pipeline-fix'
    | 'deployment-fix'
    | 'maintenance-chore'
    | 'documentation-run'
    | 'acceptance-run'
    | 'approval-queue'
    | 'extension-review'
    | 'loop-iteration'
  /** Refused when present: the sandbox sets it. */
  origin?: Origin
  /** Begin with the messages of another conversation; first turn only. */
  forkOf?: ForkSource
  /** Nobody can answer: the turn opens no cards. */
  unattended?: boolean
  /** Content from outside caused the turn; names the source. */
  outsideWake?: Text
  /** Left out: the conversation's last, else `bypassPermissions`. */
  permissionMode?: PermissionMode
  /** Narrows the turn to these tools. */
  allowedTools?: Text[]
  tierHold?: boolean
  editorContext?: EditorContext
}

export interface Started {
  run: RunId
  conversationId: ConversationId
  messageId: MessageId
  delivery: Delivery
}

/** The new provider choice of a conversation; at least one of the optional fields besides `when`. */
export interface SwitchInput extends ModelChoice {
  conversationId: ConversationId
  agent?: ProviderId
  harness?: Harness
  account?: string
  /** Left out: `now`, which a running turn applies at its next gap. */
  when?: 'now' | 'next'
}
/**
 * When the move applies, the running turn that moves, and from what it continues: the provider's session, or the
 * record.
 */
export interface Switched {
  applied: 'now' | 'next'
  run?: RunId
  kept: 'session' | 'record'
}
