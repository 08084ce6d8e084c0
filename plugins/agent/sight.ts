import { refuse, type Caller } from '../../sdk/index.js'
import { limitsOf, refuseReading, type Sight } from '../../sdk/node/sight.js'
import type { Conversation } from './contract.js'
import type { Conversations } from './conversations.js'

/** Whose areas bound what a turn reaches: those it had when it said its words, as far as it still holds them. */
export interface Limits {
  readonly areas: readonly string[]
  readonly email?: string
}

/** Answers what a caller sees now. */
export type Look = (caller: Caller) => Promise<Sight>

/** What bounds the turns that a caller starts; undefined: nothing. */
export const boundsOf = (caller: Caller): Limits | undefined => {
  const areas = limitsOf(caller)
  const { email } = caller
  return areas && { areas, ...(email !== undefined && { email }) }
}

/** Whether a turn reaches nothing beyond what the caller does, so that it may take the caller's words. */
export const holds = (turn: Limits | undefined, caller: Caller): boolean => {
  const areas = limitsOf(caller)
  return !areas || (turn !== undefined && turn.areas.every(id => areas.includes(id)))
}

/** Refuses a conversation that is not there for a caller, and with `works` one in an area held for reading. */
export const see = async (seen: Sight, { id, startIn }: Pick<Conversation, 'id' | 'startIn'>, works: boolean): Promise<void> => {
  const access = await seen.access(startIn)
  if (access === undefined) refuse('not-found', `there is no conversation ${JSON.stringify(id.slice(0, 64))}`)
  if (works && access === 'read') refuseReading(id)
}

/** The same for the conversation of an id. */
export const seeOf = (conversations: Pick<Conversations, 'get'>, look: Look) => async (id: string, caller: Caller, works = true): Promise<Conversation> => {
  const conversation = conversations.get(id)
  await see(await look(caller), conversation, works)
  return conversation
}

/** Refuses words of somebody who reaches less than the turn they are for: its agent would look for them where they may not. */
export const checkHolds = (turn: Limits | undefined, caller: Caller): void => {
  if (!holds(turn, caller)) refuse('conflict', 'the turn reaches more of the workspace than you do, so it takes no word of yours: say it with POST /agent, for a turn of your own')
}
