import { useSignal } from '@preact/signals'
import { askDaemon } from '../../data/api.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DoneDialog } from '../../ui/dialog.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'

/** The address of a gate, and its token when somebody asks for it. */
export const GateDialog = ({ id, name, close }: { id: string; name: string; close: () => void }) => {
  const action = useAction()
  const shown = useSignal<{ url: string; token: string } | undefined>(undefined)
  const used = useSignal('')
  const reveal = async () => {
    const { usedToday, dailyMax, ...gate } = await askDaemon('GET /workflows/{id}/gate', { id })
    shown.value = gate
    used.value = `${usedToday} of ${dailyMax} runs`
  }
  return (
    <DoneDialog title={`Gate of ${visibleName(name)}`} close={close}>
      {shown.value === undefined ? (
        <p class="quiet">A pipeline starts it with a POST to its address, with its token, and gets the verdict.</p>
      ) : (
        <Pairs
          mono
          rows={[
            ['Address', shown.value.url],
            ['Token', shown.value.token],
            ['Today', used.value],
          ]}
        />
      )}
      <div class="row">
        <ActionButton action={action} work={reveal}>
          Show the token
        </ActionButton>
        <ActionButton
          action={action}
          work={async () => {
            shown.value = await askDaemon('POST /workflows/{id}/gate/rotate', { id })
          }}
        >
          Make a new token
        </ActionButton>
      </div>
      <p class="quiet small">The old token stops working at once when you make a new one.</p>
      <FaultLine fault={action.fault} />
    </DoneDialog>
  )
}
