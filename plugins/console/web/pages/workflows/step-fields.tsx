import { signal, type Signal } from '@preact/signals'
import type { LoopCheck, OutputField, OutputSpec } from '../../../../loops/contract.js'
import type { WorkflowStep } from '../../../../workflows/contract.js'
import { ChoiceField, TextField } from '../../ui/fields.js'

/** A step as it is being written. */
export interface StepDraft {
  readonly key: number
  /** The step that is changed: what the form does not show stays. */
  readonly given?: WorkflowStep
  readonly id: Signal<string>
  readonly title: Signal<string>
  readonly goal: Signal<string>
  readonly prompt: Signal<string>
  readonly needs: Signal<string>
  readonly handoff: Signal<WorkflowStep['handoff']>
  readonly context: Signal<WorkflowStep['context']>
  readonly output: Signal<OutputSpec['kind']>
  readonly fields: Signal<string>
  readonly commands: Signal<string>
  readonly rubric: Signal<string>
}

const HANDOFFS = [
  ['fresh', 'in a conversation of its own'],
  ['continue', 'in the conversation of the step that it needs'],
] as const
const CONTEXTS = [
  ['continue', 'goes on in the same session'],
  ['fresh', 'begins a new session, with a memory file'],
] as const
const OUTPUTS = [
  ['none', 'nothing: it is done with its turn, or when its checks hold'],
  ['claim', 'whether it is done, and why'],
  ['json', 'the same, and fields'],
] as const
const FIELD = /^([a-zA-Z_][a-zA-Z0-9_]*)(\?)?\s+(string\[\]|string|number|boolean)\s+(\S.*)$/

let keys = 0

/** The draft of a new or a known step. */
export const stepDraft = (given?: WorkflowStep): StepDraft => ({
  key: keys++,
  ...(given && { given }),
  id: signal(given?.id ?? ''),
  title: signal(given?.title ?? ''),
  goal: signal(given?.goal ?? ''),
  prompt: signal(given?.prompt ?? ''),
  needs: signal(given?.needs.join(', ') ?? ''),
  handoff: signal(given?.handoff ?? 'fresh'),
  context: signal(given?.context ?? 'continue'),
  output: signal(given?.output.kind ?? 'none'),
  fields: signal(given?.output.kind === 'json' ? given.output.fields.map(lineOf).join('\n') : ''),
  commands: signal(commandsOf(given).join('\n')),
  rubric: signal(rubricOf(given)),
})

/** The step that a draft says. */
export const stepOfDraft = (draft: StepDraft): WorkflowStep => {
  const { goal: _goal, prompt: _prompt, ...kept } = draft.given ?? ({} as Partial<WorkflowStep>)
  const [goal, prompt] = [draft.goal.value.trim(), draft.prompt.value.trim()]
  return {
    ...kept,
    ...{ id: draft.id.value, title: draft.title.value, handoff: draft.handoff.value, context: draft.context.value },
    ...(goal && { goal }),
    ...(prompt && { prompt }),
    needs: draft.needs.value.split(/[\s,]+/).filter(Boolean),
    output: outputOf(draft),
    checks: checksOf(draft),
  }
}

const lineOf = ({ name, type, description, required }: OutputField): string =>
  `${name}${required ? '' : '?'} ${type} ${description.replaceAll('\n', ' ')}`

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)

const outputOf = ({ output, fields, id }: StepDraft): OutputSpec =>
  output.value === 'json'
    ? { kind: 'json', fields: linesOf(fields.value).map(line => fieldOf(line, id.value)) }
    : { kind: output.value }

const fieldOf = (line: string, step: string): OutputField => {
  const [, name, optional, type, description] = FIELD.exec(line) ?? []
  if (name === undefined || description === undefined)
    throw new Error(`step ${step}: expected a field as “name type description”, found “${line.slice(0, 60)}”`)
  // The pattern admits these types alone.
  return { name, type: type as OutputField['type'], description, required: optional === undefined }
}

const commandsOf = (step?: WorkflowStep): string[] =>
  step?.checks.flatMap(check => (check.kind === 'command' ? [check.command] : [])) ?? []

const rubricOf = (step?: WorkflowStep): string =>
  step?.checks.flatMap(check => (check.kind === 'judge' ? [check.rubric] : [])).join('\n') ?? ''

/** The checks: one that stays as it was keeps its time or its model. */
const checksOf = ({ given, commands, rubric }: StepDraft): LoopCheck[] => {
  const known = given?.checks ?? []
  const text = rubric.value.trim()
  const judges = known.filter(({ kind }) => kind === 'judge')
  const kept = text === rubricOf(given) ? judges : [{ kind: 'judge' as const, rubric: text }]
  return [
    ...linesOf(commands.value).map(
      command =>
        known.find(check => check.kind === 'command' && check.command === command) ?? {
          kind: 'command' as const,
          command,
        },
    ),
    ...(text ? kept : []),
  ]
}

/** The fields of one step. */
export const StepFields = ({ draft, remove }: { draft: StepDraft; remove?: () => void }) => {
  const { id, title, goal, prompt, needs, handoff, context, output, fields, commands, rubric } = draft
  return (
    <fieldset class="plain-fieldset stack">
      <legend>Step {id.value || 'without an id'}</legend>
      <TextField
        label="Id of the step"
        required
        value={id}
        pattern="[a-z0-9][a-z0-9\-]*"
        maxLength={24}
        hint="Small letters, digits, hyphens."
      />
      <TextField label="Title of the step" required value={title} maxLength={60} />
      <TextField label="What the agent is asked" rows={3} value={prompt} hint="Left out: the request of the run." />
      <TextField label="Its goal" rows={2} value={goal} hint="Left out: the request of the run." />
      <TextField label="Steps that must be done first" value={needs} hint="Their ids, with commas." />
      <ChoiceField label="It works" value={handoff} choices={HANDOFFS} />
      <ChoiceField label="The agent writes" value={output} choices={OUTPUTS} />
      {output.value === 'json' && (
        <TextField
          label="Fields that it writes"
          required
          rows={2}
          value={fields}
          hint="One a line: name (with ?: optional), type (string, number, boolean or string[]), what it means."
        />
      )}
      <TextField
        label="Commands that must succeed"
        rows={2}
        value={commands}
        hint="One a line, run in its tree after each round: all must exit with 0."
      />
      <TextField label="What another model must find true" rows={2} value={rubric} />
      <ChoiceField label="Each round" value={context} choices={CONTEXTS} />
      {remove && (
        <div class="row">
          <button class="button" type="button" onClick={remove}>
            Remove this step
            <span class="visually-hidden"> {id.value}</span>
          </button>
        </div>
      )}
    </fieldset>
  )
}
