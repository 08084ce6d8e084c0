import type { PromptResponse } from '@agentclientprotocol/sdk'
import type { Card, ErrorCode, Frame, RunEnd } from '../../../../plugins/agent/contract.js'
import { Refusal } from '../../../refusal.js'
import { answerWords } from '../../follow/card-lines.js'
import { cardHeading, cardMarkdown } from './ask-editor.js'
import type { SessionChange } from './updates.js'

/** How a run ended, as its frames tell. */
export interface RunOutcome {
  readonly end?: RunEnd
  readonly failure?: string
  readonly code?: ErrorCode
}

/** What a frame tells about the end of its run. */
export const runOutcomeOf = (frame: Frame): RunOutcome => {
  if (frame.kind === 'done') return { end: frame.reason }
  if (frame.kind !== 'error') return {}
  return { failure: frame.message, ...(frame.code && { code: frame.code }) }
}

/** The answer to a message whose run ended so; throws why it failed. */
export const promptAnswer = ({ end, failure, code }: RunOutcome, cancelled: boolean): PromptResponse => {
  if (cancelled || end === 'stopped') return { stopReason: 'cancelled' }
  if (end === 'completed') return { stopReason: 'end_turn' }
  if (code === 'context-full') return { stopReason: 'max_tokens' }
  if (end === undefined) throw new Refusal('conflict', 'the message was taken out of the queue, or its turn is gone')
  throw new Refusal('failed', failure ?? `the turn was ${end}`)
}

/** A card as a call that waits. */
export const cardCall = (card: Card, toolCallId: string): SessionChange => ({
  sessionUpdate: 'tool_call',
  toolCallId,
  title: cardHeading(card),
  kind: card.kind === 'plan' ? 'switch_mode' : 'other',
  status: 'pending',
  content: [{ type: 'content', content: { type: 'text', text: cardMarkdown(card) } }],
})

/** The end of such a call. */
export const cardEnd = ({ reply }: Extract<Frame, { kind: 'resolved' }>, toolCallId: string): SessionChange => ({
  sessionUpdate: 'tool_call_update',
  toolCallId,
  status: reply ? 'completed' : 'failed',
  ...(reply && { rawOutput: { answer: answerWords(reply) } }),
})
