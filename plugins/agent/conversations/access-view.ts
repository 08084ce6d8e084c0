import { refuse, type Caller, type Reach } from '../../../sdk/index.js'
import { accessToConversation, worksEverywhere } from '../../../sdk/node/access/conversation-reach.js'
import { limitsOf, refuseReading, type AccessView } from '../../../sdk/node/access/access-view.js'
import type { Conversation } from '../contract.js'
import type { Conversations } from './conversations.js'

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

/** Refuses a conversation that does not exist for a caller, in the words for one that nobody has. */
export const refuseUnknown = (id: string): never =>
  refuse('not-found', `there is no conversation ${JSON.stringify(id.slice(0, 64))}`)

/** Refuses somebody who may only read where this would change files; `folders`: all that it may change. */
export const assertWorksEverywhere = (seen: AccessView, folders: Reach, what: string): void => {
  if (worksEverywhere(seen, folders)) return
  refuse('forbidden', `${what} in folders you may only read: it takes an area held for work there, or a maintainer`)
}

type Seen = Pick<Conversation, 'id' | 'startIn' | 'folders'>

/** Refuses a conversation that is not there for a caller, and with `works` one in an area held for reading. */
export const assertVisible = async (seen: AccessView, conversation: Seen, works: boolean): Promise<void> => {
  const { id } = conversation
  const access = await accessToConversation(seen, conversation)
  if (access === undefined) refuseUnknown(id)
  if (works && access === 'read') refuseReading(id)
}

/** The same for the conversation of an id. */
export const assertVisibleIn =
  (conversations: Pick<Conversations, 'get'>, look: ViewOf) =>
  async (id: string, caller: Caller, works = true): Promise<Conversation> => {
    const conversation = conversations.get(id)
    await assertVisible(await look(caller), conversation, works)
    return conversation
  }
