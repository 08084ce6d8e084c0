import { useSignal } from '@preact/signals'
import type { SkippedSecret } from '../../../../secrets/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm, DoneDialog } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'

const WHY: { readonly [reason in SkippedSecret['reason']]: string } = {
  exists: 'a value of this name is stored already',
  empty: 'it has no value',
  'bad-name': 'its name has other characters than letters, digits and underscores',
  'not-chosen': 'it was not chosen',
}

/** Stores the values of a text in the form of a `.env` file: all of them, or none. */
export const SecretImportForm = ({ close }: { close: () => void }) => {
  const text = useSignal('')
  const replace = useSignal(false)
  const done = useSignal<{ added: string[]; replaced: string[]; skipped: SkippedSecret[] } | undefined>(undefined)
  if (done.value) {
    const { added, replaced, skipped } = done.value
    return (
      <DoneDialog title="Imported" close={close}>
        <p role="status">Stored: {[...added, ...replaced].map(visibleName).join(', ') || 'nothing'}.</p>
        {skipped.length > 0 && (
          <ul>
            {skipped.map(({ key, reason }) => (
              <li key={key}>
                <span class="mono">{visibleName(key)}</span> was left out: {WHY[reason] ?? reason}.
              </li>
            ))}
          </ul>
        )}
      </DoneDialog>
    )
  }
  return (
    <DialogForm
      title="Import secrets"
      close={close}
      verb="Import"
      work={async () => {
        done.value = await askDaemon('POST /secrets/import', { text: text.value, replace: replace.value })
        refetch(new Set(['secrets']))
        return 'stays'
      }}
    >
      <TextField
        label="Text"
        rows={6}
        required
        value={text}
        placeholder="NAME=value"
        hint="As in a .env file: one NAME=value a line."
      />
      <CheckField label="Replace values that are stored already" value={replace} />
    </DialogForm>
  )
}
