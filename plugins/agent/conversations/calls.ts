import type { Handlers, Host } from '../../../sdk/index.js'
import { accessToConversation } from '../../../sdk/node/access/conversation-reach.js'
import { ok } from '../ok.js'
import type { Engine } from '../turn/engine.js'
import { senderOf } from './access.js'
import { assertVisible, assertWorksEverywhere, type ViewOf } from './access-view.js'
import { withCheckpoints } from './anchors.js'
import type { Board } from './board.js'
import type { ConversationCalls } from './contract.js'
import type { Eraser } from './eraser.js'
import { landed, locked } from './landing.js'
import { rewind, type RewindDeps } from './rewind.js'
import type { Search } from './search.js'

/** What the calls of conversations work with. */
export interface ConversationCallsDeps extends RewindDeps {
  readonly host: Pick<Host, 'call'>
  readonly engine: Engine
  readonly board: Board
  readonly eraser: Eraser
  readonly search: Search
  readonly look: ViewOf
}

/** Serves conversations and their records. */
export const conversationCalls = (deps: ConversationCallsDeps): Handlers<ConversationCalls> => {
  const { host, engine, conversations, transcripts, anchors, board, eraser, search, locks, look } = deps
  return {
    'POST /agent/rewind': async (input, context) => {
      const conversation = conversations.get(input.conversationId)
      const seen = await look(context.caller)
      await assertVisible(seen, conversation, true)
      assertWorksEverywhere(seen, conversation.folders, 'going back changes files')
      return rewind(deps, input, await senderOf(host, context), context.signal)
    },
    'agent.conversations': () => ({ conversations: conversations.all.map(conversation => engine.state(conversation)) }),
    'agent.visible': async ({ ids }, { caller }) => {
      const seen = await look(caller)
      const found = await Promise.all(
        ids.map(async id => {
          const conversation = conversations.find(id)
          return conversation && (await accessToConversation(seen, conversation)) ? [id] : []
        }),
      )
      return { ids: found.flat() }
    },
    'agent.conversation': ({ id }) => engine.state(conversations.get(id)),
    'agent.transcript': async ({ id, limit, before }) => {
      const { session } = conversations.get(id)
      const { messages, total } = await transcripts.page(id, limit, before)
      return {
        messages: withCheckpoints(messages, await anchors.byRun(id)),
        total,
        ...(session && { sessionId: session.id }),
      }
    },
    'agent.lock': ({ id }, { signal }) => locked(locks, conversations.get(id).id, signal),
    'agent.landed': input => ok(landed({ engine, conversations }, input)),
    'agent.discard': ({ id }) => ok(engine.discard(conversations.get(id).id, () => eraser.erase(id, false))),
    'agent.rename': ({ id, title }) => ok(board.rename(id, title)),
    'agent.seen': ({ ids }) => ok(board.seen(ids)),
    'agent.requestLand': ({ id, request }) => ok(board.requestLand(id, request)),
    'agent.autoLand': ({ id, autoLand }) => ok(board.autoLand(id, autoLand)),
    'agent.archive': ({ id }) => ok(board.archive(id)),
    'agent.unarchive': ({ id }) => ok(board.unarchive(id)),
    'agent.purge': ({ id }) => ok(board.purge(id)),
    'agent.search': ({ query, caseSensitive = false }) => search.find(query, caseSensitive),
    'agent.place': ({ id, text, by }) => ok(board.place(id, text, by)),
  }
}
