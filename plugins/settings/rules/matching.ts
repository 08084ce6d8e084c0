import { RE2JS } from 're2js'
import { globPattern } from '../../../sdk/node/files/glob-pattern.js'
import type { ActingRule, Rule, OccasionFacts, RuleMoment, RulesTried, SkippedRule } from './contract.js'
import { stands } from './rule-checks.js'

/** Which rules act on an occasion, in their order, and why the others do not. */
export const tryRules = (rules: readonly Rule[], moment: RuleMoment, facts: OccasionFacts): RulesTried => {
  const matched: ActingRule[] = []
  const skipped: SkippedRule[] = []
  for (const rule of rules) {
    const { id, label, action } = rule
    const first = moment === 'agent.finished' ? matched[0] : undefined
    const why = skipOf(rule, moment, facts) ?? (first && `${first.id} decides already`)
    if (why === undefined) matched.push({ id, label, action, decides: action.kind === 'verdict' })
    else skipped.push({ id, why })
  }
  const verdict = verdictOf(matched, moment)
  return { matched, skipped, ...(verdict && { verdict }) }
}

/** Work that no rule allows is held; a push that no rule holds depends on the commands. */
const verdictOf = (matched: readonly ActingRule[], moment: RuleMoment): 'allow' | 'hold' | undefined => {
  const action = matched.find(({ decides }) => decides)?.action
  if (action?.kind === 'verdict') return action.verdict
  return moment === 'agent.finished' ? 'hold' : undefined
}

/** Why a rule does not act; undefined: it does. */
const skipOf = (rule: Rule, moment: RuleMoment, { repos, paths, outcome }: OccasionFacts): string | undefined => {
  const { enabled = true, when = {}, action } = rule
  if (rule.moment !== moment) return `it stands at ${rule.moment}`
  if (!enabled) return 'it is switched off'
  if (!stands(rule)) return 'its command is empty'
  // What lets work in must hold for all of it; everything else for a part.
  const all = action.kind === 'verdict' && action.verdict === 'allow'
  if (when.repo !== undefined) {
    if (!repos?.length) return 'no repository is known here, and it asks for one'
    const others = repos.filter(repo => repo !== when.repo)
    if (others.length === repos.length) return `${when.repo} is not affected`
    if (all && others.length > 0) return `${others[0]} is affected too, and an allowance needs ${when.repo} alone`
  }
  if (when.paths) {
    if (!paths?.length) return 'no path is known here, and it asks for some'
    const globs = when.paths.flatMap(glob => regexOf(glob) ?? [])
    const fits = (path: string) => globs.some(glob => glob.matches(path))
    const other = all ? paths.find(path => !fits(path)) : undefined
    if (other !== undefined) return `${other} does not fit, and an allowance needs every path to fit`
    if (!all && !paths.some(fits)) return 'no path fits'
  }
  if (when.outcome) {
    if (outcome === undefined) return 'no outcome is known here, and it asks for one'
    if (!when.outcome.includes(outcome)) return `the outcome is ${outcome}`
  }
  return undefined
}

/** The regular expression of a glob, which is compared in linear time; undefined: it is none. */
const regexOf = (glob: string): RE2JS | undefined => {
  const pattern = globPattern(glob)
  try {
    return pattern === undefined ? undefined : RE2JS.compile(pattern, RE2JS.DOTALL)
  } catch {
    return undefined
  }
}
