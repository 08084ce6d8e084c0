import { useSignal } from '@preact/signals'
import type { StoreState, VaultUnlock } from '../../../../secrets/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'

const UNLOCKS: { readonly [unlock in VaultUnlock]: string } = {
  file: 'A key file beside the data of the sandbox',
  keyring: 'The key ring of this system',
  passphrase: 'A passphrase, asked for after every start',
}

const StoreForm = ({ state, close }: { state: StoreState; close: () => void }) => {
  const choices = state.choices.flatMap(({ kind, unlock, available }) =>
    kind === 'vault' && unlock && available ? [[unlock, UNLOCKS[unlock]] as const] : [],
  )
  const unlock = useSignal<VaultUnlock>(state.locked ? (state.unlock ?? 'passphrase') : (choices[0]?.[0] ?? 'file'))
  const passphrase = useSignal('')
  return (
    <DialogForm
      title={state.locked ? 'Open the store' : 'Choose where secrets are kept'}
      close={close}
      verb={state.locked ? 'Open' : 'Choose'}
      work={async () => {
        await askDaemon('POST /secrets/store', {
          kind: 'vault',
          unlock: unlock.value,
          ...(unlock.value === 'passphrase' && { passphrase: passphrase.value }),
        })
        refetch(new Set(['secrets']))
      }}
    >
      {!state.locked && (
        <>
          <p>Values are encrypted. Stored values are encrypted again with the key you choose.</p>
          <ChoiceField label="Unlocked by" value={unlock} choices={choices} />
        </>
      )}
      {unlock.value === 'passphrase' && (
        <TextField label="Passphrase" type="password" required value={passphrase} hint="At least 12 characters." />
      )}
    </DialogForm>
  )
}

/** The store of secrets, and its problems. */
export const StoreNotice = ({ state, owner }: { state: StoreState; owner: boolean }) => {
  const { configured, locked, kind, unlock, path, reason, keys } = state
  const place = kind === 'dotenv' ? `In ${path ?? 'a .env file'}` : unlock ? UNLOCKS[unlock] : ''
  const form = (close: () => void) => <StoreForm state={state} close={close} />
  if (!configured)
    return (
      <div class="notice row apart">
        <span>The first value makes an encrypted store, opened by a key file beside the data of the sandbox.</span>
        {owner && <FormButton label="Choose another" about="store" form={form} />}
      </div>
    )
  if (locked)
    return (
      <div class="notice warn row apart">
        <span>The store is locked. {reason && visibleName(reason)}</span>
        {owner && <FormButton label="Open it" form={form} />}
      </div>
    )
  return (
    <div class="row apart">
      <span class="quiet small">
        {countText(keys)} {keys === 1 ? 'value' : 'values'}, encrypted in the store. It is opened by:{' '}
        {visibleName(place)}
      </span>
      {owner && kind === 'vault' && <FormButton label="Change" about="where secrets are kept" form={form} />}
    </div>
  )
}
