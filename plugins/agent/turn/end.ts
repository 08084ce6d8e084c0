import type { Conversations } from '../conversations/conversations.js'
import type { RunEnd } from './frames/frames.js'
import { endSubagents } from '../subagents/end.js'
import type { Turn } from './turn.js'

/** Closes the open calls, cards and subagents of a run that ends this way. */
export const closeRun = (turn: Turn, end: RunEnd): void => {
  turn.withdrawCards()
  endSubagents(turn, end === 'interrupted')
  const text = end === 'stopped' ? 'stopped' : 'interrupted by a restart'
  for (const { id } of turn.record.openTools)
    turn.closeTool(id, end === 'stopped' || end === 'interrupted' ? text : 'the turn ended before this call')
}

/** Resolves when every frame of a turn is on the disk; throws when that cannot be. */
export const writtenDown = async ({ log }: Turn): Promise<void> => {
  log.retry()
  await log.settled()
  if (log.broken) throw new Error('the frames of the run cannot be written', { cause: log.failure })
}

/** Records in its conversation how a turn ended and what it cost; can be repeated. */
export const account = async (conversations: Conversations, turn: Turn, end: RunEnd): Promise<void> => {
  const conversation = conversations.find(turn.conversationId)
  if (!conversation) return
  const { record, entry } = turn
  const { totals } = conversation
  // After a crash: the run was counted already, or is not the newest one.
  if (conversation.lastRun !== turn.run || conversation.lastEnd) return
  await conversations.update(turn.conversationId, {
    lastEnd: end,
    failure: end === 'failed' ? (record.failure?.message ?? 'the turn failed') : undefined,
    updatedAt: Date.now(),
    ...(record.sessionId && {
      session: { id: record.sessionId, provider: entry.fields.provider, harness: entry.fields.harness },
    }),
    unenforced: record.unenforced && [...record.unenforced],
    ...(record.context && { contextTokens: record.context.tokens, contextWindow: record.context.window }),
    totals: {
      turns: totals.turns + 1,
      toolUses: totals.toolUses + record.toolUses,
      helpers: totals.helpers + record.helpers.all.length,
      costUsd: totals.costUsd + record.costUsd,
      inputTokens: totals.inputTokens + record.inputTokens,
      outputTokens: totals.outputTokens + record.outputTokens,
    },
  })
}
