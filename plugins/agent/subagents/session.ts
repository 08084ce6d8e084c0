import type { Count, Millis } from '../../../sdk/types.js'
import type { ConversationId, SubagentStatus, ProviderId } from '../turn/frames/frames.js'

/** One subagent, from its start until a week after its end. */
export interface SubagentSession {
  /** `<run>:<tool call>`: the call that started it, by an id that no other run has. */
  id: string
  kind: 'subagent' | 'delegate'
  conversationId: ConversationId
  provider?: ProviderId
  agentType?: string
  description?: string
  model?: string
  /** 1: the turn's own agent started it. */
  spawnDepth?: Count
  background?: boolean
  status: SubagentStatus
  startedAt: Millis
  endedAt?: Millis
  activityAt: Millis
  tokens?: Count
  toolUses?: Count
  lastTool?: string
  summary?: string
  error?: string
  terminal?: string
}
