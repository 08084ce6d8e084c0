import { useSignal } from '@preact/signals'
import type { PublishedEntry } from '../../../../outbox/contract.js'
import { askDaemon } from '../../data/api.js'
import { nameOfPath } from '../../data/files/tree-rows.js'
import { refetch } from '../../data/queries.js'
import { AddressLink } from '../../ui/address-link.js'
import { DialogForm, DoneDialog, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { filesText, sizeTextOf, visibleName } from '../../ui/format.js'
import { BLOCKED } from './blocked.js'

const LeftOut = ({ entry: { blocked } }: { entry: PublishedEntry }) =>
  blocked.length > 0 && (
    <>
      <p>Not published:</p>
      <ul>
        {blocked.map(({ path, reason }) => (
          <li key={path} dir="auto">
            {visibleName(path)}: {BLOCKED[reason]}
          </li>
        ))}
      </ul>
    </>
  )

const Published = ({ entry, close }: { entry: PublishedEntry; close: () => void }) => (
  <DoneDialog title={`${visibleName(entry.path)} is published`} close={close}>
    <p>
      {filesText(entry.files)}
      {entry.url === undefined && ', each with an address of its own'}
    </p>
    {entry.url !== undefined && (
      <p>
        <AddressLink address={entry.url} label={entry.url} />
      </p>
    )}
    <p class="quiet">
      The copy is <span class="mono">public/{visibleName(entry.path)}</span> in the workspace: git lists it as untracked
      unless it is ignored there.
    </p>
    <LeftOut entry={entry} />
  </DoneDialog>
)

/** Publishes a file or folder of the workspace. */
export const PublishForm = ({ path: given, close }: { path?: string; close: () => void }) => {
  const path = useSignal(given ?? '')
  const name = useSignal('')
  const expires = useSignal('')
  const checked = useSignal<PublishedEntry | undefined>(undefined)
  const done = useSignal<PublishedEntry | undefined>(undefined)
  const publish = async () => {
    const asked = { path: path.value.trim(), ...(name.value.trim() && { as: name.value.trim() }) }
    if (checked.value) {
      const expect = checked.value.digest
      // What is there now is looked at anew after a refusal.
      checked.value = undefined
      done.value = await askDaemon('POST /public/publish', {
        ...{ ...asked, expect },
        ...(expires.value && { expiresAt: new Date(expires.value).getTime() }),
      })
      refetch(new Set(['outbox']))
    } else checked.value = await askDaemon('POST /public/publish', { ...asked, mode: 'check' })
    return 'stays'
  }
  if (done.value) return <Published entry={done.value} close={close} />
  return (
    <DialogForm
      title={given === undefined ? 'Publish a file or folder' : `Publish ${visibleName(nameOfPath(given))}`}
      verb={checked.value ? 'Publish' : 'Check'}
      close={close}
      ready={path.value.trim() !== ''}
      work={publish}
    >
      <p>A copy gets an address. Everybody who knows it can read it, without signing in.</p>
      {checked.value ? (
        <>
          <p>
            {filesText(checked.value.files)}, {sizeTextOf(checked.value.bytes)}, as {visibleName(checked.value.path)}.
          </p>
          <LeftOut entry={checked.value} />
        </>
      ) : (
        <>
          {given === undefined && <TextField label="Path in the workspace" required value={path} />}
          <TextField label="Name in the address" value={name} maxLength={120} hint="Left out: its own name." />
        </>
      )}
      <TextField label="Until" type="datetime-local" value={expires} hint="Left out: until it is withdrawn." />
    </DialogForm>
  )
}

/** Opens the form for an entry of the workspace. */
export const PublishButton = ({ path }: { path: string }) => (
  <FormButton
    label="Publish"
    about={visibleName(nameOfPath(path))}
    form={close => <PublishForm path={path} close={close} />}
  />
)
