import { refuse } from '../../../sdk/index.js'
import type { Caller, Context, Host } from '../../../sdk/index.js'
import type { CardReply, Conversation } from '../contract.js'

/** Whether a caller may reach a conversation: an `editor` token only those it opened. */
export const mayReach = (caller: Caller, { openedByToken }: Pick<Conversation, 'openedByToken'>): boolean =>
  caller.scope !== 'editor' || (caller.tokenId !== undefined && caller.tokenId === openedByToken)

/**
 * Refuses an `editor` token that reaches for a conversation it did not open; whose it is goes by token id, never by
 * label.
 */
export const assertReaches = (caller: Caller, conversation: Pick<Conversation, 'openedByToken'>): void => {
  if (mayReach(caller, conversation)) return
  refuse(
    'forbidden',
    'an editor token reaches only conversations it opened: expected a token of scope drive or land, or the one '
      + 'that opened this conversation',
  )
}

/** Refuses an `editor` token the record of a conversation it did not open. */
export const assertReads = (caller: Caller, conversation: Pick<Conversation, 'openedByToken'>): void => {
  if (caller.kind !== 'token' || mayReach(caller, conversation)) return
  refuse(
    'forbidden',
    'a token of scope editor reads only conversations it opened itself: use a token of scope read, drive or land',
  )
}

/** Refuses who may not decide about an offer: it takes a maintainer, and where it moves money a person. */
export const assertMayDecide = ({ kind, role }: Caller, card: CardReply['kind']): void => {
  if (role !== 'maintainer' && role !== 'owner')
    refuse('forbidden', `a ${card} needs role maintainer, found role ${role}`)
  if (card !== 'capability_offer' && kind !== 'session') {
    refuse('forbidden', `a ${card} moves money: it takes a signed-in maintainer, found a caller of kind ${kind}`)
  }
}

/** Who says something, and why what comes of it does not land by itself; `held` undefined: it may. */
export interface Sender {
  readonly caller: Caller
  readonly held?: string
}

const LAND = 'POST /agents/{id}/land'

/**
 * The sender a call is served for. What comes of its words lands by itself when it could land it with a call of its
 * own.
 */
export const senderOf = async (host: Pick<Host, 'call'>, context: Context): Promise<Sender> => {
  const { caller } = context
  const { admits, message } = await host.call('kernel.access.admits', { call: LAND }, { as: context })
  if (!admits) return { caller, held: message ?? `${LAND} is out of reach` }
  // What an agent says through a credential of its turn is not what the person behind it said.
  if (caller.kind === 'session' || caller.kind === 'token') return { caller }
  return { caller, held: `it takes a signed-in person or a control token, found a caller of kind ${caller.kind}` }
}

/** Whether a person or a program of theirs stands behind a call, so that cards may go up. */
export const canAnswerCards = ({ kind }: Caller): boolean => kind === 'session' || kind === 'token' || kind === 'run'
