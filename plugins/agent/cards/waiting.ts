import type { Caller } from '../../../sdk/index.js'
import { accessToConversation } from '../../../sdk/node/access/conversation-reach.js'
import { assertReads, mayReach } from '../conversations/access.js'
import { assertVisibleIn, type ViewOf } from '../conversations/access-view.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Engine } from '../turn/engine.js'
import type { OpenCards } from './cards.js'
import type { WaitingCard } from './contract.js'

/** The dependencies of listing open cards. */
export interface WaitingDeps {
  readonly cards: Pick<OpenCards, 'open'>
  readonly conversations: Pick<Conversations, 'find' | 'get'>
  readonly engine: Pick<Engine, 'turns'>
  readonly look: ViewOf
}

/** The open cards that a caller may see, oldest first. */
export const waitingCards = async (
  { cards, conversations, engine, look }: WaitingDeps,
  caller: Caller,
  only: string | undefined,
): Promise<WaitingCard[]> => {
  if (only !== undefined) assertReads(caller, await assertVisibleIn(conversations, look)(only, caller, false))
  const seen = await look(caller)
  const found = await Promise.all(
    engine.turns.map(async ({ conversationId, live }): Promise<WaitingCard[]> => {
      const conversation = conversations.find(conversationId)
      if (!conversation || (only !== undefined && conversationId !== only) || live.cards.length === 0) return []
      if (!mayReach(caller, conversation) || !(await accessToConversation(seen, conversation))) return []
      return live.cards.flatMap(({ requestId, raisedAt }) => {
        const card = cards.open(requestId)
        return card ? [{ conversationId, run: live.run, raisedAt, card }] : []
      })
    }),
  )
  return found.flat().sort((one, other) => one.raisedAt - other.raisedAt)
}
