import type { ActionRules, CommandClass, CommandRules, SettingVerdict } from '../settings/contract.js'
import { classesOf } from './classify/classify.js'
import { labelOf } from './classify/class-entries.js'
import type { DecisionContext, DecisionStep, SafetyDecision, SafetyPolicy, SafetySubject } from './contract.js'
import type { CompiledPolicy } from './policy/compiled-policy.js'

/** The settings that decide. */
export interface DecidingSettings {
  readonly commandRules: CommandRules
  readonly actionRules: ActionRules
}

/** The turn of a decision, as rules see it. */
export type DecidingContext = Pick<DecisionContext, 'persona' | 'repo' | 'unattended' | 'outside'>

/** What rules and settings say, and whether the judge is asked too. */
export interface RuledDecision {
  readonly decision: SafetyDecision
  readonly message?: string
  readonly steps: DecisionStep[]
  /** The rules allow it, and the policy shows it to the judge. */
  readonly judged: boolean
}

/** Decides by settings and rules alone: the steps 1 to 4 and 6. */
export const decideByRules = (
  subject: SafetySubject,
  context: DecidingContext,
  { policy, rules }: Pick<CompiledPolicy, 'policy' | 'rules'>,
  settings: DecidingSettings,
): RuledDecision => {
  const classes = classesOf(subject)
  const steps: DecisionStep[] = []
  const step = (matched: boolean, detail: string): boolean => {
    steps.push({ step: steps.length + 1, matched, detail })
    return matched
  }
  const found = classes.length > 0 ? `classes ${classes.join(', ')}` : 'no class'
  const outside = context.outside !== undefined
  const decided = (part: Omit<SafetyDecision, 'classes'>, message?: string): RuledDecision => ({
    decision: { ...part, classes, reason: part.reason.slice(0, 1_000) },
    ...(message && { message }),
    steps,
    judged: false,
  })
  const denied = settingOf(subject, classes, settings, 'deny')
  if (step(denied !== undefined, denied ? `${found}; ${denied.what} denies it` : `${found}; no setting denies it`))
    return decided({ verdict: 'deny', by: denied!.by, reason: `the settings deny it (${denied!.what})` })
  const match = rules.find(({ matches }) =>
    matches({
      subject,
      classes,
      unattended: context.unattended,
      outside,
      persona: context.persona,
      repo: context.repo,
    }),
  )?.rule
  if (step(match !== undefined, match ? `rule ${match.id} says ${match.verdict}` : 'no rule matches')) {
    const { id, label, verdict, message } = match!
    const verb = { allow: 'allows', hold: 'holds', deny: 'denies' }[verdict]
    return decided({ verdict, by: 'rule', ruleId: id, reason: `the rule ${id} (${label}) ${verb} it` }, message)
  }
  const held = settingOf(subject, classes, settings, 'hold')
  if (step(held !== undefined, held ? `${held.what} holds it` : 'no setting holds it'))
    return decided({
      verdict: 'hold',
      by: held!.by,
      reason: `the settings hold it until a person agrees (${held!.what})`,
    })
  const floor = policy.outsideFloor && outside && classes.includes('secrets.access')
  const floored = floor && settings.commandRules['secrets.access'] === undefined
  if (
    step(
      floored,
      floored ? `the turn has read ${context.outside}` : 'the floor for content from outside does not apply',
    )
  )
    return decided({
      verdict: 'hold',
      by: 'outside-floor',
      reason: `it reads secrets, and this turn has read content from outside (${context.outside})`,
    })
  return {
    ...decided({ verdict: 'allow', by: 'default', reason: 'no rule and no setting is against it' }),
    judged: isShown(subject, classes, policy),
  }
}

/** Whether the policy shows a subject to the judge. */
const isShown = (
  { kind }: SafetySubject,
  classes: readonly CommandClass[],
  { prose, judge }: SafetyPolicy,
): boolean => {
  if (judge.mode === 'off' || prose.trim() === '') return false
  if (kind === 'action') return judge.actions
  const { ask } = judge
  return ask === 'all' || classes.some(one => ask.includes(one))
}

interface SettingFound {
  readonly by: 'commandRules' | 'actionRules'
  readonly what: string
}

/** The setting that says this verdict. */
const settingOf = (
  { kind, provider, type }: SafetySubject,
  classes: readonly CommandClass[],
  { commandRules, actionRules }: DecidingSettings,
  verdict: SettingVerdict,
): SettingFound | undefined => {
  if (kind === 'action') {
    const key = [`${provider}.${type}`, `${provider}.*`].find(name => Object.hasOwn(actionRules, name))
    if (key !== undefined && actionRules[key] === verdict) return { by: 'actionRules', what: `actionRules ${key}` }
  }
  const found = classes.find(one => commandRules[one] === verdict)
  return found && { by: 'commandRules', what: `commandRules ${found}: ${labelOf(found).toLowerCase()}` }
}

const STRICTNESS: { readonly [verdict in SettingVerdict]: number } = { allow: 0, hold: 1, deny: 2 }

/** Whether a verdict is stricter than another one. */
export const isStricter = (one: SettingVerdict, other: SettingVerdict): boolean => STRICTNESS[one] > STRICTNESS[other]
