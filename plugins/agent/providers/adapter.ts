import type { Server } from 'node:http'
import type { BeginCommand } from '../turn/environment/command-logs.js'
import type { TurnPowers } from '../../../sdk/node/access/powers.js'
import type { Env } from '../../../sdk/node/programs/run.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import type {
  Card,
  CardReply,
  Command,
  ConversationId,
  EditorContext,
  ErrorCode,
  Frame,
  Harness,
  HelperStatus,
  PermissionMode,
  ProviderId,
  RunId,
  ToolCategory,
  ToolContent,
  TranscriptMessage,
} from '../contract.js'
import type { Rooted } from '../tools/tree.js'

/** What a provider can do under one harness. */
export interface Abilities {
  /** Takes words in the middle of a turn. */
  readonly words: boolean
  readonly permissions: 'modes' | 'plan'
  readonly questions: boolean
  readonly commands: boolean
  readonly terminals: boolean
  /** Continues from `io.state` after a restart and under another model, and asks for every `io.gap`. */
  readonly state: boolean
  readonly offline: boolean
}

/** One turn, ready to run. */
export interface TurnRequest {
  readonly conversationId: ConversationId
  readonly run: RunId
  /** 1, and one more after a restart and after an outage. */
  readonly attempt: number
  /** 0: not a subagent. */
  readonly depth: number
  /** The notes in front, then the words. */
  readonly prompt: string
  readonly words: string
  readonly attachments: readonly { path: string; absolute: string; mime: string; bytes: number }[]
  readonly mentions: readonly string[]
  readonly editorContext?: EditorContext
  readonly harness: Harness
  readonly model: string
  readonly effort?: string
  readonly thinking?: boolean
  readonly fast?: boolean
  readonly permissionMode: PermissionMode
  readonly allowedTools?: readonly string[]
  /** What the persona of the turn may do; left out: everything. The gate refuses the rest. */
  readonly powers?: TurnPowers
  /** What the model is told first, in place of the provider's own instructions. */
  readonly instructions?: string
  /** The provider's session that the conversation has. */
  readonly sessionId?: string
  /** The record so far, when no session can be resumed. */
  readonly history?: readonly TranscriptMessage[]
  /**
   * What `io.state` saved last, after a restart, an outage or a move; `since` are this run's frames appended after it
   * was saved.
   *
   * Without a state, `since` are all frames of the run: an adapter that takes over from another one goes on from them.
   */
  readonly state?: unknown
  readonly since?: readonly Frame[]
  readonly resume?: {
    readonly reason: 'restart' | 'answered' | 'outage' | 'switched'
    readonly replies?: readonly { card: Card; reply?: CardReply }[]
  }
  /** A person or a token started the turn and watches: cards may go up. */
  readonly attended: boolean
  readonly helpers: SubagentLimits
}

/** How many subagents a turn may have at work, how many in all, and how deep they may start subagents themselves. */
export interface SubagentLimits {
  readonly atOnce: number
  readonly perTurn: number
  readonly depth: number
}

/** What a subagent is asked to do. */
export interface SubagentSpec {
  readonly description: string
  readonly prompt: string
  readonly agentType?: string
  /** Left out: the model of whoever asks. */
  readonly model?: string
  /** Work goes on beside it; it ends with the turn at the latest. */
  readonly background?: boolean
}

/** What became of a subagent, in its last words or in the sentence it failed on. */
export interface SubagentOutcome {
  readonly status: HelperStatus
  readonly summary: string
}

export type UserMessage = {
  readonly messageId?: string
  readonly text: string
  readonly attachments: readonly string[]
}
export type ToolResult = {
  readonly ok: boolean
  readonly content: ToolContent[]
  readonly text: string
  readonly exit?: number
}
/** What the gate said of a call. */
export interface Permission {
  readonly allow: boolean
  /** A person allowed it for the rest of the conversation. */
  readonly always?: boolean
  readonly reason?: string
}
/** A program to be run in a turn's tree. */
export interface TreeProgram {
  readonly program: string
  readonly args: readonly string[]
  /** Beside the variables every program of a turn gets. */
  readonly env?: Env
  /** A folder of the tree, from its root; left out: the one the turn starts in. */
  readonly cwd?: string
  /** Folders outside the tree that it needs; it cannot write there. */
  readonly needs?: readonly string[]
  /** The connected program whose home folder it has; left out: that of the conversation. */
  readonly home?: string
  /** It cannot write in the tree. */
  readonly readOnly?: boolean
}
/** A program behind the wall of a turn's tree, ready to be started. */
export interface TreeCommand extends Walled, Rooted {
  /** The root, and the folder the program starts in, as the program sees them. */
  readonly seen: { readonly root: string; readonly cwd: string }
  /** Writes it down as a command of the turn, and how it ended when what it answers is called. */
  readonly begun: (command: string, startedAt?: number) => ReturnType<BeginCommand>
}
/** A tool as it is described to a model. */
export interface OfferedTool {
  readonly name: string
  readonly description: string
  /** The JSON Schema (draft 2020-12) of its input. */
  readonly input: { readonly [keyword: string]: unknown }
  readonly category: ToolCategory
  /** Calls of it change nothing, so that several may run at once. */
  readonly readOnly: boolean
}
type NoId<C> = C extends Card ? Omit<C, 'requestId'> : never
/** A card before it has its id. */
export type CardDraft = NoId<Card>

