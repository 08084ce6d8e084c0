import { useLayoutEffect, useRef } from 'preact/hooks'
import type { SafetyRule } from '../../../../safety/contract.js'
import { useAction, type ActionState } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine, Item } from '../../ui/page.js'
import { savePolicy, type PolicyProps } from './policy.js'
import { RuleForm } from './rule-form.js'
import { OUTSIDE_CHOICES, UNATTENDED_CHOICES, VERDICTS } from './words.js'

const wordsOf = (choices: typeof UNATTENDED_CHOICES, holds: boolean | undefined): string | undefined =>
  holds === undefined ? undefined : choices.find(([choice]) => choice === (holds ? 'yes' : 'no'))?.[1].toLowerCase()

/** What a rule is about, and in which turns. */
const sentenceOf = ({ target, match, when }: SafetyRule): string => {
  const fits = Object.entries(match).map(([part, value]) => `${part} ${value}`)
  const turns = [
    wordsOf(UNATTENDED_CHOICES, when?.unattended),
    wordsOf(OUTSIDE_CHOICES, when?.outside),
    when?.persona && `persona ${when.persona}`,
    when?.repo && `repository ${when.repo}`,
  ]
  return [`${target}: ${fits.join(', ')}`, ...turns.filter(Boolean)].join(' · ')
}

/** Rules in which one has moved by a place. */
const moved = (rules: readonly SafetyRule[], at: number, by: 1 | -1): SafetyRule[] => {
  const next = rules.toSpliced(at, 1)
  next.splice(at + by, 0, rules[at]!)
  return next
}

interface RuleItemProps {
  readonly state: PolicyProps['state']
  readonly rule: SafetyRule
  readonly at: number
  readonly action: ActionState
  readonly move: (by: 1 | -1) => Promise<void>
}

const RuleActions = ({ state, rule, at, action, move }: RuleItemProps) => {
  const { policy, revision } = state
  const label = visibleName(rule.label)
  const off = rule.enabled === false
  return (
    <>
      <ActionButton
        action={action}
        data-key={`rule ${rule.id} -1`}
        disabled={at === 0}
        about={label}
        work={() => move(-1)}
      >
        Move up
      </ActionButton>
      <ActionButton
        action={action}
        data-key={`rule ${rule.id} 1`}
        disabled={at === policy.rules.length - 1}
        about={label}
        work={() => move(1)}
      >
        Move down
      </ActionButton>
      <FormButton label="Change" about={label} form={close => <RuleForm state={state} rule={rule} close={close} />} />
      <ActionButton
        action={action}
        about={label}
        work={() =>
          savePolicy(
            { ...policy, rules: policy.rules.map(each => (each.id === rule.id ? { ...rule, enabled: off } : each)) },
            revision,
          )
        }
      >
        {off ? 'Switch on' : 'Switch off'}
      </ActionButton>
      <AskButton
        label="Remove"
        about={label}
        title={`Remove the rule ${label}?`}
        work={() => savePolicy({ ...policy, rules: policy.rules.filter(({ id }) => id !== rule.id) }, revision)}
      >
        <p>What it held or denied is then decided by what follows it.</p>
      </AskButton>
    </>
  )
}

/** The rules in the order in which they are asked. */
export const RulesSection = ({ state, maintains }: PolicyProps) => {
  const { policy, revision } = state
  const { rules } = policy
  const action = useAction()
  const pressed = useRef<{ readonly id: string; readonly by: 1 | -1; readonly revision: string } | undefined>(undefined)
  useLayoutEffect(() => {
    const last = pressed.current
    if (!last || action.busy || last.revision === revision) return
    pressed.current = undefined
    // The button was disabled while it worked; at an end of the list it still is.
    const button = (by: number) => document.querySelector<HTMLElement>(`[data-key="rule ${last.id} ${by}"]:enabled`)
    ;(button(last.by) ?? button(-last.by))?.focus()
  }, [revision, action.busy])
  const said = useRef('')
  return (
    <section aria-labelledby="rules-heading">
      <div class="row apart">
        <h2 id="rules-heading">Rules</h2>
        {maintains && <FormButton label="Add a rule" form={close => <RuleForm state={state} close={close} />} />}
      </div>
      <p class="quiet">{rules.length === 0 && 'There is no rule. '}The first that fits decides.</p>
      <ol class="items">
        {rules.map((rule, at) => (
          <Item
            key={rule.id}
            title={`${at + 1}. ${visibleName(rule.label)}`}
            state={rule.enabled === false ? ['', 'Off'] : VERDICTS[rule.verdict]}
            detail={visibleName(sentenceOf(rule))}
          >
            {maintains && (
              <RuleActions
                {...{ state, rule, at, action }}
                move={async by => {
                  pressed.current = { id: rule.id, by, revision }
                  await savePolicy({ ...policy, rules: moved(rules, at, by) }, revision)
                  said.current = `${visibleName(rule.label)} is number ${at + by + 1} of ${rules.length}.`
                }}
              />
            )}
          </Item>
        ))}
      </ol>
      <p class="visually-hidden" role="status">
        {said.current}
      </p>
      <FaultLine fault={action.fault} />
    </section>
  )
}
