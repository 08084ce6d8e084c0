import { useSignal } from '@preact/signals'
import type { Area } from '../../../../areas/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const PROBLEMS = { missing: 'is missing', 'leads-outside': 'leads out of the workspace', closed: 'is closed' } as const

const AreaForm = ({ close, area }: { close: () => void; area?: Area }) => {
  const id = useSignal(area?.id ?? '')
  const label = useSignal(area?.label ?? '')
  const note = useSignal(area?.note ?? '')
  const folders = useSignal(area?.folders.join('\n') ?? '')
  const access = useSignal<Area['access']>(area?.access ?? 'work')
  return (
    <DialogForm
      title={area ? `Change the area ${visibleName(area.label)}` : 'Make an area'}
      close={close}
      verb={area ? 'Change' : 'Make'}
      work={async () => {
        await askDaemon('POST /areas', {
          id: id.value,
          label: label.value,
          folders: folders.value
            .split('\n')
            .map(one => one.trim())
            .filter(Boolean),
          access: access.value,
          ...(note.value && { note: note.value }),
        })
        refetch(new Set(['areas']))
      }}
    >
      {!area && (
        <TextField
          label="Id"
          required
          value={id}
          pattern="[a-z0-9][a-z0-9\-]*"
          hint="Small letters, digits and hyphens. It does not change later."
        />
      )}
      <TextField label="Name" required value={label} />
      <TextField
        label="Folders"
        required
        rows={4}
        value={folders}
        hint="One a line, as paths from the workspace; each counts with all below it."
      />
      <ChoiceField
        label="People who hold it"
        value={access}
        choices={[
          ['work', 'work in it, as far as their role goes'],
          ['read', 'only read it'],
        ]}
      />
      <TextField label="Note" value={note} />
    </DialogForm>
  )
}

/** Sets of folders to which people are limited. */
export const AreasTab = ({ owner }: { owner: boolean }) => {
  const areas = useQuery('areas', ['areas', 'members'], () => askDaemon('GET /areas'))
  return (
    <section aria-labelledby="areas-heading">
      <div class="section-head">
        <h2 id="areas-heading">Areas</h2>
        {owner && <FormButton label="Make an area" primary form={close => <AreaForm close={close} />} />}
      </div>
      <p class="quiet">
        An area is a named set of folders. A viewer or collaborator who holds areas reaches only these.
      </p>
      <Loaded query={areas}>
        {({ areas: all }) =>
          all.length === 0 ? (
            <p class="quiet">There are none: everybody reaches the whole workspace.</p>
          ) : (
            <ul class="items">
              {all.map(area => (
                <Item
                  key={area.id}
                  title={
                    <>
                      {visibleName(area.label)}
                      {area.access === 'read' && <span class="tag">Read only</span>}
                      {area.problems?.map(({ folder, problem }) => (
                        <span key={folder} class="tag warn">
                          {visibleName(folder)} {PROBLEMS[problem] ?? problem}
                        </span>
                      ))}
                    </>
                  }
                  detail={
                    <>
                      <span class="mono">{area.folders.map(visibleName).join(', ')}</span> ·{' '}
                      {area.holders?.length
                        ? `held by ${area.holders.map(({ email }) => visibleName(email)).join(', ')}`
                        : 'held by nobody'}
                      {area.note && ` · ${visibleName(area.note)}`}
                    </>
                  }
                >
                  {owner && (
                    <>
                      <FormButton
                        label="Change"
                        about={`the area ${visibleName(area.label)}`}
                        form={close => <AreaForm close={close} area={area} />}
                      />
                      <AskButton
                        label="Delete"
                        about={`the area ${visibleName(area.label)}`}
                        title={`Delete the area ${visibleName(area.label)}?`}
                        work={async () => {
                          await askDaemon('DELETE /areas/{id}', { id: area.id })
                          refetch(new Set(['areas']))
                        }}
                      >
                        <p>Its folders and files stay as they are. People who hold it must give it up first.</p>
                      </AskButton>
                    </>
                  )}
                </Item>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}
