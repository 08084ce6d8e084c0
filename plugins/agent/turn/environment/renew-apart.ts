import { Refusal } from '../../../../sdk/index.js'
import type { Conversation } from '../../contract.js'
import type { Turn } from '../turn.js'
import type { TurnEnvironmentDeps } from './environment-deps.js'
import { trustOf } from './trust.js'

/**
 * Makes a copy anew from its branches before a turn that lands works in it, where other work was in it. What no diff
 * shows is gone then: ignored files, settings of git, hooks, index flags.
 *
 * Work that would be lost keeps the copy, and the turn does not land by itself either. Returns the conversation as it
 * is then.
 */
export const renewApart = async (
  { copies, conversations, leaveShared }: Pick<TurnEnvironmentDeps, 'copies' | 'conversations' | 'leaveShared'>,
  turn: Turn,
  conversation: Conversation,
): Promise<Conversation> => {
  const { id, repos, copyApart } = conversation
  if (trustOf(turn, conversation) !== 'lands') {
    if (!copyApart) await conversations.update(id, { copyApart: true })
    // A process of work that lands would find there what is written from now on.
    await leaveShared(id)
    return conversations.get(id)
  }
  if (!copyApart) return conversation
  try {
    if (repos.length > 0) await copies.retire(id, repos)
    await conversations.update(id, { copyApart: undefined })
  } catch (error) {
    const { reason, message } = Refusal.from(error)
    if (reason !== 'conflict') throw error
    await conversations.update(id, { landsAlone: undefined })
    const text = `somebody who may not land worked in this copy, and it cannot be made anew: ${message}`
    turn.log.push({ kind: 'notice', level: 'warning', text, source: 'landing' })
  }
  return conversations.get(id)
}
