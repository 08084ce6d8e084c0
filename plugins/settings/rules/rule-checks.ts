import { refuse } from '../../../sdk/index.js'
import { globPattern } from '../../../sdk/node/files/glob-pattern.js'
import type { Rule, RuleAction, RuleMoment } from './contract.js'

/** What rules do at each moment. */
const ACTIONS: { readonly [moment in RuleMoment]: { readonly kinds: readonly RuleAction['kind'][]; words: string } } = {
  'turn.ending': { kinds: ['command', 'instruct', 'builtin'], words: 'a command, an instruction or a builtin' },
  'push.starting': { kinds: ['command', 'verdict'], words: 'a command, or the verdict hold' },
  'agent.finished': { kinds: ['verdict'], words: 'a verdict' },
}

/** What is wrong with a list of rules. */
interface WrongRule {
  readonly path: string
  readonly expected: string
  readonly found: string
}

/** The first rule that cannot be kept; undefined: all can. */
export const wrongRule = (rules: readonly Rule[]): WrongRule | undefined => {
  const known = new Set<string>()
  for (const [at, { id, moment, action, when }] of rules.entries()) {
    if (known.has(id)) return { path: `[${at}].id`, expected: 'an id that no other rule has', found: id }
    known.add(id)
    const { kinds, words } = ACTIONS[moment]
    const idle = moment === 'push.starting' && action.kind === 'verdict' && action.verdict === 'allow'
    if (!kinds.includes(action.kind) || idle) {
      const found = action.kind === 'verdict' ? `the verdict ${action.verdict}` : action.kind
      return { path: `[${at}].action`, expected: `${words} at ${moment}`, found }
    }
    const glob = when?.paths?.findIndex(path => regexOf(path) === undefined) ?? -1
    if (glob >= 0) {
      const found = when!.paths![glob]!
      return { path: `[${at}].when.paths[${glob}]`, expected: 'a glob whose brackets are closed', found }
    }
  }
  return undefined
}

/** Refuses rules that cannot be kept; `path` is where they stand in the input. */
export const checkRules = (rules: readonly Rule[] | undefined, path: string): void => {
  const wrong = wrongRule(rules ?? [])
  if (!wrong) return
  const { expected, found } = wrong
  const at = path + wrong.path
  refuse('invalid', `${at}: expected ${expected}, found ${JSON.stringify(found.slice(0, 120))}`, {
    errors: [{ path: at, expected, value: found.slice(0, 120) }],
  })
}

/** The regular expression of a glob; undefined: it is none. */
export const regexOf = (glob: string): RegExp | undefined => {
  const pattern = globPattern(glob)
  try {
    return pattern === undefined ? undefined : new RegExp(pattern, 's')
  } catch {
    return undefined
  }
}
