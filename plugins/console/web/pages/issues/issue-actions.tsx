import { useSignal } from '@preact/signals'
import type { Issue, IssueState } from '../../../../issues/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { reaches } from '../registry.js'

/** Reads all issues again. */
export const issuesChanged = (): void => void refetch(new Set(['issues']))

const FixForm = ({ issue: { id, title }, close }: { issue: Issue; close: () => void }) => {
  const note = useSignal('')
  const resolves = useSignal(true)
  return (
    <DialogForm
      title={`Fix: ${visibleName(title)}`}
      verb="Start"
      close={close}
      work={async () => {
        const words = note.value.trim()
        const { conversationId } = await askDaemon('POST /issues/{id}/fix', {
          ...{ id, resolveOnLand: resolves.value },
          ...(words && { note: words }),
        })
        issuesChanged()
        location.hash = fragmentOf('c', conversationId)
      }}
    >
      <p>An agent works on it in a private copy. It reads the report as words from outside.</p>
      <TextField label="What else it should know" rows={3} value={note} />
      <CheckField label="Resolve the issue in the next release once the work lands" value={resolves} />
    </DialogForm>
  )
}

const IgnoreForm = ({ issue: { id, title }, close }: { issue: Issue; close: () => void }) => {
  const days = useSignal('')
  const events = useSignal('')
  return (
    <DialogForm
      title={`Ignore: ${visibleName(title)}`}
      verb="Ignore"
      close={close}
      work={async () => {
        await askDaemon('POST /issues/state', {
          ...{ ids: [id], state: 'ignored' },
          ...(days.value && { until: Date.now() + Number(days.value) * 24 * 3_600_000 }),
          ...(events.value && { untilCount: Number(events.value) }),
        })
        issuesChanged()
      }}
    >
      <p>It stays in the list of ignored issues. Left empty, it opens only by hand.</p>
      <TextField label="Until so many days have passed" type="number" min="1" max="365" value={days} />
      <TextField label="Until so many more events came" type="number" min="1" max="100000" value={events} />
    </DialogForm>
  )
}

/** What a person can do about an issue. */
export const IssueActions = ({ issue }: { issue: Issue }) => {
  const action = useAction()
  const { id, title, state } = issue
  const move = (to: IssueState, when?: 'now' | 'next-release') => async () => {
    await askDaemon('POST /issues/state', { ids: [id], state: to, ...(when && { in: when }) })
    issuesChanged()
  }
  if (!reaches(person.value?.role, 'collaborator')) return null
  return (
    <div class="row">
      <FormButton label="Fix" about={title} primary form={close => <FixForm issue={issue} close={close} />} />
      {state === 'open' ? (
        <>
          <ActionButton action={action} about={visibleName(title)} work={move('resolved', 'now')}>
            Resolve
          </ActionButton>
          <ActionButton action={action} about={visibleName(title)} work={move('resolved', 'next-release')}>
            Resolve in the next release
          </ActionButton>
          <FormButton label="Ignore" about={title} form={close => <IgnoreForm issue={issue} close={close} />} />
        </>
      ) : (
        <ActionButton action={action} about={visibleName(title)} work={move('open')}>
          Open again
        </ActionButton>
      )}
      <FaultLine fault={action.fault} />
    </div>
  )
}
