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
  SubagentStatus,
  PermissionMode,
  ProviderId,
  RunId,
  ToolCategory,
  ToolContent,
  TranscriptMessage,
} from '../contract.js'
import type { WorkspaceCommand } from '../instructions/workspace-commands.js'
import type { Rooted } from '../tools/tree.js'

/** What a provider can do under one harness. */
export interface Abilities {
  /** Accepts messages during a turn. */
  readonly words: boolean
  readonly permissions: 'modes' | 'plan'
  readonly questions: boolean
  readonly commands: boolean
  readonly terminals: boolean
  /** Continues from `io.state` after a restart and under another model, and asks for every `io.gap`. */
  readonly state: boolean
  readonly offline: boolean
  /** Can answer faster for more money (`fast`); left out: a turn that asks for it is refused. */
  readonly fast?: boolean
}

/** One turn, ready to run. */
export interface TurnRequest {
  readonly conversationId: ConversationId
  readonly run: RunId
  /** Starts at 1; one more after each restart and outage. */
  readonly attempt: number
  /** 0: not a subagent. */
  readonly depth: number
  /** Left out: the turn's own agent. */
  readonly subagent?: SubagentStep
  /** The round that rules asked for, of which this is the message; calls of each round need ids of their own. */
  readonly round?: number
  /** The notes, then the message. */
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
  /** The system prompt, in place of the provider's own instructions. */
  readonly instructions?: string
  /** For the end of the system prompt of the sandbox's own loop: date, branch and repositories. */
  readonly facts?: string
  /** The instructions that came with the code, for the system prompt of the sandbox's own loop. */
  readonly project?: string
  /** The shortcuts that a message of this turn can call. */
  readonly commands?: readonly WorkspaceCommand[]
  /** The conversation's session with the provider. */
  readonly sessionId?: string
  /** The record so far, when no session can be resumed. */
  readonly history?: readonly TranscriptMessage[]
  /**
   * What `io.state` saved last, after a restart, an outage or a move; `since` are this run's later frames.
   *
   * Without a state, `since` are all frames of the run: an adapter that continues for another one starts from them.
   */
  readonly state?: unknown
  readonly since?: readonly Frame[]
  readonly resume?: {
    readonly reason: 'restart' | 'answered' | 'outage' | 'switched'
    readonly replies?: readonly { card: Card; reply?: CardReply }[]
  }
  /** A person or a token started the turn, so cards can be answered. */
  readonly attended: boolean
  /** The path of the document that the turn is asked to write. */
  readonly document?: string
  readonly helpers: SubagentLimits
}

/** Before the ids of calls, so that those of later rounds differ from earlier ones. */
export const roundMark = ({ round }: Pick<TurnRequest, 'round'>): string => (round === undefined ? '' : `r${round}.`)

const WRITES = ['Write', 'Append', 'Edit', 'Delete', 'Move', 'Shell', 'Code']

/** Whether a program that does what it likes may write in the tree of a turn. */
export const mayWrite = ({ allowedTools, powers }: Pick<TurnRequest, 'allowedTools' | 'powers'>): boolean =>
  (!powers || powers.files === 'write') && (!allowedTools || WRITES.some(name => allowedTools.includes(name)))

/** A subagent of a turn, which has a price of its own, and counts for budgets of runs with its turn. */
export interface SubagentStep {
  /** The call that started it. */
  readonly id: string
  readonly provider: ProviderId
  readonly model: string
}

/** How many subagents may run at once, how many a turn may start in all, and how deep they may be nested. */
export interface SubagentLimits {
  readonly atOnce: number
  readonly perTurn: number
  readonly depth: number
}

/** The task of a subagent. */
export interface SubagentSpec {
  readonly description: string
  readonly prompt: string
  readonly agentType?: string
  /** Left out: the model of its starter. */
  readonly model?: string
  /** It runs in the background, at most until the end of the turn. */
  readonly background?: boolean
}

/** The result of a subagent: its last text, or why it failed. */
export interface SubagentOutcome {
  readonly status: SubagentStatus
  readonly summary: string
}

