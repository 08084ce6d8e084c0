import type { ReachFolder } from '../../../../sdk/index.js'
import type { TurnPersona } from '../../../personas/contract.js'
import type { TurnSkill } from '../../../skills/contract.js'
import type { Conversation } from '../../contract.js'
import type { SubagentLimits, TurnIo, TurnRequest } from '../../providers/adapter.js'
import type { AdapterRun } from '../adapter-run.js'
import type { PermissionMode } from '../frames/frames.js'
import type { Turn } from '../turn.js'

/** The prepared tree of a turn, and the notes for the provider. */
export interface PreparedTurn {
  /** The folder the turn's tools work in: the private copy, or the workspace. */
  readonly root: string
  /** The folder the turn starts in. */
  readonly cwd: string
  /** The folders of `root` that the turn reaches; left out: all. */
  readonly folders?: readonly ReachFolder[]
  /** The notes before the message, as the model receives them. */
  readonly preamble: string
  readonly attachments: TurnRequest['attachments']
  readonly mentions: readonly string[]
  readonly allowedTools?: readonly string[]
  /** What the turn's persona gives it; left out: it has none. */
  readonly persona?: TurnPersona
  /** The instructions of the settings, where the persona says nothing of its own; left out: the usual ones. */
  readonly instructions?: string
  /** The skills that are offered to it. */
  readonly skills?: readonly TurnSkill[]
  /** The agent folders of extensions, as programs see them. */
  readonly agentFolders?: readonly string[]
  /** Where programs of providers see `root`; left out: in place of the workspace. */
  readonly ownPlace?: string
  /** The folder of the document that the turn is asked to write, by its path from the workspace. */
  readonly documents?: string
  /** Left out: the usual ones. */
  readonly helpers?: SubagentLimits
  /** Its tools name lines by number and hash. */
  readonly lineHashes?: boolean
  /** For the end of its instructions; left out: nothing. */
  readonly facts?: string
  /** The folder with the whole texts of results that its model read in part; left out: none is kept. */
  readonly outputs?: string
}

/** The adapter's interface of a turn, and when all its work has ended. */
export interface WorkingIo extends TurnIo {
  idle(): Promise<void>
}

/** The user of an io: the turn's own agent, or a subagent. */
export interface ToolCaller {
  readonly signal: AbortSignal
  readonly mode: PermissionMode
  readonly depth: number
  readonly helper?: string
}

/** Prepares a turn's tree and creates the io of its adapter. */
export interface TurnEnvironment {
  prepare(turn: Turn, conversation: Conversation): Promise<PreparedTurn>
  /** Updates the tree after a plan or a question was answered. */
  refresh(turn: Turn, conversation: Conversation): Promise<void>
  /**
   * Commits a turn's work in its copy, imports it into the repositories and marks it as taken; writes a notice about
   * what was not imported.
   */
  settle(turn: Turn, conversation: Conversation): Promise<void>
  io(turn: Turn, prepared: PreparedTurn, adapterRun: AdapterRun): WorkingIo
}
