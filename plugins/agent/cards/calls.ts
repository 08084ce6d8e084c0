import type { Handlers, Host } from '../../../sdk/index.js'
import { senderOf } from '../conversations/access.js'
import { ok } from '../ok.js'
import type { CardCalls } from './contract.js'
import { reply, type ReplyDeps } from './reply.js'
import { waitingCards, type WaitingDeps } from './waiting.js'

/** Serves open cards and their answers. */
export const cardCalls = (
  deps: ReplyDeps & WaitingDeps & { readonly host: Pick<Host, 'call'> },
): Handlers<CardCalls> => ({
  'GET /agent/cards': async ({ conversationId }, { caller }) => ({
    cards: await waitingCards(deps, caller, conversationId),
  }),
  'POST /agent/reply': async (input, context) => ok(reply(deps, input, await senderOf(deps.host, context))),
})