export type UserMessage = {
  readonly messageId?: string
  readonly text: string
  readonly attachments: readonly string[]
}
/** A picture by its path; its bytes are read when it is sent. */
export interface SentPicture {
  readonly path: string
  readonly absolute: string
  readonly mime: string
}
export type ToolResult = {
  readonly ok: boolean
  readonly content: ToolContent[]
  readonly text: string
  readonly exit?: number
  /** The file with the whole text, where `text` is shorter already. */
  readonly whole?: string
  /** Pictures for a model that sees; `text` names them. */
  readonly pictures?: readonly SentPicture[]
}
/** The gate's decision on a call. */
export interface Permission {
  readonly allow: boolean
  /** A person allowed it for the rest of the conversation. */
  readonly always?: boolean
  readonly reason?: string
}
/** A program to run in a turn's tree. */
export interface TreeProgram {
  readonly program: string
  readonly args: readonly string[]
  /** Variables in addition to those of every program of the turn. */
  readonly env?: Env
  /** A folder of the tree, from its root; left out: the one the turn starts in. */
  readonly cwd?: string
  /** Folders outside the tree that it needs; it cannot write there. */
  readonly needs?: readonly string[]
  /** The connected program whose home folder it has; left out: that of the conversation. */
  readonly home?: string
  /** A container engine: the folder below which it has one that it writes; see `ProgramAsked`. */
  readonly engine?: string
  /** It cannot write in the tree. */
  readonly readOnly?: boolean
  /** It is a command of the turn, which ends with it: it has the credential of the turn. */
  readonly ofTurn?: true
}
/** The tree of a turn as a program sees it. */
export interface SeenTree extends Rooted {
  /** The root, and the folder the program starts in, as the program sees them. */
  readonly seen: { readonly root: string; readonly cwd: string }
  /** The agent folders of extensions, as the program sees them. */
  readonly agentFolders?: readonly string[]
  /** Whether the program is behind a wall. */
  readonly enforced: boolean
  /** Logs it as a command of the turn; call the returned function with how it ended. */
  readonly begun: (command: string, startedAt?: number) => ReturnType<BeginCommand>
}
/** A program behind the wall of a turn's tree, ready to be started. */
export interface TreeCommand extends Walled, SeenTree {
  readonly enforced: boolean
}
/** A process that may serve turns of several conversations, and the tree of one of these turns in it. */
export interface SharedProgram {
  /** Turns with the same key may share a process. */
  readonly key: string
  readonly tree: SeenTree
  /** The command that starts the process, which sees no tree yet. */
  command(): Promise<Walled>
  /**
   * Shows the tree to the running process, unless `before` says that it sees the same already; returns what it sees.
   * Undefined: this tree cannot be shown to it.
   */
  show(pid: number, before?: string): Promise<string | undefined>
  /** Hides the tree from the process. */
  hide(pid: number): Promise<void>
  /** Makes a server of the daemon reachable for the process; returns its address. */
  expose(server: Server): Promise<string>
}
/** A tool as described to a model. */
export interface OfferedTool {
  readonly name: string
  readonly description: string
  /** The JSON Schema (draft 2020-12) of its input. */
  readonly input: { readonly [keyword: string]: unknown }
  readonly category: ToolCategory
  /** Its calls change nothing, so several may run at once. */
  readonly readOnly: boolean
}
type NoId<C> = C extends Card ? Omit<C, 'requestId'> : never
/** A card without its id. */
export type CardDraft = NoId<Card>

/** What the engine offers an adapter during a turn. */
export interface TurnIo {
  /** Aborted by a stop, or when the turn must move: `run` must end within 5 s. */
  readonly signal: AbortSignal
  /**
   * Marks a point between tool calls where nothing is running and the state is saved; waits there for `ms` if given.
   *
   * True: the turn moves to another adapter, and `run` must return without another frame.
   */
  gap(ms?: number): Promise<boolean>
  /** Messages since the last call, oldest first. */
  takeWords(): UserMessage[]
  /** The next message, or undefined after `ms` or on stop. */
  waitWords(ms?: number): Promise<UserMessage | undefined>
  /**
   * Parks the turn on a card until it is answered; writes the card and `resolved` frames itself. Undefined: nobody
   * answered.
   */
  raise(card: CardDraft): Promise<CardReply | undefined>
  /**
   * Runs a sandbox tool through the gate, with its frames. `callId` is unique in the run.
   *
   * After a restart an adapter may repeat an unfinished call with the same id and input. Its text has at most `most`
   * bytes, and never more than 30,000; a file keeps the rest. Instructions of a folder come after it, in half as many.
   */
  tool(name: string, input: object, callId: string, most?: number): Promise<ToolResult>
  /** The tools that this turn may use, for the model. The list stays the same during a turn. */
  offered(): Promise<readonly OfferedTool[]>
  /** Judges a call that the provider makes by itself, with the rules and cards of `tool`. */
  permit(call: GatedCall): Promise<Permission>
  /** The command that runs a program in the turn's tree, behind its wall; the program may outlive the turn. */
  walled(program: TreeProgram): Promise<TreeCommand>
  /** The process for this program that the turn may share with other conversations; undefined: it needs its own. */
  shared(program: TreeProgram): Promise<SharedProgram | undefined>
  /**
   * Makes a server of the daemon reachable for the programs of the turn's tree; returns its address. In a network of
   * their own it has one port for the tool server, unless another is named.
   */
  expose(server: Server, port?: number): Promise<string>
  /**
   * Runs a subagent for the adapter's own tool call `callId`; returns when it has ended, or in the background when it
   * has started. Beyond a limit it fails at once. The tool `Delegate` does the same.
   */
  helper(spec: SubagentSpec, callId: string): Promise<SubagentOutcome>
  /** A hash of what is at a path of the turn's tree (`stamp` of `tools/`); undefined when nothing is there. */
  stamp(path: string): Promise<string | undefined>
  /** Saves what the adapter needs to continue after a restart; survives `kill -9` when it returns. At most 4 MiB. */
  state(value: unknown): Promise<void>
  /** Sets the permission mode, for the gate too. Writes the `mode` frame itself. */
  mode(mode: PermissionMode): void
  /** Names the conversation, unless a person has. */
  title(text: string): void
}

/**
 * A provider of turns: it converts a request into frames; the engine does queue, record, cards, copies and the gate.
 */
export interface ProviderAdapter {
  readonly id: ProviderId
  readonly label: string
  readonly harnesses: readonly Harness[]
  readonly ownHarness: Harness
  readonly models: readonly string[]
  readonly commands: readonly Command[]
  /** Further shortcuts are those of the tree of one turn, which not everybody sees: they are not listed for others. */
  readonly ofTree?: true
  abilities(harness: Harness): Abilities
  /** Whether an account of it is connected; left out: it has none. */
  holds?(account: string): Promise<boolean>
  /** Refuses a turn that could not run at all, such as a harness whose program is missing. */
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
  /** The program text of a call that is not a shell command. */
  readonly code?: string
  readonly path?: string
  readonly url?: string
  /** The provider's title, if there is neither a command nor a path. */
  readonly title?: string
  /** The whole input, if the other fields do not contain it. */
  readonly input?: unknown
}
