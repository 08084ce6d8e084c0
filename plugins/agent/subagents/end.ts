import type { OpenCards } from '../cards/cards.js'
import type { Frame, SubagentStatus } from '../turn/frames/frames.js'
import { isUnder } from './frames.js'
import type { Turn } from '../turn/turn.js'

/** How a subagent ends. */
export interface SubagentEnd {
  readonly status: Extract<SubagentStatus, 'completed' | 'failed' | 'killed'>
  readonly summary?: string
  readonly error?: string
}

const LOST = 'interrupted by a restart'

/** Records the end of a subagent, after ending the subagents below it, its cards and its open calls. */
export const endSubagent = (turn: Turn, id: string, end: SubagentEnd): void => {
  const { helpers, openTools } = turn.record
  if (!helpers.isOpen(id)) return
  const below = helpers.open.filter(other => isUnder(id, other.id)).reverse()
  for (const helper of below) endSubagent(turn, helper.id, end.status === 'completed' ? { status: 'killed' } : end)
  turn.withdrawCards(({ helper }) => helper === id)
  const text = end.error ?? (end.status === 'killed' ? 'stopped' : 'the subagent ended before this call')
  for (const call of openTools) if (isUnder(id, call.id)) turn.closeTool(call.id, text)
  turn.log.push({ kind: 'subagent_update', id, ...end } satisfies Frame)
}

/** Ends every subagent of an ended turn. */
export const endSubagents = (turn: Turn, lost: boolean): void => {
  const end: SubagentEnd = lost ? { status: 'failed', error: LOST } : { status: 'killed' }
  for (const { id } of [...turn.record.helpers.open].reverse()) endSubagent(turn, id, end)
}

/** After a restart all subagents have failed: their cards are withdrawn. */
export const failSubagents = async (turn: Turn, cards: Pick<OpenCards, 'settle'>): Promise<void> => {
  const asked = turn.entry.fields.parked.filter(({ helper }) => helper !== undefined)
  if (!asked.length && !turn.record.helpers.open.length) return
  const open = asked.filter(({ card: { requestId } }) => {
    const shown = turn.record.card(requestId)
    cards.settle(requestId, turn.conversationId, shown?.resolved?.reply)
    if (shown && !shown.resolved) turn.log.push({ kind: 'resolved', requestId })
    return shown && !shown.resolved?.reply
  })
  endSubagents(turn, true)
  if (open.length) {
    turn.log.push({
      kind: 'notice',
      level: 'warning',
      text: 'a subagent asked a question before the restart; both are gone',
      source: 'helpers',
    })
  }
  await turn.entry.change({ parked: turn.entry.fields.parked.filter(({ helper }) => helper === undefined) })
  await turn.log.settled()
}
