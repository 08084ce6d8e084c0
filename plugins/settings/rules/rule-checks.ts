import { refuse } from '../../../sdk/index.js'
import { globPattern } from '../../../sdk/node/files/glob-pattern.js'
import type { OccasionFacts, Rule, RuleAction, RuleMoment } from './contract.js'

const MOST_COMPARED = 10_000_000

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
    const glob = when?.paths?.findIndex(path => !isGlob(path)) ?? -1
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

/** Whether a glob can be compared with paths. */
const isGlob = (glob: string): boolean => {
  const pattern = globPattern(glob)
  try {
    return pattern !== undefined && new RegExp(pattern) instanceof RegExp
  } catch {
    return false
  }
}

/** Whether a rule could act at all. */
export const stands = ({ enabled = true, action }: Rule): boolean =>
  enabled && !(action.kind === 'command' && action.command.trim() === '')

/** Refuses a trial that would compare more text than is reasonable. */
export const checkTrial = (rules: readonly Rule[], { paths = [] }: OccasionFacts): void => {
  const length = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0)
  const work = length(paths) * rules.reduce((sum, { when }) => sum + length(when?.paths ?? []), 0)
  if (work > MOST_COMPARED) refuse('too-large', 'these are too many paths to compare with so many globs: try fewer')
}
