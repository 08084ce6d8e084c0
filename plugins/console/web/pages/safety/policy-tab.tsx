import { useSignal } from '@preact/signals'
import type { SafetyPolicy, SafetyReplay, SafetyRule, SafetyState } from '../../../../safety/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'
import { FaultLine, Item } from '../../ui/page.js'
import { VERDICT_CHOICES, VERDICTS } from './words.js'

const save = async (policy: SafetyPolicy, revision: string): Promise<void> => {
  await askDaemon('POST /safety', { policy, revision })
  refetch(new Set(['safety']))
}

interface TabProps {
  readonly state: SafetyState
  readonly maintains: boolean
}

const matchOf = ({ target, match }: SafetyRule): string =>
  `${target}: ${Object.entries(match)
    .map(([part, value]) => `${part} ${value}`)
    .join(', ')}`

const RuleForm = ({ state, close }: { state: SafetyState; close: () => void }) => {
  const { policy, revision, classes } = state
  const id = useSignal('')
  const label = useSignal('')
  const target = useSignal<SafetyRule['target']>('command')
  const ofClass = useSignal('')
  const regex = useSignal('')
  const glob = useSignal('')
  const verdict = useSignal<SafetyRule['verdict']>('hold')
  const message = useSignal('')
  return (
    <DialogForm
      title="Add a rule"
      verb="Add"
      close={close}
      work={() => {
        const found = classes.find(each => each.class === ofClass.value)?.class
        const match = {
          ...(found && { class: found }),
          ...(regex.value && { regex: regex.value }),
          ...(glob.value && { glob: glob.value }),
        }
        const says = message.value.trim() && { message: message.value.trim() }
        const rule = { id: id.value.trim(), label: label.value.trim(), target: target.value, match }
        return save({ ...policy, rules: [{ ...rule, verdict: verdict.value, ...says }, ...policy.rules] }, revision)
      }}
    >
      <TextField label="Id" required value={id} placeholder="no-deploys" />
      <TextField label="What it is for" required value={label} />
      <ChoiceField
        label="About"
        value={target}
        choices={[
          ['command', 'Commands'],
          ['script', 'Scripts'],
          ['tool', 'Tools'],
          ['path', 'Paths'],
          ['host', 'Hosts'],
          ['action', 'Sends and posts'],
        ]}
      />
      <ChoiceField
        label="Of the class"
        value={ofClass}
        choices={[['', 'Any'], ...classes.map(each => [each.class, each.label] as const)]}
      />
      <TextField label="Text that fits (RE2)" value={regex} />
      <TextField label="Path, host or tool that fits (glob)" value={glob} />
      <ChoiceField label="Verdict" value={verdict} choices={VERDICT_CHOICES} />
      <TextField label="What the agent is told" value={message} />
    </DialogForm>
  )
}

const Rules = ({ state, maintains }: TabProps) => {
  const { policy, revision } = state
  return (
    <section aria-labelledby="rules-heading">
      <div class="row apart">
        <h2 id="rules-heading">Rules</h2>
        {maintains && <FormButton label="Add a rule" form={close => <RuleForm state={state} close={close} />} />}
      </div>
      {policy.rules.length === 0 && <p class="quiet">There is no rule. The first that fits decides.</p>}
      <ul class="items">
        {policy.rules.map(rule => (
          <Item
            key={rule.id}
            title={visibleName(rule.label)}
            state={rule.enabled === false ? ['', 'Off'] : VERDICTS[rule.verdict]}
            detail={visibleName(matchOf(rule))}
          >
            {maintains && (
              <AskButton
                label="Remove"
                about={rule.label}
                title={`Remove the rule ${visibleName(rule.label)}?`}
                work={() => save({ ...policy, rules: policy.rules.filter(({ id }) => id !== rule.id) }, revision)}
              >
                <p>What it held or denied is then decided by what follows it.</p>
              </AskButton>
            )}
          </Item>
        ))}
      </ul>
    </section>
  )
}

const Classes = ({ state: { classes } }: Pick<TabProps, 'state'>) => (
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
const Words = ({ state, maintains }: TabProps) => {
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
          run(() => save(draft(), revision))
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
export const PolicyTab = (props: TabProps) => (
  <>
    <Words {...props} />
    <Rules {...props} />
    <Classes {...props} />
  </>
)
