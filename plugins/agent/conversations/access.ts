import { refuse } from '../../../sdk/index.js'
import type { Caller, Context, Host } from '../../../sdk/index.js'
import type { CardReply, Conversation } from '../contract.js'

/** Whether a caller may reach a conversation: an `editor` token reaches only those that it opened. */
export const mayReach = (caller: Caller, { openedByToken }: Pick<Conversation, 'openedByToken'>): boolean =>
  caller.scope !== 'editor' || (caller.tokenId !== undefined && caller.tokenId === openedByToken)

/** Refuses an `editor` token for a conversation that it did not open, compared by token id, never by label. */
export const assertReaches = (caller: Caller, conversation: Pick<Conversation, 'openedByToken'>): void => {
  if (mayReach(caller, conversation)) return
  refuse(
    'forbidden',
    'an editor token reaches only conversations that it opened: expected a token of scope drive or land, or the one '
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

/** Refuses callers who may not answer an offer: it needs a maintainer, and a signed-in person if it moves money. */
export const assertMayDecide = ({ kind, role }: Caller, card: CardReply['kind']): void => {
  if (role !== 'maintainer' && role !== 'owner')
    refuse('forbidden', `a ${card} needs role maintainer, found role ${role}`)
  if (card !== 'capability_offer' && kind !== 'session') {
    refuse('forbidden', `a ${card} moves money: sign in as maintainer, found a caller of kind ${kind}`)
  }
}

/** The sender of a message. `held` says why its work may not land automatically; undefined: it may. */
export interface Sender {
  readonly caller: Caller
  readonly held?: string
  /** The sandbox started the turn by itself. */
  readonly own?: OwnTurn
}

/** A turn that the sandbox starts by itself, with the id of its run. */
export interface OwnTurn {
  readonly run: string
  /** A person approved its cost, so a budget that asks first does not hold it. */
  readonly approved: boolean
  /** Its model gets neither the session nor the record of earlier turns. */
  readonly fresh?: boolean
  /** The path of the document that it is asked to write. */
  readonly document?: string
}

const LAND = 'POST /agents/{id}/land'

/** The sender of a call. Its work may land automatically if the sender may also land it with a call. */
export const senderOf = async (host: Pick<Host, 'call'>, context: Context): Promise<Sender> => {
  const { caller } = context
  const { admits, message } = await host.call('kernel.access.admits', { call: LAND }, { as: context })
  if (!admits) return { caller, held: message ?? `the call ${LAND} is not allowed` }
  // A message sent with the credential of a turn is the agent's, not the person's.
  if (caller.kind === 'session' || caller.kind === 'token') return { caller }
  return { caller, held: `it takes a signed-in person or a control token, found a caller of kind ${caller.kind}` }
}

/** Whether a call is by a person or their program, which can answer cards. */
export const canAnswerCards = ({ kind }: Caller): boolean => kind === 'session' || kind === 'token' || kind === 'run'
