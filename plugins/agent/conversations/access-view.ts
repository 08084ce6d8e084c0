import { refuse, type Caller, type Reach } from '../../../sdk/index.js'
import { limitsOf, type AccessView } from '../../../sdk/node/access/access-view.js'
import { assertVisible, worksEverywhere } from '../../../sdk/node/access/conversation-reach.js'
import type { Conversation } from '../contract.js'

/** Whose areas bound what a turn reaches: those it had when it said its words, as far as it still holds them. */
export interface AccessLimits {
  readonly areas: readonly string[]
  readonly email?: string
}

/** Answers what a caller sees now. */
export type ViewOf = (caller: Caller) => Promise<AccessView>

/** What bounds the turns that a caller starts; undefined: nothing. */
export const limitsOfTurn = (caller: Caller): AccessLimits | undefined => {
  const areas = limitsOf(caller)
  const { email } = caller
  return areas && { areas, ...(email !== undefined && { email }) }
}

/** Refuses somebody who may only read where this would change files; `folders`: all that it may change. */
export const assertWorksEverywhere = (seen: AccessView, folders: Reach, what: string): void => {
  if (worksEverywhere(seen, folders)) return
  refuse('forbidden', `${what} in folders you may only read: it takes an area held for work there, or a maintainer`)
}

/** Gives the conversation of an id, refused where a caller may not see it, and with `works` not work on it. */
export const assertVisibleIn =
  (conversations: { get(id: string): Conversation }, look: ViewOf) =>
  async (id: string, caller: Caller, works = true): Promise<Conversation> => {
    const conversation = conversations.get(id)
    await assertVisible(await look(caller), conversation, works)
    return conversation
  }
