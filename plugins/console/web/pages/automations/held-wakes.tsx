import { useSignal } from '@preact/signals'
import type { HeldWake } from '../../../../automations/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, momentOf, visibleName } from '../../ui/format.js'
import { useCounted, type CountedProps } from '../../ui/lists/counted.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { TextBlock } from '../../ui/text-block.js'

const changed = () => refetch(new Set(['automations']))

const RejectForm = ({ wake, close }: { wake: HeldWake; close: () => void }) => {
  const reason = useSignal('')
  return (
    <DialogForm
      title={`Reject the fire of ${visibleName(wake.automationId)}?`}
      close={close}
      verb="Reject"
      danger
      work={async () => {
        const why = reason.value && { reason: reason.value }
        await askDaemon('POST /automations/pending/{id}/reject', { id: wake.id, ...why })
        changed()
      }}
    >
      <TextField label="Why" value={reason} />
    </DialogForm>
  )
}

const WakeRow = ({ wake }: { wake: HeldWake }) => {
  const { id, automationId, reason, payload, createdAt, autoRunAt, digest } = wake
  const action = useAction()
  return (
    <Item
      title={<a href={fragmentOf('automations', automationId)}>{visibleName(automationId)}</a>}
      detail={
        <>
          <div dir="auto">
            {visibleName(reason)} · {agoOf(createdAt)}
            {autoRunAt !== undefined && ` · runs by itself ${momentOf(autoRunAt)}`}
          </div>
          {payload && (
            <details>
              <summary>What it was started with</summary>
              <TextBlock class="mono" dir="auto" text={payload} />
            </details>
          )}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {reaches(person.value?.role, 'maintainer') && (
        <>
          <ActionButton
            action={action}
            work={async () => {
              await askDaemon('POST /automations/pending/{id}/approve', {
                id,
                ...(digest !== undefined && { expect: digest }),
              })
              changed()
            }}
            about={automationId}
          >
            Approve
          </ActionButton>
          <FormButton label="Reject" about={automationId} form={close => <RejectForm wake={wake} close={close} />} />
        </>
      )}
    </Item>
  )
}

/** The fires of automations that wait; nothing where none does. */
export const HeldWakeSection = (props: CountedProps) => {
  const list = useQuery('held wakes', ['automations'], () => askDaemon('GET /automations/pending'))
  useCounted(props, list.data?.approvals.length)
  return (
    <Loaded query={list}>
      {({ approvals }) =>
        approvals.length > 0 && (
          <section aria-labelledby="held-heading">
            <h2 id="held-heading">Automations that wait for a yes</h2>
            <ul class="items">
              {approvals.map(wake => (
                <WakeRow key={wake.id} wake={wake} />
              ))}
            </ul>
          </section>
        )
      }
    </Loaded>
  )
}
