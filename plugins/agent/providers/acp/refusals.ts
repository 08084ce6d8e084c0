import type { TurnFailure } from '../adapter.js'

const anyOf = (...forms: readonly string[]): RegExp => new RegExp(forms.join('|'), 'i')

const AUTH = anyOf(
  String.raw`\b401\b|unauthori[sz]ed|authentication|not (?:logged|signed) in|please (?:log|sign) ?in`,
  String.raw`(?:invalid|incorrect) (?:x-)?api[- ]?key|api key (?:is )?(?:missing|invalid)|token (?:has )?expired`,
)
const LIMIT = anyOf(
  String.raw`\b429\b|quota|rate.?limit|usage limit|limit (?:was )?(?:reached|exceeded)|too many requests`,
  String.raw`insufficient (?:balance|credit|funds)|out of credits`,
)
const MOST = 300

/** The failure that a program's text reports of its model server: a limit, or a refused credential. */
export const refusalIn = (label: string, words: string): TurnFailure | undefined => {
  const said = words.slice(0, MOST).toWellFormed()
  if (AUTH.test(words))
    return {
      code: 'reauth',
      message: `the model server of ${label} refuses its credential (${said}): sign in again, or give it another key`,
    }
  if (LIMIT.test(words))
    return {
      code: 'rate_limit',
      message: `a limit of the model server of ${label} is used up (${said}): wait, or choose another model`,
    }
  return undefined
}
