import { type ReachFolder } from '../../../../sdk/index.js'
import type { Host, Log } from '../../../../sdk/index.js'
import type { Limiter } from '../../../../sdk/node/limits/limiter.js'
import type { TurnPersona } from '../../../personas/contract.js'
import type { SubagentLimits } from '../../providers/adapter.js'
import type { Listener } from '../../../../sdk/node/network/addresses.js'
import type { Settings } from '../../../settings/contract.js'
import type { CommandOutputs } from '../../outputs/command-outputs.js'
import type { TurnAdditions } from './additions.js'
import type { Anchors } from '../../conversations/anchors.js'
import type { CommandLogs } from './command-logs.js'
import type { ConversationNetworks } from './networks.js'
import type { Conversations } from '../../conversations/conversations.js'
import type { Copies } from '../../copies/copies.js'
import type { ServerTools } from '../../connected-tools/connected-tools.js'
import type { BoundValues, ReferenceUser, TurnPlaceholders } from '../../secrets/bound-values.js'
import type { References } from '../../secrets/references.js'
import type { StoredValues } from '../../secrets/stored-values.js'
import type { SubagentDeps } from '../../subagents/subagents.js'
import type { KeyedMutex } from '../../../../sdk/node/concurrency/keyed-mutex.js'
import type { Remembered } from '../../conversations/allowed-tools.js'
import type { AccessLimits } from '../../conversations/access-view.js'
import type { ProcessAccess } from '../../processes/conversation-processes.js'
import type { KeptPrograms } from '../../processes/kept-programs.js'
import type { ProgramsUnderWay } from './running-programs.js'
import type { SharedPrograms } from './shared-programs.js'
import type { Turn } from '../turn.js'

/** The dependencies of preparing a turn's tree. */
export interface TurnEnvironmentDeps {
  readonly workspace: string
  readonly data: string
  readonly underWay: ProgramsUnderWay
  /** The programs that outlive the call that starts them. */
  readonly kept: KeptPrograms
  readonly commands: CommandLogs
  readonly copies: Copies
  /** Limits the memory and processes of each conversation's programs. */
  readonly limiter: Limiter
  readonly conversations: Conversations
  /** The turn locks: nothing else changes a conversation's tree meanwhile. */
  readonly locks: KeyedMutex
  readonly log: Log
  readonly subagentDeps: SubagentDeps
  /** The limits of subagents at the start of a turn. */
  readonly limits: () => Promise<SubagentLimits>
  /** Whether the tools of a turn that starts now name lines by number and hash. */
  readonly lineHashes: () => Promise<boolean>
  /** The instructions of the settings; undefined: the usual ones. */
  readonly instructions: () => Promise<string | undefined>
  /** The settings when a turn begins; undefined: this sandbox has none. */
  readonly settings: () => Promise<Settings | undefined>
  readonly outputs: Pick<CommandOutputs, 'whole' | 'ledger' | 'keep' | 'picture'>
  readonly remembered: Remembered
  readonly anchors: Anchors
  /** The folders that a turn limited to areas reaches. */
  readonly reach: (limits: AccessLimits) => Promise<readonly ReachFolder[]>
  /** Replaces references by stored values in the calls of a turn. */
  readonly references: (user: ReferenceUser, placeholders: () => Promise<TurnPlaceholders | undefined>) => References
  /** The placeholders of values that are bound to hosts, if the network of a turn has a proxy. */
  readonly bound: Pick<BoundValues, 'of'>
  /** What the programs of a turn get of the connections and extensions. */
  readonly additions: (
    conversationId: string,
    persona: TurnPersona | undefined,
    access: ProcessAccess,
  ) => Promise<TurnAdditions>
  /** The tools of connected servers. */
  readonly connected: (turn: Turn, persona: TurnPersona | undefined) => ServerTools
  /** For calls about personas, skills, needs and the safety policy. */
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'on'>
  /** The stored values, which are masked in turns. */
  readonly stored: Pick<StoredValues, 'refresh' | 'hide'>
  /** What the daemon listens on; the first is that of the calls. */
  readonly listeners: () => Promise<readonly Listener[]>
  /** The processes of programs that serve several conversations. */
  readonly shared: Pick<SharedPrograms, 'of'>
  /** Takes a conversation's copy out of the processes that serve several. */
  readonly leaveShared: (conversationId: string) => Promise<void>
  /** The network of each conversation. */
  readonly networks: Pick<ConversationNetworks, 'of'>
}
