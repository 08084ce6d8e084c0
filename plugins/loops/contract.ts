import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Positive, Text } from '../../sdk/types.js'
import type { BaseCommit, CardLoop, ConversationId, Harness, LoopState, RunId } from '../agent/contract.js'

export type { LoopState } from '../agent/contract.js'

type Command = string & tags.MinLength<1> & tags.MaxLength<4000>
type Rubric = string & tags.MinLength<1> & tags.MaxLength<8000>
type ModelName = string & tags.MinLength<1> & tags.MaxLength<200>
type Rounds = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<50>
type Stalled = number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<20>
type Spend = number & tags.ExclusiveMinimum<0>
/** The id of a saved design. */
export type LoopDesignId = string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>

/** A field of the document that each round writes. */
export interface OutputField {
  name: string & tags.Pattern<'^[a-zA-Z_][a-zA-Z0-9_]{0,39}$'>
  type: 'string' | 'number' | 'boolean' | 'string[]'
  /** What the agent writes there. */
  description: Text & tags.MaxLength<2000>
  required: boolean
}
/** A round writes nothing. */
export interface NoOutput {
  kind: 'none'
}
/** A round writes whether the goal is met, and why. */
export interface ClaimOutput {
  kind: 'claim'
}
/** A round writes the same, and values of these fields in `data`. */
export interface FieldsOutput {
  kind: 'json'
  fields: OutputField[] & tags.MinItems<1> & tags.MaxItems<16>
}
/** The document that each round writes. */
export type OutputSpec = NoOutput | ClaimOutput | FieldsOutput

/** A shell command in the tree of the conversation, behind its wall; it holds if it exits with 0. */
export interface CommandCheck {
  kind: 'command'
  command: Command
  /** Left out: 60,000. */
  timeoutMs?: number & tags.Type<'uint32'> & tags.Minimum<1000> & tags.Maximum<600000>
}
/** A second model, which reads only goal, rubric and report. */
export interface JudgeCheck {
  kind: 'judge'
  rubric: Rubric
  /** `<provider>:<model>`; left out: the first that is connected. */
  model?: ModelName
}
/** What must hold before a loop is done. */
export type LoopCheck = CommandCheck | JudgeCheck

/** What a round wrote. */
export interface LoopDocument {
  /** Whether the goal is met. */
  done: boolean
  reason: string
  evidence?: string
  data?: { [name: string]: unknown }
}

/** How rounds follow each other, and when they end. */
export interface LoopShape {
  /** `fresh`: each round begins a new session with the provider, and the file `progress.md` is its memory. */
  context: 'fresh' | 'continue'
  output: OutputSpec
  /** All must hold, in this order; the first that does not ends the checking. */
  checks: LoopCheck[] & tags.MaxItems<12>
  maxIterations: Rounds
  /** In US dollars, of all rounds. */
  maxSpendUsd?: Spend
  /** So many rounds in a row that leave the tree unchanged end the loop. */
  stallLimit: Stalled
}
/** A loop to start. */
export interface LoopStart extends LoopShape {
  conversationId: ConversationId
  goal: string & tags.MinLength<1> & tags.MaxLength<8000>
  /** The words of each round. */
  prompt: string & tags.MinLength<1> & tags.MaxLength<20000>
  /** Works in a private copy; has an effect on a conversation's first turn only. */
  isolated: boolean
  /** The provider; left out: the conversation's, else the default one. */
  agent?: Text & tags.MaxLength<120>
  harness?: Harness
  account?: Text & tags.MaxLength<320>
  model?: ModelName
  /** The persona that its turns wear. */
  actsAs?: string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
  /** Pins a new private copy to exact commits. */
  worktreeBase?: BaseCommit[] & tags.MinItems<1> & tags.MaxItems<50>
  /** Lands the work of each completed round; for callers who may land. */
  autoLand?: boolean
}
/** What a check said after a round. */
export interface CheckResult {
  kind: 'command' | 'judge'
  ok: boolean
  /** The end of what a command printed, what the judge said, or why it did not run. */
  detail?: string & tags.MaxLength<500>
}
/** One round. */
export interface LoopIteration {
  n: Positive
  /** When it ended. */
  at: Millis
  /** `error`: its turn failed, and nothing else said that the goal is met. */
  outcome: 'continue' | 'done' | 'error'
  /** Why it was not the last. */
  detail?: string
  costUsd?: number
  /** Whether it changed the tree. */
  changed: boolean
  run?: RunId
  sessionId?: string
  document?: LoopDocument
  /** Those that were asked. */
  checks?: CheckResult[]
}
/** A loop as it stands. */
export interface Loop extends Omit<LoopStart, 'maxIterations' | 'prompt'> {
  /** The words of each round. */
  prompt: Text
  /** A loop that was resumed may have more than 50. */
  maxIterations: Positive
  state: LoopState
  startedAt: Millis
  endedAt?: Millis
  /** An e-mail or `token:<label>`. */
  startedBy: string
  /** How often a restart found a round in hand. */
  resumed: Count
  /** Why it ended. */
  detail?: string
  costUsd: number
  iterations: LoopIteration[]
  /** The open need that the next round waits for. */
  waitingFor?: string
}
/** A loop that another group drives. Without output and checks its turn alone says that it is done. */
export interface OwnedLoopInput extends Omit<LoopStart, 'prompt' | 'autoLand'> {
  /** What it is for: the same words on the same conversation get the same loop. */
  owner: Text
  startedBy: Text
  /** The title of a new conversation. */
  title: Text
  prompt: Text
  /** What follows the prompt in each round. */
  handed?: string
}
/** A loop that another group drives, as it stands; empty: there is none. */
export interface OwnedLoop {
  loop?: Loop
  /** The last thing that its agent said. */
  report?: string
  /** The file of the workspace that holds the document of its last round. */
  documentPath?: string
}
/** A saved design, from which loops are started. */
export interface LoopDesign extends LoopShape {
  id: LoopDesignId
  name: string & tags.MinLength<1> & tags.MaxLength<60>
  description?: string & tags.MaxLength<280>
  prompt?: string & tags.MinLength<1> & tags.MaxLength<20000>
}
/** An entry of the file of designs that is none. */
export interface LoopDesignProblem {
  id?: string
  message: string
}

