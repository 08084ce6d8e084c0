import type { Host } from '../../../sdk/index.js'
import type { Conversation, TurnInput } from '../contract.js'
import type { Providers } from '../providers/providers.js'
import { usableModel } from './models.js'

/** What choosing a model for a run needs. */
export interface AutomaticModelDeps {
  readonly host: Pick<Host, 'call' | 'serves'>
  readonly providers: Providers
}

/**
 * Fills in the model of a new conversation that starts by itself and names none: the first of the settings that can be
 * used now. A conversation that had a turn stays on its model.
 */
export const automaticModel = async (
  input: TurnInput,
  conversation: Conversation | undefined,
  { host, providers }: AutomaticModelDeps,
): Promise<TurnInput> => {
  const { agent, model, runRole, unattended = false } = input
  const byItself = unattended || runRole !== undefined
  if (!byItself || agent !== undefined || model !== undefined || conversation) return input
  if (!(await host.serves('models.ladder'))) return input
  const { resolved, effort } = await host.call('models.ladder', { role: runRole ?? 'agentRunModels' })
  const efforts = effort !== undefined && { effort }
  const rungs = resolved.filter(({ usable }) => usable).map(rung => ({ provider: rung.provider, model: rung.model }))
  const place = await usableModel(rungs, providers)
  if (place === undefined) return { ...efforts, ...input }
  const { provider, model: chosen } = rungs[place]!
  return { ...efforts, ...input, agent: provider, model: chosen }
}
