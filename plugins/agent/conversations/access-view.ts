import { refuse, type Caller, type Reach } from '../../../sdk/index.js'
import { limitsOf, type AccessView } from '../../../sdk/node/access/access-view.js'
import { assertVisible, worksEverywhere } from '../../../sdk/node/access/conversation-reach.js'
import type { Conversation } from '../contract.js'

/** The areas that limit a turn: those that its sender had when sending the message and still holds. */
export interface AccessLimits {
  readonly areas: readonly string[]
  readonly email?: string
}

/** Returns the current access view of a caller. */
export type ViewOf = (caller: Caller) => Promise<AccessView>

/** The limits of turns that a caller starts; undefined: none. */
export const limitsOfTurn = (caller: Caller): AccessLimits | undefined => {
  const areas = limitsOf(caller)
  const { email } = caller
  return areas && { areas, ...(email !== undefined && { email }) }
}

/** Refuses a caller who may only read some of the folders that this may change. */
export const assertWorksEverywhere = (seen: AccessView, folders: Reach, what: string): void => {
  if (worksEverywhere(seen, folders)) return
  refuse('forbidden', `${what} in folders you may only read: it takes an area held for work there, or a maintainer`)
}

/** Returns a conversation by id; refuses one that the caller may not see, or with `works` may only read. */
export const assertVisibleIn =
  (conversations: { get(id: string): Conversation }, look: ViewOf) =>
  async (id: string, caller: Caller, works = true): Promise<Conversation> => {
    const conversation = conversations.get(id)
    await assertVisible(await look(caller), conversation, works)
    return conversation
  }
