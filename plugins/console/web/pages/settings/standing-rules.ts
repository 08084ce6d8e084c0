import type { Rule, RuleFiring, RuleMoment } from '../../../../settings/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import type { ToneWord } from '../../ui/page.js'

/** The moments of rules, in words. */
export const MOMENTS: readonly (readonly [moment: RuleMoment, label: string])[] = [
  ['turn.ending', 'A turn is about to end'],
  ['push.starting', 'A push is about to start'],
  ['agent.finished', 'The work of a turn may land'],
]

/** What rules did, in words. */
export const FIRED: { readonly [outcome in RuleFiring['outcome']]: ToneWord } = {
  acted: ['', 'Acted'],
  blocked: ['bad', 'Stopped a push'],
  held: ['warn', 'Held it'],
}

/** Saves the rules, unless somebody changed the settings since they were shown. */
export const saveRules = async (rules: readonly Rule[], revision: string): Promise<void> => {
  await askDaemon('POST /settings/patch', { set: { rules: [...rules] }, revision })
  refetch(new Set(['settings']))
}

/** What a rule does and on what condition. */
export const ruleSentence = ({ moment, action, when = {} }: Rule): string => {
  const { repo, paths, outcome } = when
  const does =
    action.kind === 'command'
      ? `runs ${action.command || 'nothing: its command is empty'}`
      : action.kind === 'instruct'
        ? `tells the agent: ${action.text}`
        : action.kind === 'verdict'
          ? action.verdict === 'allow'
            ? 'lets the work land'
            : 'holds'
          : 'runs the checks of edited packages'
  const conditions = [repo && `repository ${repo}`, paths?.join(', '), outcome?.join(' or ')].filter(Boolean)
  const at = MOMENTS.find(([each]) => each === moment)?.[1] ?? moment
  return [at, does, ...conditions].join(' · ')
}
