import { useSignal } from '@preact/signals'
import type { SafetyPolicy, SafetyReplay } from '../../../../safety/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'
import { FaultLine, Item } from '../../ui/page.js'
import { savePolicy, type PolicyProps } from './policy.js'
import { RulesSection } from './rules-section.js'
import { VERDICT_CHOICES, VERDICTS } from './words.js'

const Classes = ({ state: { classes } }: Pick<PolicyProps, 'state'>) => (
  <section aria-labelledby="classes-heading">
    <h2 id="classes-heading">Commands by their class</h2>
    <p class="quiet">
      <a href={fragmentOf('settings')}>Settings</a> hold or deny a class with commandRules; no rule makes an exception
      from a denial there.
    </p>
    <ul class="items">
      {classes.map(({ class: name, label, setting, examples }) => (
        <Item
          key={name}
          title={label}
          state={setting ? VERDICTS[setting] : undefined}
          detail={<code>{examples.slice(0, 2).join(' · ')}</code>}
        />
      ))}
    </ul>
  </section>
)

const replaySentence = ({ replayed, changes, counts, unjudged }: SafetyReplay): string => {
  const differ = counts.reduce((sum, { was, now, count }) => sum + (was === now ? 0 : count), 0)
  const first = changes[0] && `, the newest: ${changes[0].subject.text.slice(0, 80)} (${changes[0].now})`
  const open = unjudged > 0 ? ` The judge would be asked about ${countText(unjudged)}.` : ''
  return `Of ${countText(replayed)} decided before, ${countText(differ)} would differ${first ?? ''}.${open}`
}

/** The owner's words, the judge, and whether secrets are held after content from outside. */
const Words = ({ state, maintains }: PolicyProps) => {
  const { policy, revision, judge, reviewed } = state
  const prose = useSignal(policy.prose)
  const mode = useSignal(policy.judge.mode)
  const onFailure = useSignal(policy.judge.onFailure)
  const outsideFloor = useSignal(policy.outsideFloor)
  const said = useSignal('')
  const action = useAction()
  const draft = (): SafetyPolicy => ({
    ...policy,
    prose: prose.value,
    judge: { ...policy.judge, mode: mode.value, onFailure: onFailure.value },
    outsideFloor: outsideFloor.value,
  })
  const run = (work: () => Promise<unknown>) => {
    said.value = ''
    void action.run(work)
  }
  if (!maintains)
    return (
      <section aria-labelledby="words-heading">
        <h2 id="words-heading">Policy</h2>
        <p class="prose" dir="auto">
          {policy.prose === '' ? 'No policy is written.' : visibleName(policy.prose)}
        </p>
      </section>
    )
  return (
    <section aria-labelledby="words-heading">
      <h2 id="words-heading">Policy</h2>
      <form
        class="stack"
        onSubmit={event => {
          event.preventDefault()
          run(() => savePolicy(draft(), revision))
        }}
      >
        <TextField label="In your own words" value={prose} rows={5} />
        <ChoiceField
          label="Judge"
          value={mode}
          choices={[
            ['off', 'Off: rules and settings decide'],
            ['shadow', 'Looks on: judges, decides nothing'],
            ['on', 'On: may be stricter than the rules'],
          ]}
          hint={judge.available ? `${judge.model} judges.` : (judge.reason ?? 'No model can judge now.')}
        />
        <ChoiceField label="When no model answers" value={onFailure} choices={VERDICT_CHOICES} />
        <CheckField label="Hold reads of secrets in turns that read content from outside" value={outsideFloor} />
        <div class="row">
          <button class="button primary" type="submit" disabled={action.busy}>
            Save
          </button>
          <button
            class="button"
            type="button"
            disabled={action.busy}
            onClick={() =>
              run(async () => {
                said.value = replaySentence(await askDaemon('POST /safety/replay', { policy: draft() }))
              })
            }
          >
            What would differ
          </button>
        </div>
      </form>
      <FaultLine fault={action.fault} />
      <p role="status" dir="auto">
        {said.value && visibleName(said.value)}
      </p>
      {reviewed.right + reviewed.wrong > 0 && (
        <p class="quiet small">
          People agreed with {countText(reviewed.right)} verdicts, and did not with {countText(reviewed.wrong)}.
        </p>
      )}
    </section>
  )
}

/** The policy, its rules, and the classes of commands. */
export const PolicyTab = (props: PolicyProps) => (
  <>
    {/* What is being written stays while rules change, and goes when somebody else wrote. */}
    <Words key={JSON.stringify({ ...props.state.policy, rules: [] })} {...props} />
    <RulesSection {...props} />
    <Classes {...props} />
  </>
)
