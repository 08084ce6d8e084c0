import type { Handlers, Host } from '../../../sdk/index.js'
import { senderOf } from '../conversations/access.js'
import { ok } from '../ok.js'
import type { CardCalls } from './contract.js'
import { reply, type ReplyDeps } from './reply.js'

/** Serves the answers to cards. */
export const cardCalls = (deps: ReplyDeps & { readonly host: Pick<Host, 'call'> }): Handlers<CardCalls> => ({
  'POST /agent/reply': async (input, context) => ok(reply(deps, input, await senderOf(deps.host, context))),
})
