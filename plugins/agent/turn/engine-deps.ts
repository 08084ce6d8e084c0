import type { Journals } from '../../../sdk/index.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Transcripts } from '../conversations/transcripts.js'
import type { BackgroundCount } from '../processes/contract.js'
import type { Providers } from '../providers/providers.js'
import type { Queue } from '../queue/queue.js'
import type { AdmitStep } from '../spending/admission.js'
import type { TurnEnvironment } from './environment/environment.js'
import type { RunEnd } from './frames/frames.js'
import type { OutagePlans } from './recovery/outage.js'
import type { RunMessage } from './run-entry.js'
import type { TurnTiers } from './tier/tiers.js'
import type { Turn, TurnHost } from './turn.js'
import type { TurnRules } from './turn-rules.js'

/** The dependencies of the engine. */
export interface EngineDeps {
  readonly host: TurnHost & { readonly signal: AbortSignal; readonly journal: Journals }
  readonly conversations: Conversations
  readonly queue: Queue
  readonly transcripts: Transcripts
  readonly providers: Providers
  readonly environment: TurnEnvironment
  /** Serializes decisions about a conversation: deliveries, ends of turns, discards. */
  readonly decisions: KeyedMutex
  /** The turn locks, which landings hold too. */
  readonly locks: KeyedMutex
  /** Asks the rules of the settings when the agent has finished. */
  readonly rules?: Pick<TurnRules, 'anotherRound'>
  /** Judges how hard turns are, and runs easy ones on a fast model. */
  readonly tiers?: Pick<TurnTiers, 'begin' | 'route' | 'replaces'>
  /** Lands the work of a completed turn, if its message requests it. */
  readonly land?: (turn: Turn) => Promise<void>
  /** Resumes turns that an outage ended. */
  readonly resumes?: OutagePlans
  /** Stores the subagents of a turn, once all its frames are written. */
  readonly keep?: (turn: Turn) => Promise<void>
  /** Asks whether a turn may spend something. */
  readonly admit?: AdmitStep
  /** Why a budget refuses a waiting message; undefined: none does. */
  readonly unaffordable?: (message: RunMessage) => Promise<string | undefined>
  /** Records what a turn spent. */
  readonly bill?: (turn: Turn, end: RunEnd) => Promise<void>
  /** Tells people that a turn has ended. */
  readonly tell?: (turn: Turn, end: RunEnd) => void
  /** The commands in the background of a conversation. */
  readonly processes?: (conversationId: string) => BackgroundCount | undefined
  /** How long to wait for an adapter after a stop. */
  readonly patienceMs?: number
  /** How long an open call may delay the move of a turn. */
  readonly holdMs?: number
}
