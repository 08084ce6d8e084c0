import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Rule, RuleAction, RuleCondition, RuleMoment, RuleOutcome } from '../../../../settings/contract.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { linesIn } from './setting-fields.js'
import { MOMENTS } from './standing-rules.js'

type Kind = 'command' | 'instruct' | 'allow' | 'hold' | 'builtin'

/** What a rule can do at each moment. */
const KINDS: { readonly [moment in RuleMoment]: readonly (readonly [kind: Kind, label: string])[] } = {
  'turn.ending': [
    ['command', 'Run a command; what fails goes back to the agent'],
    ['instruct', 'Tell the agent something'],
    ['builtin', 'Run the checks of the packages it edited'],
  ],
  'push.starting': [
    ['command', 'Run a command; what fails stops the push'],
    ['hold', 'Hold the push'],
  ],
  'agent.finished': [
    ['allow', 'Let the work land'],
    ['hold', 'Hold the work'],
  ],
}

const kindOf = (action: RuleAction): Kind => (action.kind === 'verdict' ? action.verdict : action.kind)
const USUAL_SECONDS = '900'

interface StandingRuleFormProps {
  readonly rule?: Rule
  readonly revision: string
  readonly close: () => void
  readonly save: (rule: Rule, revision: string) => Promise<unknown>
}

/** Adds a rule, or changes one in its place. */
export const StandingRuleForm = ({ rule, revision, close, save }: StandingRuleFormProps) => {
  // A change that somebody else makes meanwhile is not written over; a new rule leaves it as it is.
  const opened = useRef(revision)
  const { action, when = {} } = rule ?? {}
  const id = useSignal(rule?.id ?? '')
  const label = useSignal(rule?.label ?? '')
  const moment = useSignal<RuleMoment>(rule?.moment ?? 'turn.ending')
  const kind = useSignal<Kind>(action ? kindOf(action) : 'command')
  const command = useSignal(action?.kind === 'command' ? action.command : '')
  const timeoutMs = action?.kind === 'command' ? action.timeoutMs : undefined
  const seconds = useSignal(timeoutMs === undefined ? '' : String(timeoutMs / 1000))
  const text = useSignal(action?.kind === 'instruct' ? action.text : '')
  const repo = useSignal(when.repo ?? '')
  const paths = useSignal(when.paths?.join('\n') ?? '')
  const clean = useSignal(when.outcome?.includes('clean') ?? false)
  const failed = useSignal(when.outcome?.includes('error') ?? false)
  const kinds = KINDS[moment.value]
  const chosen = kinds.find(([each]) => each === kind.value)?.[0] ?? kinds[0]![0]
  const written = (): Rule => {
    const globs = linesIn(paths.value)
    const outcome: RuleOutcome[] = [
      ...(clean.value ? ['clean' as const] : []),
      ...(failed.value ? ['error' as const] : []),
    ]
    const condition: RuleCondition = {
      ...(repo.value.trim() && { repo: repo.value.trim() }),
      ...(globs.length > 0 && { paths: globs }),
      ...(moment.value === 'agent.finished' && outcome.length > 0 && { outcome }),
    }
    return {
      ...{ id: id.value.trim(), label: label.value.trim(), moment: moment.value },
      ...(Object.keys(condition).length > 0 && { when: condition }),
      action: actionOf(chosen, { command: command.value, seconds: seconds.value, text: text.value }),
      ...(rule?.enabled === false && { enabled: false }),
    }
  }
  return (
    <DialogForm
      title={rule ? 'Change the rule' : 'Add a rule'}
      verb={rule ? 'Change' : 'Add'}
      close={close}
      work={() => save(written(), rule ? opened.current : revision)}
    >
      {!rule && <TextField label="Id" required value={id} placeholder="lint-before-push" />}
      <TextField label="What it is for" required value={label} maxLength={80} />
      <ChoiceField label="When" value={moment} choices={MOMENTS} />
      <ChoiceField label="What it does" value={kind} choices={kinds} />
      {chosen === 'command' && (
        <>
          <TextField label="Command" required value={command} maxLength={500} placeholder="npm run lint" />
          <TextField
            label="Seconds it may take"
            type="number"
            value={seconds}
            min="0.001"
            max="3600"
            step="any"
            placeholder={USUAL_SECONDS}
          />
        </>
      )}
      {chosen === 'instruct' && <TextField label="What the agent is told" required rows={4} value={text} />}
      <fieldset class="plain-fieldset stack">
        <legend>Only when</legend>
        <TextField label="This repository is affected" value={repo} hint="root is the workspace’s own." />
        <TextField
          label="A changed path fits one of these globs"
          rows={3}
          value={paths}
          hint="One a line, from the workspace root. To let work land, every path must fit."
        />
        {moment.value === 'agent.finished' && (
          <>
            <CheckField label="The checks of the turn passed" value={clean} />
            <CheckField label="A check of the turn did not pass" value={failed} />
          </>
        )}
      </fieldset>
    </DialogForm>
  )
}

const actionOf = (
  kind: Kind,
  { command, seconds, text }: { command: string; seconds: string; text: string },
): RuleAction => {
  switch (kind) {
    case 'command':
      return { kind, command, ...(seconds && { timeoutMs: Math.round(Number(seconds) * 1000) }) }
    case 'instruct':
      return { kind, text }
    case 'builtin':
      return { kind, name: 'verify-edits' }
    case 'allow':
    case 'hold':
      return { kind: 'verdict', verdict: kind }
  }
}