/** Conversations that are repeated towards a goal, and the designs to start them from. */
export interface LoopsCalls {
  /**
   * List the loops, newest first, with their last five rounds.
   *
   * A conversation has one, the newest; it is kept until the conversation is purged. `before` is the `startedAt` of the
   * last loop that the caller has.
   */
  'GET /loops'(input: { state?: LoopState; limit?: Count & tags.Minimum<1> & tags.Maximum<200>; before?: Millis }): {
    loops: Loop[]
  }

  /**
   * Start a loop on a conversation; answers when the first round was accepted.
   *
   * Opens the conversation if it does not exist. A loop that ended there is replaced, and its record with it.
   *
   * - 403: `autoLand` by a caller who may not land
   * - 404: no such conversation for this caller
   * - 409: a loop or another turn runs there
   * - 413: the disk is full
   * - 422: neither output nor check, so nothing could say that it is finished; a field twice, a reserved id, or an
   *   unknown provider, harness, model or account
   * - 424: the conversation's folder of records cannot be written
   * - 429: a budget refuses the turn
   * - 501: a program that the turn needs is not installed
   */
  'POST /loops'(input: LoopStart): Loop

  /**
   * Read one loop with every round, its document, checks and cost.
   *
   * - 404: no loop on that conversation
   */
  'GET /loops/{conversationId}'(input: { conversationId: Text }): Loop

  /**
   * End a loop; one that has ended is fine.
   *
   * Also stops the round in hand and answers when it has ended, within 15 s; with `now` false the round goes on to its
   * end.
   *
   * - 404: no loop on that conversation
   */
  'POST /loops/{conversationId}/stop'(input: { conversationId: Text; now?: boolean }): Ok

  /**
   * Go on with a loop that gave up or was stopped, with new ceilings, which count earlier rounds and spending.
   *
   * `note` stands before the words of the next round. Session and memory file are kept.
   *
   * - 404: no loop on that conversation
   * - 409: it runs, it is done, or a turn runs
   * - 422: the ceilings leave no room for a round
   * - 429: a budget refuses the turn
   * - 501: a program that the turn needs is not installed
   */
  'POST /loops/{conversationId}/resume'(input: {
    conversationId: Text
    maxIterations?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<500>
    maxSpendUsd?: Spend
    stallLimit?: Stalled
    note?: string & tags.MinLength<1> & tags.MaxLength<4000>
  }): Loop

  /**
   * List the saved designs by name.
   *
   * Entries of the file that are no designs are named in `problems` and kept in the file.
   */
  'GET /loops/designs'(): { designs: LoopDesign[]; problems: LoopDesignProblem[] }

  /**
   * Save a design: with `create` a new one, without it a known one.
   *
   * - 404: the design to change is gone
   * - 409: `create` with the id of another one
   * - 413: the file of designs would become too large, or the disk is full
   * - 422: neither output nor check, a field twice, or the file cannot be read
   * - 424: the file of designs could not be written; the message says why
   */
  'POST /loops/designs'(input: { design: LoopDesign; create: boolean }): LoopDesign

  /**
   * Remove a saved design; loops that were started from it stay.
   *
   * - 404: no such design
   * - 413: the disk is full
   * - 422: the file of designs cannot be read
   * - 424: the file of designs could not be written; the message says why
   */
  'DELETE /loops/designs/{id}'(input: { id: Text }): Ok

  /** Starts a loop for another group, unless it is known already; its turns never land by themselves. */
  'loops.run'(input: OwnedLoopInput): OwnedLoop
  /** The loop on a conversation, if it is for this owner. */
  'loops.owned'(input: { conversationId: ConversationId; owner: Text }): OwnedLoop
  /** The loops of some conversations, as cards of the board show them. */
  'loops.cards'(input: { ids: ConversationId[] }): { loops: { [conversationId: string]: CardLoop } }
  /** Whether a running loop starts the next turn of a conversation. */
  'loops.drives'(input: { conversationId: ConversationId }): { drives: boolean }
}

/** Events of the group. */
export interface LoopsEvents {
  /** A loop began, ended a round, or ended. */
  'loop.changed': { conversationId: ConversationId }
  'loop.settled': {
    conversationId: ConversationId
    state: LoopState
    document?: LoopDocument
    /** The last thing the agent said in the last round. */
    report?: string
    costUsd: number
  }
}

export const loopsContract: Contract<LoopsCalls> = {
  schema: () => typia.json.application<LoopsCalls>(),
  request: typia.misc.createValidatePrune<Requests<LoopsCalls>>(),
  reply: () => typia.createValidate<Replies<LoopsCalls>>(),
}
