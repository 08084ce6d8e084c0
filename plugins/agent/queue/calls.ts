import type { Handlers, Host } from '../../../sdk/index.js'
import { senderOf } from '../conversations/access.js'
import { assertVisibleIn, type ViewOf } from '../conversations/access-view.js'
import type { Board } from '../board/board.js'
import type { Conversations } from '../conversations/conversations.js'
import type { QueueCalls } from './contract.js'
import type { MessageDelivery } from './delivery.js'
import type { Queue } from './queue.js'
import type { Engine } from '../turn/engine.js'
import type { MessageFate } from './contract.js'
import { answerOf } from './queue.js'

const BY_OTHERS = 'somebody who may not land has a say in this message'

/** The dependencies of the calls of the queue. */
export interface QueueCallsDeps {
  readonly host: Pick<Host, 'call'>
  readonly delivery: MessageDelivery
  readonly board: Board
  readonly conversations: Conversations
  readonly look: ViewOf
  readonly queue: Pick<Queue, 'known' | 'message'>
  readonly engine: Pick<Engine, 'live'>
}

/** Serves messages: send, list, remove, reorder. */
export const queueCalls = (deps: QueueCallsDeps): Handlers<QueueCalls> => {
  const { host, delivery, board, conversations, look } = deps
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
    'agent.start': async (asked, context) => {
      const { run, approved = false, lands = false, byOthers = false, fresh = false, document, ...input } = asked
      const own = { run, approved, fresh, ...(document !== undefined && { document }) }
      const { caller, held = byOthers ? BY_OTHERS : undefined } = await senderOf(host, context)
      return delivery.deliver(input, { caller, ...(held !== undefined && !lands && { held }), own })
    },
    'agent.fate': ({ messageId }) => fateOf(deps, messageId),
  }
}

const fateOf = ({ queue, engine, conversations }: QueueCallsDeps, messageId: string): MessageFate => {
  const row = queue.known(messageId)
  if (!row) return { open: false }
  const { run, conversationId, withdrawn } = row
  const started = answerOf(row)
  if (!withdrawn && (queue.message(run) || engine.live(conversationId)?.run === run)) return { started, open: true }
  const conversation = conversations.find(conversationId)
  const newest = conversation?.lastRun === run ? conversation : undefined
  const { lastEnd: end = 'interrupted', failure } = newest ?? {}
  return { started, open: false, end, ...(failure !== undefined && { failure }) }
}
