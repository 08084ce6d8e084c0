import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { SafetyRule, SafetyState } from '../../../../safety/contract.js'
import { DialogForm } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { savePolicy } from './policy.js'
import { UNATTENDED_CHOICES, OUTSIDE_CHOICES, TARGET_CHOICES, VERDICT_CHOICES } from './words.js'

interface RuleFormProps {
  readonly state: SafetyState
  /** The rule to change; undefined: a new one, which becomes the first. */
  readonly rule?: SafetyRule
  readonly close: () => void
}

/** The parts of an object that say something; undefined: none does. */
const given = <T extends object>(parts: T): T | undefined => {
  const said = Object.entries(parts).filter(([, value]) => value !== undefined && value !== '')
  return said.length > 0 ? (Object.fromEntries(said) as T) : undefined
}

const choiceOf = (value: boolean | undefined): '' | 'yes' | 'no' => (value === undefined ? '' : value ? 'yes' : 'no')
const valueOf = (choice: '' | 'yes' | 'no'): boolean | undefined => (choice === '' ? undefined : choice === 'yes')

/** Adds a rule, or changes one in its place. */
export const RuleForm = ({ state, rule, close }: RuleFormProps) => {
  const { policy, classes } = state
  // A change that somebody else makes meanwhile is not written over; a new rule leaves it as it is.
  const opened = useRef(state.revision)
  const revision = rule ? opened.current : state.revision
  const { match, when } = rule ?? {}
  const id = useSignal(rule?.id ?? '')
  const label = useSignal(rule?.label ?? '')
  const target = useSignal(rule?.target ?? 'command')
  const ofClass = useSignal<string>(match?.class ?? '')
  const regex = useSignal(match?.regex ?? '')
  const glob = useSignal(match?.glob ?? '')
  const sends = useSignal(match?.action ?? '')
  const unattended = useSignal(choiceOf(when?.unattended))
  const outside = useSignal(choiceOf(when?.outside))
  const persona = useSignal(when?.persona ?? '')
  const repo = useSignal(when?.repo ?? '')
  const verdict = useSignal(rule?.verdict ?? 'hold')
  const message = useSignal(rule?.message ?? '')
  const written = (): SafetyRule => {
    const turns = given({
      unattended: valueOf(unattended.value),
      outside: valueOf(outside.value),
      ...{ persona: persona.value.trim(), repo: repo.value.trim() },
    })
    return {
      ...{ id: id.value.trim(), label: label.value.trim(), target: target.value, verdict: verdict.value },
      match: {
        ...given({
          class: classes.find(each => each.class === ofClass.value)?.class,
          ...{ regex: regex.value, glob: glob.value, action: sends.value.trim() },
        }),
      } as SafetyRule['match'],
      ...(turns && { when: turns as NonNullable<SafetyRule['when']> }),
      ...(message.value.trim() && { message: message.value.trim() }),
      ...(rule?.enabled === false && { enabled: false }),
    }
  }
  return (
    <DialogForm
      title={rule ? 'Change the rule' : 'Add a rule'}
      verb={rule ? 'Change' : 'Add'}
      close={close}
      work={() => {
        const rules = rule
          ? policy.rules.map(each => (each.id === rule.id ? written() : each))
          : [written(), ...policy.rules]
        return savePolicy({ ...policy, rules }, revision)
      }}
    >
      {!rule && <TextField label="Id" required value={id} placeholder="no-deploys" />}
      <TextField label="What it is for" required value={label} maxLength={120} />
      <ChoiceField label="About" value={target} choices={TARGET_CHOICES} />
      <ChoiceField
        label="Of the class"
        value={ofClass}
        choices={[['', 'Any'], ...classes.map(each => [each.class, each.label] as const)]}
      />
      <TextField label="Text that fits (RE2)" value={regex} />
      <TextField label="Path, host or tool that fits (glob)" value={glob} />
      {target.value === 'action' && (
        <TextField label="Send or post that fits" value={sends} placeholder="chat.message.send or chat.*" />
      )}
      <fieldset class="plain-fieldset stack">
        <legend>Only in turns</legend>
        <ChoiceField label="Watched" value={unattended} choices={UNATTENDED_CHOICES} />
        <ChoiceField label="Content from outside" value={outside} choices={OUTSIDE_CHOICES} />
        <TextField label="Of the persona" value={persona} maxLength={60} />
        <TextField label="In the repository" value={repo} maxLength={300} />
      </fieldset>
      <ChoiceField label="Verdict" value={verdict} choices={VERDICT_CHOICES} />
      <TextField label="What the agent is told" value={message} />
    </DialogForm>
  )
}
