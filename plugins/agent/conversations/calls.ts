import { refuse, type Handlers } from '../../../sdk/index.js'
import { accessToConversation, assertVisible } from '../../../sdk/node/access/conversation-reach.js'
import { ok } from '../ok.js'
import type { Engine } from '../turn/engine.js'
import { senderOf } from './access.js'
import { assertWorksEverywhere, type ViewOf } from './access-view.js'
import type { ConversationCalls } from './contract.js'
import type { Eraser } from './eraser.js'
import { landed, locked } from './landing.js'
import { rewind, type RewindDeps } from './rewind.js'

/** The dependencies of the calls of conversations. */
export interface ConversationCallsDeps extends RewindDeps {
  readonly engine: Engine
  readonly eraser: Eraser
  readonly look: ViewOf
}

/** Serves conversations and their records. */
export const conversationCalls = (deps: ConversationCallsDeps): Handlers<ConversationCalls> => {
  const { host, engine, conversations, copies, eraser, locks, look } = deps
  return {
    'POST /agent/rewind': async (input, context) => {
      const conversation = conversations.get(input.conversationId)
      const seen = await look(context.caller)
      await assertVisible(seen, conversation, true)
      assertWorksEverywhere(seen, conversation.folders, 'going back changes files')
      return rewind(deps, input, await senderOf(host, context), context.signal)
    },
    'agent.conversations': ({ archived }) => ({
      conversations: conversations.all
        .filter(({ archivedAt }) => archived === undefined || archived === (archivedAt !== undefined))
        .map(conversation => engine.state(conversation)),
    }),
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
    'agent.lock': ({ id }, { signal }) =>
      locked({ locks, conversations, copies, engine }, conversations.get(id).id, signal),
    'agent.landed': input => ok(landed({ engine, conversations }, input)),
    'agent.discard': ({ id, lastRun }) => {
      const unchanged = () => lastRun === undefined || (conversations.get(id).lastRun ?? '') === lastRun
      const erase = async () => {
        if (!unchanged()) refuse('conflict', `a turn of ${id} ran meanwhile: look at the diff, then discard`)
        await eraser.erase(id, false)
      }
      return ok(engine.discard(conversations.get(id).id, erase))
    },
  }
}
