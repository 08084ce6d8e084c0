import { useSignal } from '@preact/signals'
import type {
  Automation,
  AutomationCatalog,
  AutomationTrigger,
  GuardResult,
  WorkspaceEventName,
} from '../../../../automations/contract.js'
import { askDaemon, faultSentence } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField, useSettled } from '../../ui/fields.js'
import { momentOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const KINDS = [
  ['schedule', 'At times'],
  ['event', 'When its webhook is called'],
  ['workspace', 'After an event of the workspace'],
] as const
const MISSED = [
  ['once', 'the newest runs late, within an hour'],
  ['skip', 'none runs'],
  ['every', 'all run, one after the other'],
] as const

/** The next times of a schedule, or why it cannot be read. */
const NextTimes = ({ cron, timeZone }: { cron: string; timeZone: string }) => {
  const [settledCron, zone] = [useSettled(cron), useSettled(timeZone)]
  const preview = useQuery(`automation preview ${settledCron} ${zone}`, [], () =>
    askDaemon('POST /automations/preview', {
      trigger: { kind: 'schedule', cron: settledCron || '-', ...(zone && { timeZone: zone }) },
    }),
  )
  if (preview.error !== undefined && !preview.data) return <FaultLine fault={faultSentence(preview.error)} />
  const { words, nextRuns = [] } = preview.data ?? {}
  return (
    <div role="status" class="quiet small">
      {words !== undefined && <p>{visibleName(words)}</p>}
      {nextRuns.length > 0 && (
        <ol aria-label="Next times" class="plain-list">
          {nextRuns.map(at => (
            <li key={at}>{momentOf(at)}</li>
          ))}
        </ol>
      )}
    </div>
  )
}

/** Runs a guard as it is written now. */
const GuardTrial = ({ guard }: { guard: string }) => {
  const action = useAction()
  const result = useSignal<GuardResult | undefined>(undefined)
  const shown = result.value
  return (
    <div>
      <ActionButton
        action={action}
        disabled={guard === ''}
        work={async () => {
          const trigger = { kind: 'event' } as const
          result.value = (await askDaemon('POST /automations/preview', { trigger, guard, runGuard: true })).guard
        }}
      >
        Run the guard
      </ActionButton>
      {shown && (
        <p role="status" class="small" dir="auto">
          {shown.pass
            ? 'It passes.'
            : `It stops the fire${shown.exitCode === undefined ? '' : ` (${shown.exitCode})`}.`}{' '}
          {shown.detail !== undefined && visibleText(shown.detail)}
        </p>
      )}
      <FaultLine fault={action.fault} />
    </div>
  )
}

interface AutomationFormProps {
  readonly close: () => void
  readonly catalog: AutomationCatalog
  /** What it begins with. */
  readonly given?: Partial<Automation>
  /** Its id cannot be changed. */
  readonly edits?: boolean
}

/** Writes an automation whole. */
export const AutomationForm = ({ close, catalog, given = {}, edits = false }: AutomationFormProps) => {
  const { trigger: before } = given
  const schedule = before?.kind === 'schedule' ? before : undefined
  const listener = before?.kind === 'listener' ? before : undefined
  const { sources, workspaceEvents } = catalog
  const kinds = [
    ...KINDS,
    // A chat of web pages has a page of its own.
    ...sources
      .filter(({ provider }) => provider !== 'webchat')
      .map(({ provider, label }) => [`from ${provider}`, `On a message: ${label}`] as const),
  ]
  const id = useSignal(given.id ?? '')
  const kind = useSignal<string>(listener ? `from ${listener.provider}` : (before?.kind ?? 'schedule'))
  const cron = useSignal(schedule?.cron ?? '0 9 * * 1-5')
  const timeZone = useSignal(schedule?.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone)
  const missed = useSignal<(typeof MISSED)[number][0]>(schedule?.missed ?? 'once')
  const event = useSignal<string>(before?.kind === 'workspace' ? before.event : 'agent.landed')
  const channel = useSignal(listener?.channelId ?? '')
  const prompt = useSignal(given.prompt ?? '')
  const guard = useSignal(given.guard ?? '')
  const approval = useSignal(given.requireApproval ?? false)
  const hold = useSignal(given.holdForSeconds === undefined ? '' : String(given.holdForSeconds))
  const actsAs = useSignal(given.actsAs ?? '')
  const enabled = useSignal(given.enabled ?? true)
  const source = sources.find(({ provider }) => kind.value === `from ${provider}`)
  const trigger = (): AutomationTrigger => {
    if (source) {
      const { channelId: _channel, ...rest } =
        listener?.provider === source.provider ? listener : ({ kind: 'listener', provider: source.provider } as const)
      return { ...rest, ...(channel.value && { channelId: channel.value }) }
    }
    if (kind.value === 'event') return { kind: 'event' }
    if (kind.value === 'workspace')
      return {
        ...(before?.kind === 'workspace' && before),
        kind: 'workspace',
        event: event.value as WorkspaceEventName,
      }
    const zone = timeZone.value && { timeZone: timeZone.value }
    return { kind: 'schedule', cron: cron.value, ...zone, missed: missed.value }
  }
  const save = async () => {
    const { guard: _guard, requireApproval: _approval, holdForSeconds: _hold, actsAs: _persona, ...rest } = given
    await askDaemon('POST /automations', {
      ...rest,
      ...{ id: id.value, trigger: trigger(), prompt: prompt.value, enabled: enabled.value },
      ...(guard.value && { guard: guard.value }),
      ...(approval.value && { requireApproval: true }),
      ...(hold.value && { holdForSeconds: Number(hold.value) }),
      ...(actsAs.value && { actsAs: actsAs.value }),
    })
    refetch(new Set(['automations']))
  }
  return (
    <DialogForm
      title={edits ? `Change ${visibleName(given.id ?? '')}` : 'Add an automation'}
      close={close}
      verb="Save"
      work={save}
    >
      {!edits && (
        <TextField
          label="Id"
          required
          value={id}
          pattern="[a-zA-Z0-9][a-zA-Z0-9_\-]*"
          hint="Letters, digits, hyphens, underscores."
        />
      )}
      <ChoiceField label="When it runs" value={kind} choices={kinds} />
      {kind.value === 'schedule' && (
        <>
          <TextField label="Cron expression" required value={cron} hint="minute hour day month weekday" />
          <TextField label="Time zone" value={timeZone} />
          <NextTimes cron={cron.value} timeZone={timeZone.value} />
          <ChoiceField label="Times missed while the sandbox is off" value={missed} choices={MISSED} />
        </>
      )}
      {kind.value === 'workspace' && (
        <ChoiceField
          label="Event"
          value={event}
          choices={workspaceEvents.map(({ value, label }) => [value, label] as const)}
        />
      )}
      {source && <TextField label={source.channel.label} value={channel} placeholder={source.channel.placeholder} />}
      <TextField label="What the agent is asked" required rows={5} value={prompt} />
      <TextField
        label="Guard"
        rows={2}
        value={guard}
        hint="A shell command in the workspace: it runs only if this ends with 0. AUTOMATION_PAYLOAD has the payload."
      />
      <GuardTrial guard={guard.value} />
      <TextField label="Persona" value={actsAs} />
      <CheckField label="Every fire waits for a person" value={approval} />
      <TextField label="Seconds to wait before it runs" type="number" min="1" max="86400" value={hold} />
      <CheckField label="On" value={enabled} />
    </DialogForm>
  )
}
