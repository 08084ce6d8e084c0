import { refuse } from '../../sdk/index.js'
import { chosenCleaners } from '../../sdk/node/outputs/catalogue.js'

/** What is wrong with a choice of cleaners; undefined: nothing. */
export const wrongCleaners = (value: string): { readonly expected: string; readonly found: string } | undefined => {
  const chosen = chosenCleaners(value)
  return 'expected' in chosen ? chosen : undefined
}

/** Refuses a choice of cleaners that names one that does not exist. */
export const checkCleaners = (value: string | undefined, path: string): void => {
  const wrong = value === undefined ? undefined : wrongCleaners(value)
  if (!wrong) return
  const { expected, found } = wrong
  refuse('invalid', `${path}: expected ${expected}, found ${JSON.stringify(found)}`, {
    errors: [{ path, expected, value: found }],
  })
}
