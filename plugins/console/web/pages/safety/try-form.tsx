import { useSignal } from '@preact/signals'
import type { SafetyDecision } from '../../../../safety/contract.js'
import { askDaemon } from '../../data/api.js'
import { useAction } from '../../ui/action.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'
import { VERDICTS } from './words.js'

/** How a command would be decided; nothing is done. */
export const TryForm = () => {
  const text = useSignal('')
  const unattended = useSignal(false)
  const found = useSignal<SafetyDecision | undefined>(undefined)
  const action = useAction()
  return (
    <section aria-labelledby="try-heading">
      <h2 id="try-heading">Try a command</h2>
      <form
        class="stack"
        onSubmit={event => {
          event.preventDefault()
          void action.run(async () => {
            const subject = { kind: 'command' as const, text: text.value }
            const context = { unattended: unattended.value }
            found.value = (await askDaemon('POST /safety/test', { subject, context })).decision
          })
        }}
      >
        <TextField label="Command" required value={text} placeholder="git push --force" />
        <CheckField label="While nobody watches" value={unattended} />
        <div>
          <button class="button" type="submit" disabled={action.busy}>
            Decide
          </button>
        </div>
      </form>
      <FaultLine fault={action.fault} />
      <p role="status" dir="auto">
        {found.value && (
          <>
            <span class={`tag ${VERDICTS[found.value.verdict][0]}`}>{VERDICTS[found.value.verdict][1]}</span>{' '}
            {visibleName(found.value.reason)}
            {found.value.classes.length > 0 && ` (${found.value.classes.join(', ')})`}
          </>
        )}
      </p>
    </section>
  )
}
