import typia from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { BoardCalls } from './board/contract.js'
import type { BriefingCalls } from './briefing/contract.js'
import type { CardCalls } from './cards/contract.js'
import type { ConversationCalls } from './conversations/contract.js'
import type { CopyCalls } from './copies/contract.js'
import type { NetworkCalls } from './networks/contract.js'
import type { OutputCalls } from './outputs/contract.js'
import type { CompletionCalls, EmbeddingCalls, ProviderCalls, ProviderRefusal } from './providers/contract.js'
import type { BackgroundCalls } from './processes/contract.js'
import type { QueueCalls } from './queue/contract.js'
import type { SessionRecordCalls } from './records/contract.js'
import type { SubagentCalls } from './subagents/contract.js'
import type { TurnCalls } from './turn/contract.js'
import type { ConversationId, RunEnd, RunId } from './turn/frames/frames.js'

export type * from './board/card.js'
export type * from './board/contract.js'
export type * from './cards/contract.js'
export type * from './conversations/contract.js'
export type * from './conversations/conversation.js'
export type * from './conversations/record.js'
export type * from './copies/contract.js'
export type * from './networks/contract.js'
export type * from './outputs/contract.js'
export type * from './processes/contract.js'
export type * from './providers/contract.js'
export type * from './queue/contract.js'
export type * from './records/contract.js'
export type * from './subagents/contract.js'
export type * from './subagents/session.js'
export type * from './turn/contract.js'
export type * from './turn/frames/frames.js'
export type * from './turn/input.js'

export interface Agent
  extends
    QueueCalls,
    TurnCalls,
    CardCalls,
    ConversationCalls,
    BoardCalls,
    ProviderCalls,
    CompletionCalls,
    EmbeddingCalls,
    SessionRecordCalls,
    SubagentCalls,
    CopyCalls,
    NetworkCalls,
    OutputCalls,
    BriefingCalls,
    BackgroundCalls {}

export interface AgentEvents {
  /** Something that a card of the board shows may have changed: the conversation, its live turn or its queue. */
  'agent.changed': { id: ConversationId }
  /** A provider refused a turn: a used-up limit, an expired sign-in, or an account that may not use it. */
  'provider.refused': {
    provider: string
    account?: string
    kind: ProviderRefusal['kind']
    message: string
    /** When a limit opens again. */
    resetsAt?: number
  }
  /** A turn ran on a provider to its end. */
  'provider.answered': { provider: string; account?: string }
  /** `taken`: all work of the turn in its private copy is on the branch and imported into the repository. */
  'turn.settled': {
    conversationId: ConversationId
    run: RunId
    end: RunEnd
    branch?: string
    taken?: boolean
    /** Why it failed. */
    failure?: string
    /** The last thing the agent said, at most 16,000 characters. */
    report?: string
    costUsd: number
  }
  'card.raised': { conversationId: ConversationId; run: RunId; requestId: string; kind: string }
  'card.resolved': { conversationId: ConversationId; run: RunId; requestId: string; kind: string }
  /** Somebody stopped what the conversation does, whether or not a turn runs. */
  'conversation.stopped': { conversationId: ConversationId }
  /** `run`: all work of this newest run is on the branch and imported into the repository. */
  'conversation.archived': { conversationId: ConversationId; run?: RunId }
  /** Also sent for a discard or purge that a crash interrupted and this start completed. */
  'conversation.gone': { conversationId: ConversationId; how: 'discarded' | 'purged' }
}

export const agent: Contract<Agent> = {
  schema: () => typia.json.application<Agent>(),
  request: typia.misc.createValidatePrune<Requests<Agent>>(),
  reply: () => typia.createValidate<Replies<Agent>>(),
}
