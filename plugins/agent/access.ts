import { refuse } from '../../sdk/index.js'
import type { Caller } from '../../sdk/index.js'
import type { CardReply, Conversation } from './contract.js'

/** Whether a caller may reach a conversation: an `editor` token only those it opened. */
export const reaches = (caller: Caller, { openedByToken }: Pick<Conversation, 'openedByToken'>): boolean =>
  caller.scope !== 'editor' || (caller.tokenId !== undefined && caller.tokenId === openedByToken)

/** Refuses an `editor` token that reaches for a conversation it did not open; whose it is goes by token id, never by label. */
export const reach = (caller: Caller, conversation: Pick<Conversation, 'openedByToken'>): void => {
  if (reaches(caller, conversation)) return
  refuse('forbidden', 'an editor token reaches only conversations it opened: expected a token of scope drive or land, or the one that opened this conversation')
}

/** Refuses who may not decide about an offer: it takes a maintainer, and where it moves money a person. */
export const decides = ({ kind, role }: Caller, card: CardReply['kind']): void => {
  if (role !== 'maintainer' && role !== 'owner') refuse('forbidden', `a ${card} takes role maintainer, found role ${role}`)
  if (card !== 'capability_offer' && kind !== 'session') {
    refuse('forbidden', `a ${card} moves money: it takes a signed-in maintainer, found a caller of kind ${kind}`)
  }
}

/** Whether what a caller says may land without a person looking at it: of programs only a token of scope `land` may. */
export const landsAlone = ({ kind, scope }: Caller): boolean => kind === 'session' || kind === 'plugin' || scope === 'land'

/** Whether a person or a program of theirs stands behind a call, so that cards may go up. */
export const attends = ({ kind }: Caller): boolean => kind === 'session' || kind === 'token' || kind === 'run'
