import { useSignal } from '@preact/signals'
import { VAULTED } from '../../../../../sdk/vaulted.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { Dialog, DialogForm, DoneDialog } from '../../ui/dialog.js'
import { CheckField, ChoiceField, OnceValue, TextField } from '../../ui/fields.js'

const changed = (): void => refetch(new Set(['secrets']))
const NAME = '[A-Za-z_][A-Za-z0-9_]*'
const NAME_HINT = 'Letters, digits and underscores, such as GITHUB_TOKEN.'

interface SecretFormProps {
  readonly close: () => void
  /** The name of the value to replace; left out: a new one. */
  readonly name?: string
  readonly stored?: boolean
  readonly hosts?: readonly string[]
}

/** Stores a value, or replaces it. */
export const SecretForm = ({ close, name, stored = false, hosts = [] }: SecretFormProps) => {
  const key = useSignal(name ?? '')
  const value = useSignal('')
  const bound = useSignal(hosts.join('\n'))
  return (
    <DialogForm
      title={stored ? `Rotate ${name}` : 'Add a secret'}
      close={close}
      verb={stored ? 'Replace' : 'Store'}
      work={async () => {
        await askDaemon('POST /secrets', {
          key: key.value,
          value: value.value || VAULTED,
          hosts: bound.value
            .split('\n')
            .map(one => one.trim())
            .filter(Boolean),
        })
        changed()
      }}
    >
      {name === undefined && <TextField label="Name" required value={key} pattern={NAME} hint={NAME_HINT} />}
      <TextField
        label={stored ? 'New value' : 'Value'}
        type="password"
        required={!stored}
        value={value}
        hint={
          stored
            ? 'Empty: the value stays, and only the hosts change. The old value stays masked for 24 hours.'
            : 'Nobody sees it again, except the owner on request.'
        }
      />
      <TextField
        label="Hosts"
        rows={2}
        value={bound}
        hint="One a line. With hosts, agents never hold the value: it is put into requests to these hosts only."
      />
    </DialogForm>
  )
}

/** Generates a value that nobody sees. */
export const GenerateForm = ({ close }: { close: () => void }) => {
  const key = useSignal('')
  const kind = useSignal<'random' | 'words' | 'ssh-key'>('random')
  const replace = useSignal(false)
  const made = useSignal('')
  if (made.value)
    return (
      <DoneDialog title="The key pair is made" close={close}>
        <p>The private half is stored. Give the public half to the server:</p>
        <OnceValue label="Public key" value={made.value} />
      </DoneDialog>
    )
  return (
    <DialogForm
      title="Generate a value"
      close={close}
      verb="Generate"
      work={async () => {
        const { publicKey } = await askDaemon('POST /secrets/generate', {
          key: key.value,
          recipe: { kind: kind.value },
          ...(replace.value && { replace: true }),
        })
        changed()
        if (publicKey) made.value = publicKey
        return publicKey && 'stays'
      }}
    >
      <TextField label="Name" required value={key} pattern={NAME} hint={NAME_HINT} />
      <ChoiceField
        label="Kind"
        value={kind}
        choices={[
          ['random', 'Random characters'],
          ['words', 'Words that can be said'],
          ['ssh-key', 'A key pair for SSH'],
        ]}
      />
      <CheckField label="Replace the value if the name is taken" value={replace} />
    </DialogForm>
  )
}

/** Shows one value to the owner. */
export const RevealForm = ({ name, close }: { name: string; close: () => void }) => {
  const value = useSignal('')
  if (value.value)
    return (
      <Dialog title={name} close={close}>
        <OnceValue label="Value" value={value.value} />
        <div class="card-actions">
          <button class="button" type="button" onClick={close}>
            Hide
          </button>
        </div>
      </Dialog>
    )
  return (
    <DialogForm
      title={`Reveal ${name}?`}
      close={close}
      verb="Reveal"
      work={async () => {
        value.value = (await askDaemon('POST /secrets/reveal', { key: name })).value
        return 'stays'
      }}
    >
      <p>The value appears on this screen until you hide it. That you looked is written into the activity record.</p>
    </DialogForm>
  )
}
