import type { Handlers, Host } from '../../../sdk/index.js'
import { senderOf } from '../conversations/access.js'
import { assertVisibleIn, type ViewOf } from '../conversations/access-view.js'
import type { Board } from '../board/board.js'
import type { Conversations } from '../conversations/conversations.js'
import type { QueueCalls } from './contract.js'
import type { MessageDelivery } from './delivery.js'

/** The dependencies of the calls of the queue. */
export interface QueueCallsDeps {
  readonly host: Pick<Host, 'call'>
  readonly delivery: MessageDelivery
  readonly board: Board
  readonly conversations: Conversations
  readonly look: ViewOf
}

/** Serves messages: send, list, remove, reorder. */
export const queueCalls = ({ host, delivery, board, conversations, look }: QueueCallsDeps): Handlers<QueueCalls> => {
  const see = assertVisibleIn(conversations, look)
  return {
    'POST /agent': async (input, context) => delivery.deliver(input, await senderOf(host, context)),
    'GET /agents/{id}/queue': async ({ id }, { caller }) => {
      await see(id, caller, false)
      return board.waiting(id)
    },
    'DELETE /agents/{id}/queue/{messageId}': async ({ id, messageId }, { caller }) => {
      await see(id, caller)
      return board.unqueue(id, messageId)
    },
    'POST /agents/{id}/queue/order': async ({ id, messageIds, start = false }, { caller }) => {
      await see(id, caller)
      return board.order(id, messageIds, start)
    },
  }
}
