import type { Host } from '../../../sdk/index.js'
import type { Conversation, TurnInput } from '../contract.js'
import type { Providers } from '../providers/providers.js'
import { namedModel, usableModel } from './models.js'

/** Fills in the open options of a message from the card of its persona. */
export type WearCard = (input: TurnInput, conversation: Conversation | undefined) => Promise<TurnInput>

/** On a first turn the card's start folder takes precedence; its models apply if the message names none. */
export const wearing =
  (host: Pick<Host, 'call' | 'serves'>, providers: Providers): WearCard =>
  async (input, conversation) => {
    const actsAs = input.actsAs ?? conversation?.actsAs
    if (actsAs === undefined || !(await host.serves('personas.forTurn'))) return input
    const { known, startIn, models } = await host.call('personas.forTurn', { actsAs })
    if (!known) return input
    const open = input.agent === undefined && input.model === undefined
    const place = open ? await usableModel(models, providers) : undefined
    return {
      ...(place !== undefined && namedModel(models[place]!)),
      ...input,
      ...(!conversation && startIn !== undefined && startIn !== '.' && { startIn }),
    }
  }
