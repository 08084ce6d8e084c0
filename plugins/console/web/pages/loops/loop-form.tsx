import { useSignal } from '@preact/signals'
import type { LoopCheck, LoopDesign, LoopShape } from '../../../../loops/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'

const CONTEXTS = [
  ['continue', 'goes on in the same session'],
  ['fresh', 'begins a new session, with a memory file'],
] as const

const kept = (checks: readonly LoopCheck[], kind: LoopCheck['kind']): string =>
  checks
    .flatMap(check => (check.kind !== kind ? [] : check.kind === 'command' ? [check.command] : [check.rubric]))
    .join('\n')

/** The fields of a shape, and what they say now. */
const useShape = (given?: LoopShape) => {
  const context = useSignal<LoopShape['context']>(given?.context ?? 'continue')
  const commands = useSignal(given ? kept(given.checks, 'command') : '')
  const rubric = useSignal(given ? kept(given.checks, 'judge') : '')
  const claims = useSignal(given ? given.output.kind !== 'none' : false)
  const rounds = useSignal(String(given?.maxIterations ?? 10))
  const spend = useSignal(given?.maxSpendUsd === undefined ? '' : String(given.maxSpendUsd))
  const stall = useSignal(String(given?.stallLimit ?? 3))
  const read = (): LoopShape => ({
    context: context.value,
    output: !claims.value ? { kind: 'none' } : given?.output.kind === 'json' ? given.output : { kind: 'claim' },
    checks: [
      ...commands.value
        .split('\n')
        .filter(line => line.trim())
        .map(command => timedAs(given, command.trim())),
      ...(rubric.value.trim() ? [{ kind: 'judge' as const, rubric: rubric.value.trim() }] : []),
    ],
    maxIterations: Number(rounds.value),
    stallLimit: Number(stall.value),
    ...(spend.value && { maxSpendUsd: Number(spend.value) }),
  })
  const fields = (
    <>
      <TextField
        label="Commands that must succeed"
        rows={3}
        value={commands}
        hint="One a line, run in the tree after each round: all must exit with 0."
      />
      <TextField label="What another model must find true" rows={2} value={rubric} />
      <CheckField label="The agent also has to say that it is done" value={claims} />
      <ChoiceField label="Each round" value={context} choices={CONTEXTS} />
      <TextField label="At most so many rounds" type="number" min="1" max="50" required value={rounds} />
      <TextField label="At most so many US dollars" type="number" min="0.01" step="0.01" value={spend} />
      <TextField
        label="Give up after so many rounds without a change"
        type="number"
        min="1"
        max="20"
        required
        value={stall}
      />
    </>
  )
  return { read, fields }
}

/** A command as it is, with the time that a design gives it. */
const timedAs = (given: LoopShape | undefined, command: string): LoopCheck =>
  given?.checks.find(check => check.kind === 'command' && check.command === command) ?? { kind: 'command', command }

/** Starts a loop, from a design if one is given. */
export const LoopForm = ({ close, design }: { close: () => void; design?: LoopDesign }) => {
  const goal = useSignal('')
  const prompt = useSignal(design?.prompt ?? '')
  const isolated = useSignal(true)
  const { read, fields } = useShape(design)
  const start = async () => {
    const conversationId = `l-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 6)}`
    const words = { goal: goal.value, prompt: prompt.value || goal.value, isolated: isolated.value }
    await askDaemon('POST /loops', { conversationId, ...words, ...read() })
    refetch(new Set(['loops']))
    location.hash = fragmentOf('loops', conversationId)
  }
  return (
    <DialogForm
      title={design ? `Start ${visibleName(design.name)}` : 'Start a loop'}
      close={close}
      verb="Start"
      work={start}
    >
      <TextField label="Goal" required rows={2} value={goal} />
      <TextField label="What the agent is asked in each round" rows={4} value={prompt} hint="Left out: the goal." />
      {fields}
      <CheckField label="Work in a private copy" value={isolated} />
    </DialogForm>
  )
}

/** Writes a design. */
export const DesignForm = ({ close, design }: { close: () => void; design?: LoopDesign }) => {
  const id = useSignal(design?.id ?? '')
  const name = useSignal(design?.name ?? '')
  const description = useSignal(design?.description ?? '')
  const prompt = useSignal(design?.prompt ?? '')
  const { read, fields } = useShape(design)
  const save = async () => {
    await askDaemon('POST /loops/designs', {
      design: {
        ...{ id: id.value, name: name.value, ...read() },
        ...(description.value && { description: description.value }),
        ...(prompt.value && { prompt: prompt.value }),
      },
      create: design === undefined,
    })
    refetch(new Set(['loops']))
  }
  return (
    <DialogForm
      title={design ? `Change ${visibleName(design.name)}` : 'Add a design'}
      close={close}
      verb="Save"
      work={save}
    >
      {!design && (
        <TextField
          label="Id"
          required
          value={id}
          pattern="[a-zA-Z0-9][a-zA-Z0-9_\-]*"
          hint="Letters, digits, hyphens, underscores."
        />
      )}
      <TextField label="Name" required value={name} maxLength={60} />
      <TextField label="Description" value={description} maxLength={280} />
      <TextField label="What the agent is asked in each round" rows={4} value={prompt} />
      {fields}
    </DialogForm>
  )
}
