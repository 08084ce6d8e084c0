import type { ReachFolder } from '../../../../sdk/index.js'
import type { TurnPersona } from '../../../personas/contract.js'
import type { TurnSkill } from '../../../skills/contract.js'
import type { Conversation } from '../../contract.js'
import type { SubagentLimits, TurnIo, TurnRequest } from '../../providers/adapter.js'
import type { AdapterRun } from '../adapter-run.js'
import type { PermissionMode } from '../frames/frames.js'
import type { Turn } from '../turn.js'

/** Where a turn stands: its tree, and what is said to the provider before the words. */
export interface PreparedTurn {
  /** The folder the turn's tools work in: the private copy, or the workspace. */
  readonly root: string
  /** The folder the turn starts in. */
  readonly cwd: string
  /** What of `root` the turn reaches; left out: all. */
  readonly folders?: readonly ReachFolder[]
  /** The notes in front of the words, as the model is given them. */
  readonly preamble: string
  readonly attachments: TurnRequest['attachments']
  readonly mentions: readonly string[]
  readonly allowedTools?: readonly string[]
  /** What the turn gets of the card it wears; left out: it wears none. */
  readonly persona?: TurnPersona
  /** The skills that are offered to it. */
  readonly skills?: readonly TurnSkill[]
  /** Left out: the usual ones. */
  readonly helpers?: SubagentLimits
}

/** The adapter's side of a turn, and when nothing it began is under way any more. */
export interface WorkingIo extends TurnIo {
  idle(): Promise<void>
}

/** Who works through an io: the turn's own agent, or the subagent that a call started. */
export interface ToolCaller {
  readonly signal: AbortSignal
  readonly mode: PermissionMode
  readonly depth: number
  readonly helper?: string
}

/** Makes a turn's tree ready and gives its adapter something to work with. */
export interface TurnEnvironment {
  prepare(turn: Turn, conversation: Conversation): Promise<PreparedTurn>
  /** Brings the tree up to date after a plan or a question was answered. */
  refresh(turn: Turn, conversation: Conversation): Promise<void>
  /**
   * Commits what a turn left in a copy and takes it into the repositories, and marks it as taken; what stays out is
   * written into the run.
   */
  settle(turn: Turn, conversation: Conversation): Promise<void>
  io(turn: Turn, prepared: PreparedTurn, adapterRun: AdapterRun): WorkingIo
}
