import { mayWrite, type TreeProgram } from '../../providers/adapter.js'
import type { PreparedTurn } from './environment.js'
import type { Trust } from '../../../../sdk/node/wall/spec.js'
import type { Conversation } from '../../contract.js'
import type { Conversations } from '../../conversations/conversations.js'
import type { Turn } from '../turn.js'

type Origins = Pick<Turn, 'byOutsiders' | 'outside'>

/** The trust of a turn whose work does not land by itself. */
export const trustApart = ({ outside }: Pick<Origins, 'outside'>): Trust =>
  outside === undefined ? 'waits' : 'outside'

/**
 * Whether a turn may share what it writes with other work that lands by itself: only if its own does, whatever the
 * conversation and the rules say about when.
 */
export const trustOf = (turn: Origins, conversation: Pick<Conversation, 'landsAlone'> | undefined): Trust =>
  turn.byOutsiders || conversation?.landsAlone !== true ? trustApart(turn) : 'lands'

/**
 * Ends that a conversation lands by itself when others have a say in its turn: commands that check the work run apart
 * as well.
 */
export const waitsAfterOthers = async (
  conversations: Pick<Conversations, 'find' | 'update'>,
  { conversationId, byOutsiders }: Pick<Turn, 'conversationId' | 'byOutsiders'>,
): Promise<void> => {
  if (byOutsiders && conversations.find(conversationId)?.landsAlone)
    await conversations.update(conversationId, { landsAlone: undefined })
}

/** Whether a program of the turn that does what it likes may not write in the tree. */
export const onlyReads = (turn: Turn, { allowedTools, persona }: PreparedTurn): Pick<TreeProgram, 'readOnly'> => {
  const mode = turn.record.mode ?? turn.entry.fields.permissionMode
  const may = { ...(allowedTools && { allowedTools }), ...(persona && { powers: persona.powers }) }
  return { readOnly: mode === 'plan' || !mayWrite(may) }
}
