import { refuse } from '../../../sdk/index.js'
import type { SwitchInput, Switched } from '../contract.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Engine } from './engine.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { Providers } from '../providers/providers.js'
import { assertAccount } from './named-account.js'
import { optionsOf } from './options.js'

/** The dependencies of moving a conversation. */
export interface SwitchDeps {
  readonly engine: Pick<Engine, 'live'>
  readonly conversations: Conversations
  readonly providers: Providers
  readonly decisions: KeyedMutex
}

/**
 * Moves a conversation to another provider choice: a running turn at its next gap, otherwise the next turn.
 *
 * Returns once the choice is durable. A turn that ends before its next gap does not move; a parked one moves with its
 * answer.
 */
export const switchAccount = async (deps: SwitchDeps, input: SwitchInput): Promise<Switched> => {
  const { engine, conversations, providers, decisions } = deps
  const { conversationId, account, when, ...wanted } = input
  if (account === undefined && !Object.values(wanted).some(value => value !== undefined))
    refuse('invalid', 'expected at least one of agent, harness, account, model, effort, thinking and fast, found none')
  conversations.get(conversationId)
  return decisions.with(conversationId, async () => {
    const before = conversations.get(conversationId)
    const live = engine.live(conversationId)
    if (live?.stopping)
      refuse(
        'conflict',
        `the turn of ${conversationId} is stopping: wait until it has ended, then move the conversation`,
      )
    await providers.refresh(wanted.agent ?? before.provider)
    const { adapter, harness, model, effort, thinking, fast } = optionsOf(wanted, before, providers)
    await assertAccount(adapter, account)
    const stays = before.provider === adapter.id && before.harness === harness
    const later = stays && (before.session ?? live?.record.sessionId) !== undefined ? 'session' : 'record'
    await conversations.change(conversationId, {
      provider: adapter.id,
      harness,
      model,
      effort,
      thinking,
      fast,
      ...(account !== undefined && { account: { provider: adapter.id, id: account } }),
      updatedAt: Date.now(),
      ...(later === 'record' && { session: undefined }),
    })
    if (!live || live.worked || when === 'next') return { applied: 'next', kept: later }
    const { fields } = live.entry
    const same = fields.provider === adapter.id && fields.harness === harness
    const kept = same && adapter.abilities(harness).state ? 'session' : 'record'
    await live.move({ provider: adapter.id, harness, model, effort, thinking, fast, kept })
    // The turn may have ended during the write.
    const moves = !live.worked || !live.entry.fields.moving
    return moves ? { applied: 'now', run: live.run, kept } : { applied: 'next', kept: later }
  })
}
