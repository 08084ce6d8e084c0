import type { Trust } from '../../../../sdk/node/wall/spec.js'
import type { Conversation } from '../../contract.js'
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
