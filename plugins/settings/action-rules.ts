import { refuse } from '../../sdk/index.js'
import type { ActionRules } from './contract.js'

const MOST = 200
const ACTION = /^[a-z0-9][a-z0-9_-]{0,59}\.(?:\*|[a-z0-9][a-z0-9._-]{0,59})$/i
const EXPECTED = '<provider>.<type> or <provider>.*'

/** A key of action rules that is none; undefined: all fit. */
export const wrongAction = (rules: ActionRules): string | undefined => {
  const keys = Object.keys(rules)
  return keys.length > MOST ? keys[MOST] : keys.find(key => !ACTION.test(key))
}

/** Refuses action rules of which a key names no action. */
export const checkActions = (rules: ActionRules | undefined, path: string): void => {
  const wrong = rules && wrongAction(rules)
  if (wrong === undefined) return
  const expected = ACTION.test(wrong) ? `at most ${MOST} keys` : EXPECTED
  refuse('invalid', `${path}: expected ${expected}, found ${JSON.stringify(wrong.slice(0, 120))}`, {
    errors: [{ path, expected, value: wrong.slice(0, 120) }],
  })
}
