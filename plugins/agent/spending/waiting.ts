import { Refusal } from '../../../sdk/index.js'
import type { Host } from '../../../sdk/index.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Providers } from '../providers/providers.js'
import { optionsOf } from '../turn/options.js'
import type { RunMessage } from '../turn/run-entry.js'
import { assertAffordable } from './admission.js'

/** Checks the budgets for waiting messages. */
export interface WaitingAdmission {
  /** Refuses a message whose turn a budget refuses now. */
  assert(message: RunMessage): Promise<void>
  /** Why a budget refuses the turn of a message now; undefined: none does. */
  why(message: RunMessage): Promise<string | undefined>
}

/** Asks the budgets for waiting messages; a missing provider is reported in the turn. */
export const waitingAdmission = (
  host: Pick<Host, 'call' | 'serves'>,
  conversations: Pick<Conversations, 'get'>,
  providers: Providers,
): WaitingAdmission => {
  const assert = async ({ input, conversationId, attended, approved }: RunMessage): Promise<void> => {
    const conversation = conversations.get(conversationId)
    await providers.refresh(input.agent ?? conversation.provider)
    const options = (() => {
      try {
        return optionsOf(input, conversation, providers)
      } catch {
        return undefined
      }
    })()
    if (!options) return
    const unattended = !attended || input.unattended === true
    const asks = unattended && !approved
    await assertAffordable(host, {
      provider: options.adapter.id,
      model: options.model,
      conversationId,
      ...(options.actsAs !== undefined && { persona: options.actsAs }),
      unattended,
      asks,
    })
  }
  return {
    assert,
    why: message =>
      assert(message).then(
        () => undefined,
        (error: unknown) => (error instanceof Refusal && error.reason === 'too-many' ? error.message : undefined),
      ),
  }
}
