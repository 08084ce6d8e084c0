import { useSignal } from '@preact/signals'
import type { ExtensionRecord, UpdatePreview } from '../../../../extensions/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'
import { DigestLine, PowersView } from './powers.js'

const Shown = ({ preview }: { preview: UpdatePreview }) => {
  const { version, installedVersion, compatible, powers, digest, problems, changed } = preview
  return (
    <>
      <p>
        From {visibleName(installedVersion)} to {visibleName(version)}: {countText(changed.files)} files, +
        {countText(changed.insertions)} −{countText(changed.deletions)} lines.
      </p>
      {!compatible && <p class="notice bad">It is for another version of the sandbox.</p>}
      {problems.map(problem => (
        <p key={problem} class="notice warn">
          {visibleName(problem)}
        </p>
      ))}
      {powers.added.length === 0 && <p class="notice good">It asks for nothing new.</p>}
      <PowersView compared={powers} />
      <DigestLine digest={digest} />
    </>
  )
}

/** Shows how a newer commit differs in what it may do, then takes exactly that. */
export const UpdateForm = ({
  record: { id, update },
  owns,
  close,
}: {
  record: ExtensionRecord
  owns: boolean
  close: () => void
}) => {
  const ref = useSignal(update?.ref ?? '')
  const preview = useSignal<UpdatePreview | undefined>(undefined)
  const shown = preview.value
  if (shown)
    return (
      <DialogForm
        key="apply"
        title={`Update ${id}`}
        verb="Update"
        close={close}
        ready={owns && shown.compatible}
        work={async () => {
          await askDaemon('POST /extensions/{id}/update', { id, ref: shown.ref, digest: shown.digest })
          refetch(new Set(['extensions']))
        }}
      >
        <Shown preview={shown} />
        {!owns && <p class="notice">Only an owner updates extensions.</p>}
      </DialogForm>
    )
  return (
    <DialogForm
      key="look"
      title={`Update ${id}`}
      verb="Look at it"
      close={close}
      ready={ref.value !== ''}
      work={async () => {
        preview.value = await askDaemon('POST /extensions/{id}/update/preview', { id, ref: ref.value.trim() })
        return 'stays'
      }}
    >
      <TextField
        label="Commit"
        value={ref}
        required
        hint={update ? 'The commit that its registry lists.' : 'All 40 digits; its registry lists no newer one.'}
      />
    </DialogForm>
  )
}

/** What may happen to an installed extension while nobody looks. */
export const PolicyForm = ({ record: { id, updatePolicy }, close }: { record: ExtensionRecord; close: () => void }) => {
  const updates = useSignal(updatePolicy?.updates ?? 'notify')
  const advisories = useSignal(updatePolicy?.advisories ?? 'auto-disable')
  return (
    <DialogForm
      title={`While nobody looks at ${id}`}
      verb="Save"
      close={close}
      work={async () => {
        await askDaemon('POST /extensions/{id}/update-policy', {
          id,
          updates: updates.value,
          advisories: advisories.value,
        })
        refetch(new Set(['extensions']))
      }}
    >
      <ChoiceField
        label="Updates"
        value={updates}
        choices={[
          ['notify', 'Show them here'],
          ['agent', 'Show them here, with what an agent says of each'],
          ['auto', 'Apply versions that its registry verified and that ask for no new powers'],
        ]}
      />
      <ChoiceField
        label="Warnings of its registry"
        value={advisories}
        choices={[
          ['auto-disable', 'Switch it off'],
          ['notify', 'Show them here'],
        ]}
      />
    </DialogForm>
  )
}
