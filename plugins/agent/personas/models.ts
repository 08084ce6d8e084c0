import { Refusal } from '../../../sdk/index.js'
import type { TurnInput } from '../contract.js'
import type { WantedModel } from '../providers/contract.js'
import type { Providers } from '../providers/providers.js'
import { optionsOf } from '../turn/options.js'

/** A model as a message names it. */
export const namedModel = ({
  provider: agent,
  ...rest
}: WantedModel): Pick<TurnInput, 'agent' | 'model' | 'harness' | 'effort' | 'thinking' | 'fast'> => ({ agent, ...rest })

/** The index of the first model that a turn could run on now; undefined: there is none. */
export const usableModel = async (
  models: readonly WantedModel[],
  providers: Providers,
): Promise<number | undefined> => {
  for (const [place, model] of models.entries()) {
    await providers.refresh(model.provider)
    try {
      optionsOf(namedModel(model), undefined, providers)
      return place
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
    }
  }
  return undefined
}
