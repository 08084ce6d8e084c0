import { refuse } from '../../sdk/index.js'
import type { SwitchInput, Switched } from './contract.js'
import type { Conversations } from './conversations.js'
import type { Engine } from './engine.js'
import type { Lanes } from './lanes.js'
import type { Providers } from './providers.js'
import { optionsOf } from './turn-options.js'

/** What moving a conversation needs. */
export interface SwitchParts {
  readonly engine: Pick<Engine, 'live'>
  readonly conversations: Conversations
  readonly providers: Providers
  readonly lanes: Lanes
}

/** Writes down what a conversation's next turn runs on; its work, copy and queue are untouched. */
export const switchAccount = async (parts: SwitchParts, input: SwitchInput): Promise<Switched> => {
  const { engine, conversations, providers, lanes } = parts
  const { conversationId, account, when, ...wanted } = input
  if (account === undefined && !Object.values(wanted).some(value => value !== undefined))
    refuse('invalid', 'expected at least one of agent, harness, account, model, effort, thinking and fast, found none')
  conversations.get(conversationId)
  return lanes.run(conversationId, async () => {
    const before = conversations.get(conversationId)
    const live = engine.live(conversationId)
    if (live?.stopping) refuse('conflict', `the turn of ${conversationId} is stopping: wait until it has ended, then move the conversation`)
    if (account !== undefined) refuse('unprocessable', `account: there is no account ${JSON.stringify(account.slice(0, 120))}`)
    const { adapter, harness, model, effort, thinking, fast } = optionsOf(wanted, before, providers)
    if (live && when !== 'next')
      refuse('unprocessable', 'when: this sandbox cannot move a turn under way yet; pass when "next", or stop the turn first')
    const stays = before.provider === adapter.id && before.harness === harness
    const kept = stays && (before.session ?? live?.record.sessionId) !== undefined ? 'session' : 'record'
    await conversations.update(conversationId, {
      provider: adapter.id, harness, model, effort, thinking, fast, updatedAt: Date.now(), ...(kept === 'record' && { session: undefined }),
    })
    return { applied: 'next', kept }
  })
}
