import { useSignal, type Signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { signal } from '@preact/signals-core'
import type { Need, NeedField } from '../../../../needs/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { DialogForm } from '../../ui/dialog.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'

const changed = () => refetch(new Set(['needs']))

const Field = ({ field, value }: { field: NeedField; value: Signal<string> }) => {
  const { label, type, options = [], required, hint } = field
  const text = visibleName(label)
  const described = hint !== undefined && { hint: visibleName(hint) }
  if (type === 'choice' || type === 'yes-no') {
    const choices: (readonly [string, string])[] =
      type === 'choice'
        ? options.map(each => [each.value, visibleName(each.label)])
        : [
            ['yes', 'Yes'],
            ['no', 'No'],
          ]
    return <ChoiceField label={text} value={value} choices={[['', 'Choose …'], ...choices]} {...described} />
  }
  return (
    <TextField
      label={text}
      value={value}
      required={required}
      {...(type === 'secret' && { type: 'password' as const })}
      {...(type === 'text' && { rows: 3 })}
      {...(type === 'file' && { placeholder: 'Its path in the workspace' })}
      {...described}
    />
  )
}

interface NeedFormProps {
  readonly need: Need
  readonly close: () => void
}

/** Gives what an agent needs. */
export const GiveForm = ({ need: { id, title, kind, fields = [] }, close }: NeedFormProps) => {
  const values = useRef(new Map(fields.map(({ key }) => [key, signal('')]))).current
  const note = useSignal('')
  const waits = useSignal(false)
  return (
    <DialogForm
      title={visibleName(title)}
      verb={fields.length > 0 ? 'Give' : 'It is done'}
      close={close}
      work={async () => {
        const given = fields.flatMap(({ key, type }): [string, string | boolean][] => {
          const text = values.get(key)!.value
          if (text === '') return []
          return [[key, type === 'yes-no' ? text === 'yes' : type === 'file' ? text.trim() : text]]
        })
        await askDaemon('POST /needs/{id}/give', {
          ...{ id, answers: Object.fromEntries(given) },
          ...(note.value.trim() && { note: note.value.trim() }),
          ...(waits.value && { continue: false }),
        })
        changed()
      }}
    >
      {kind === 'capability' && <p>Connect it on the page Connections: the agent then goes on by itself.</p>}
      {fields.map(field => (
        <Field key={field.key} field={field} value={values.get(field.key)!} />
      ))}
      <TextField label="Note for the agent" value={note} />
      <CheckField label="Do not go on yet: the agent reads it with the next message" value={waits} />
    </DialogForm>
  )
}

/** Says that it will not be given. */
export const DeclineForm = ({ need: { id, title }, close }: NeedFormProps) => {
  const reason = useSignal('')
  return (
    <DialogForm
      title={`Decline: ${visibleName(title)}`}
      verb="Decline"
      danger
      close={close}
      work={async () => {
        await askDaemon('POST /needs/{id}/decline', { id, ...(reason.value.trim() && { reason: reason.value.trim() }) })
        changed()
      }}
    >
      <p>The agent is told, and goes on with what it can do without.</p>
      <TextField label="Why" value={reason} />
    </DialogForm>
  )
}
