import { useSignal } from '@preact/signals'
import type { Workflow, WorkflowGate } from '../../../../workflows/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { DialogForm } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { stepDraft, StepFields, stepOfDraft } from './step-fields.js'

const MOST_STEPS = 24

/** The fields of a gate, and what they say now. */
const useGate = (given?: WorkflowGate) => {
  const step = useSignal(given?.step ?? '')
  const field = useSignal(given?.field ?? '')
  const pass = useSignal(given?.pass.join('\n') ?? '')
  const daily = useSignal(given?.dailyMax === undefined ? '' : String(given.dailyMax))
  const read = (): WorkflowGate | undefined =>
    step.value === ''
      ? undefined
      : {
          ...{ step: step.value, field: field.value, pass: pass.value.split('\n').filter(Boolean) },
          ...(daily.value && { dailyMax: Number(daily.value) }),
        }
  const fields = (
    <fieldset class="plain-fieldset stack">
      <legend>Gate</legend>
      <TextField
        label="Id of the step that decides"
        value={step}
        hint="A pipeline runs the workflow and waits for the verdict of this step. Left out: no gate."
      />
      {step.value !== '' && (
        <>
          <TextField label="The field that decides" required value={field} />
          <TextField label="Values that pass" required rows={2} value={pass} hint="One a line." />
          <TextField
            label="At most so many runs a day"
            type="number"
            min="1"
            max="10000"
            value={daily}
            hint="Else 50."
          />
        </>
      )}
    </fieldset>
  )
  return { read, fields }
}

/** Writes a design. */
export const WorkflowForm = ({ close, workflow }: { close: () => void; workflow?: Workflow }) => {
  const id = useSignal(workflow?.id ?? '')
  const name = useSignal(workflow?.name ?? '')
  const description = useSignal(workflow?.description ?? '')
  const parallel = useSignal(String(workflow?.maxParallel ?? 2))
  const spend = useSignal(workflow?.maxSpendUsd === undefined ? '' : String(workflow.maxSpendUsd))
  const steps = useSignal(workflow ? workflow.steps.map(step => stepDraft(step)) : [stepDraft()])
  const gate = useGate(workflow?.gate)
  const save = async () => {
    const gated = gate.read()
    await askDaemon('POST /workflows', {
      workflow: {
        ...{ id: id.value, name: name.value, maxParallel: Number(parallel.value) },
        steps: steps.value.map(stepOfDraft),
        ...(description.value && { description: description.value }),
        ...(spend.value && { maxSpendUsd: Number(spend.value) }),
        ...(gated && { gate: gated }),
      },
      create: workflow === undefined,
    })
    refetch(new Set(['workflows']))
  }
  return (
    <DialogForm
      title={workflow ? `Change ${visibleName(workflow.name)}` : 'Add a workflow'}
      close={close}
      verb="Save"
      work={save}
    >
      {!workflow && (
        <TextField
          label="Id of the workflow"
          required
          value={id}
          pattern="[a-zA-Z0-9][a-zA-Z0-9_\-]*"
          maxLength={60}
          hint="Letters, digits, hyphens, underscores."
        />
      )}
      <TextField label="Name" required value={name} maxLength={80} />
      <TextField label="Description" value={description} maxLength={400} />
      {steps.value.map(draft => (
        <StepFields
          key={draft.key}
          draft={draft}
          {...(steps.value.length > 1 && {
            remove: () => {
              steps.value = steps.value.filter(({ key }) => key !== draft.key)
            },
          })}
        />
      ))}
      {steps.value.length < MOST_STEPS && (
        <div class="row">
          <button
            class="button"
            type="button"
            onClick={() => {
              steps.value = [...steps.value, stepDraft()]
            }}
          >
            Add a step
          </button>
        </div>
      )}
      <TextField label="Steps at once" type="number" min="1" max="8" required value={parallel} />
      <TextField label="At most so many US dollars" type="number" min="0.01" step="0.01" value={spend} />
      {gate.fields}
    </DialogForm>
  )
}

/** Starts a run of a design. */
export const RunForm = ({ close, workflow: { id, name, steps } }: { close: () => void; workflow: Workflow }) => {
  const request = useSignal('')
  const isNeeded = steps.some(({ goal, prompt }) => goal === undefined || prompt === undefined)
  const start = async () => {
    const { runId } = await askDaemon('POST /workflows/{id}/run', {
      id,
      ...(request.value && { request: request.value }),
    })
    refetch(new Set(['workflows']))
    location.hash = fragmentOf('workflows', runId)
  }
  return (
    <DialogForm title={`Run ${visibleName(name)}`} close={close} verb="Run" work={start}>
      <TextField label="Request" rows={4} required={isNeeded} value={request} hint="Every step is told it." />
    </DialogForm>
  )
}
