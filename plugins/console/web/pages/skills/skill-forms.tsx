import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ImportedSkills, SkillSummary } from '../../../../skills/contract.js'
import { askDaemon, faultSentence } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm, DoneDialog } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine } from '../../ui/page.js'

const changed = () => refetch(new Set(['skills', 'settings']))

/** Writes a skill, or changes one of the own ones. */
export const SkillForm = ({ skill, close }: { skill?: SkillSummary; close: () => void }) => {
  const name = useSignal(skill?.name ?? '')
  const description = useSignal(skill?.description ?? '')
  const body = useSignal('')
  const read = useSignal(skill === undefined)
  const fault = useSignal('')
  useEffect(() => {
    if (!skill) return
    askDaemon('GET /skills/read', { id: skill.id }).then(
      found => {
        body.value = found.body
        read.value = true
      },
      error => {
        fault.value = faultSentence(error)
      },
    )
  }, [])
  return (
    <DialogForm
      title={skill ? `Edit ${skill.name}` : 'Write a skill'}
      verb="Save"
      close={close}
      ready={read.value && name.value !== '' && description.value !== '' && body.value !== ''}
      work={async () => {
        await askDaemon('POST /skills', { name: name.value, description: description.value, body: body.value })
        changed()
      }}
    >
      {!skill && <TextField label="Name" value={name} required hint="Lower case letters, digits and dashes." />}
      <TextField label="When to use it" value={description} required rows={2} hint="Agents decide by this sentence." />
      <TextField label="Instructions" value={body} required rows={12} />
      <FaultLine fault={fault.value} />
    </DialogForm>
  )
}

/** Copies skills from a folder of the workspace or from a commit of a repository. */
export const ImportForm = ({ close }: { close: () => void }) => {
  const kind = useSignal<'path' | 'git'>('path')
  const path = useSignal('')
  const url = useSignal('')
  const ref = useSignal('')
  const secret = useSignal('')
  const replace = useSignal(false)
  const done = useSignal<ImportedSkills | undefined>(undefined)
  if (done.value) {
    const { imported, skipped } = done.value
    return (
      <DoneDialog key="done" title="Imported" close={close}>
        <ul class="plain-list">
          {imported.map(({ name }) => (
            <li key={name}>{visibleName(name)}</li>
          ))}
          {skipped.map(({ name, reason }) => (
            <li key={name}>
              {visibleName(name)} was skipped: {visibleName(reason)}
            </li>
          ))}
        </ul>
      </DoneDialog>
    )
  }
  return (
    <DialogForm
      key="ask"
      title="Import skills"
      verb="Import"
      close={close}
      ready={kind.value === 'path' ? path.value !== '' : url.value !== '' && ref.value !== ''}
      work={async () => {
        const from =
          kind.value === 'path'
            ? ({ kind: 'path', path: path.value } as const)
            : ({
                ...({ kind: 'git', url: url.value.trim(), ref: ref.value.trim() } as const),
                ...(path.value && { path: path.value }),
                ...(secret.value && { secret: secret.value }),
              } as const)
        done.value = await askDaemon('POST /skills/import', { from, ...(replace.value && { replace: true }) })
        changed()
        return 'stays'
      }}
    >
      <ChoiceField
        label="From"
        value={kind}
        choices={[
          ['path', 'A folder of the workspace'],
          ['git', 'A repository'],
        ]}
      />
      {kind.value === 'git' && (
        <>
          <TextField label="Repository" value={url} required />
          <TextField label="Commit" value={ref} required hint="All 40 digits." />
          <TextField label="Secret" value={secret} hint="The name of a stored secret that is sent as access token." />
        </>
      )}
      <TextField label="Folder" value={path} required={kind.value === 'path'} />
      <CheckField label="Replace skills that exist already" value={replace} />
    </DialogForm>
  )
}
