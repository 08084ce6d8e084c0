import type { Handlers, Host } from '../../../sdk/index.js'
import { senderOf } from '../conversations/access.js'
import type { Board } from '../conversations/board.js'
import type { QueueCalls } from './contract.js'
import type { MessageDelivery } from './delivery.js'

/** What the calls of the queue work with. */
export interface QueueCallsDeps {
  readonly host: Pick<Host, 'call'>
  readonly delivery: MessageDelivery
  readonly board: Board
}

/** Serves messages: said, listed, taken back, put in another order. */
export const queueCalls = ({ host, delivery, board }: QueueCallsDeps): Handlers<QueueCalls> => ({
  'POST /agent': async (input, context) => delivery.deliver(input, await senderOf(host, context)),
  'agent.queue': ({ id }) => board.waiting(id),
  'agent.unqueue': ({ id, messageId }) => board.unqueue(id, messageId),
  'agent.orderQueue': ({ id, messageIds, start = false }) => board.order(id, messageIds, start),
})
