import { useSignal, type Signal } from '@preact/signals'
import type { PermissionMode } from '../../../../agent/contract.js'

/** What a person chose for a turn; an empty text leaves it to the daemon. */
export interface TurnChoice {
  readonly model: Signal<string>
  readonly account: Signal<string>
  readonly persona: Signal<string>
  readonly mode: Signal<PermissionMode | ''>
}

const chosenOf = (model: string): readonly [provider?: string, model?: string] =>
  model ? (JSON.parse(model) as [string, string]) : []

/** The provider of a chosen model. */
export const providerOf = (model: string): string | undefined => chosenOf(model)[0]

/** The options of a message, all left to the daemon at first. */
export const useTurnChoice = (): TurnChoice => ({
  model: useSignal(''),
  account: useSignal(''),
  persona: useSignal(''),
  mode: useSignal<PermissionMode | ''>(''),
})

/** The chosen options as a message has them. */
export const turnOptionsOf = ({ model, account, persona, mode }: TurnChoice) => {
  const [agent, name] = chosenOf(model.value)
  return {
    ...(mode.value && { permissionMode: mode.value }),
    ...(agent && { agent, ...(name && { model: name }) }),
    ...(account.value && { account: account.value }),
    ...(persona.value && { actsAs: persona.value }),
  }
}

const chosenIn = ({ model, account, persona, mode }: TurnChoice): readonly Signal<string>[] => [
  model,
  account,
  persona,
  mode as Signal<string>,
]

/** How many options are chosen. */
export const chosenCount = (choice: TurnChoice): number => chosenIn(choice).filter(({ value }) => value).length

/** Leaves all options to the daemon again. */
export const clearChoice = (choice: TurnChoice): void => {
  for (const option of chosenIn(choice)) option.value = ''
}