/** What the engine does for an adapter while a turn runs. */
export interface TurnIo {
  /** Stop, or the turn goes on elsewhere without waiting longer: `run` must end within 5 s of it. */
  readonly signal: AbortSignal
  /**
   * A place with nothing in hand and the state saved, between tool calls; kept for `ms` when that is given.
   *
   * True: the turn goes on elsewhere, and `run` returns without another word.
   */
  gap(ms?: number): Promise<boolean>
  /** Words said since the last look, oldest first. */
  takeWords(): UserMessage[]
  /** The next words, or undefined after `ms` or on stop. */
  waitWords(ms?: number): Promise<UserMessage | undefined>
  /**
   * Parks the turn on a card until it is answered; writes the card and `resolved` frames itself. Undefined: nobody
   * answered.
   */
  raise(card: CardDraft): Promise<CardReply | undefined>
  /**
   * Runs a sandbox tool through the gate, with its frames. `callId` is unique in the run.
   *
   * After a restart an adapter may ask again for a call that never finished: same id, same input.
   */
  tool(name: string, input: object, callId: string): Promise<ToolResult>
  /** The tools this turn may use, for the provider to tell its model of. The same list throughout one turn. */
  offered(): Promise<readonly OfferedTool[]>
  /** Judges a call that the provider makes by itself, with the rules and cards of `tool`. */
  permit(call: GatedCall): Promise<Permission>
  /**
   * The command that runs a program in the turn's tree, behind its wall; the tree outlives the turn, and so may the
   * program.
   */
  walled(program: TreeProgram): Promise<TreeCommand>
  /** Lets the programs of the turn's tree reach a server of the daemon; answers the address they use. */
  expose(server: Server): Promise<string>
  /**
   * Runs a subagent that the tool call `callId` of the adapter's own started, and answers when it has ended, or begun
   * when it works in the background. Beyond a limit it has failed at once. The tool `Delegate` comes to the same.
   */
  helper(spec: SubagentSpec, callId: string): Promise<SubagentOutcome>
  /** What a path of the turn's tree holds now, as a hash (`stamp` of `tools/`); undefined when nothing is there. */
  stamp(path: string): Promise<string | undefined>
  /** Saves what the adapter needs to go on after a restart; survives `kill -9` when it returns. At most 4 MiB. */
  state(value: unknown): Promise<void>
  /** The permission mode from here on; the gate follows it. Writes the `mode` frame itself. */
  mode(mode: PermissionMode): void
}

/**
 * A provider of turns: it only turns a request into frames; queue, record, cards, copies and the gate are the engine's.
 */
export interface ProviderAdapter {
  readonly id: ProviderId
  readonly label: string
  readonly harnesses: readonly Harness[]
  readonly ownHarness: Harness
  readonly models: readonly string[]
  readonly commands: readonly Command[]
  abilities(harness: Harness): Abilities
  /** Refuses what could not run at all, such as a harness whose program is missing. */
  preflight?(harness: Harness): Promise<void>
  /**
   * Runs one turn. Refusals are `error` frames; a throw is a bug. Frames of sandbox tools, cards and `mode` come from
   * `io` and are not yielded. `done` is the engine's.
   */
  run(request: TurnRequest, io: TurnIo): AsyncIterable<Frame>
}

/** An `error` frame's fields, for an adapter that ends a turn as failed. */
export interface TurnFailure {
  readonly message: string
  readonly code?: ErrorCode
}

/** A tool call as the gate judges it. */
export interface GatedCall {
  readonly id: string
  readonly name: string
  readonly category: ToolCategory
  readonly command?: string
  /** The program text of a call that is no command of the shell. */
  readonly code?: string
  readonly path?: string
  readonly url?: string
  /** What the provider calls it, where neither a command nor a path says more. */
  readonly title?: string
  /** All that the call was given, where the rest does not say it. */
  readonly input?: unknown
}
