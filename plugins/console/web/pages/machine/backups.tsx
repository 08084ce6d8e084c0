import { useSignal } from '@preact/signals'
import type { Bundle, RestoreReport } from '../../../../system/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { saveFrom } from '../../data/files/save.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, DialogForm, DoneDialog, FormButton } from '../../ui/dialog.js'
import { CheckField, TextField } from '../../ui/fields.js'
import { countText, momentOf, sizeTextOf, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const changed = (): void => refetch(new Set(['bundles']))

const MakeForm = ({ close }: { close: () => void }) => {
  const passphrase = useSignal('')
  const secrets = useSignal(false)
  return (
    <DialogForm
      title="Make a backup"
      close={close}
      verb="Make"
      work={async () => {
        await askDaemon('POST /bundles', {
          ...(passphrase.value && { passphrase: passphrase.value }),
          ...(secrets.value && { secrets: true }),
        })
        changed()
      }}
    >
      <p>
        It holds the files, the history of every repository, conversations and configuration. Work goes on while it is
        packed. The three newest backups are kept, for 7 days: download what you want to keep.
      </p>
      <TextField
        label="Passphrase"
        type="password"
        value={passphrase}
        hint="Encrypts the backup; at least 12 characters. Without it nobody can restore it."
      />
      <CheckField label="With the values of secrets, which needs a passphrase" value={secrets} />
    </DialogForm>
  )
}

/** The files that a restore writes and leaves out. */
const Report = ({ report }: { report: RestoreReport }) => (
  <div class="stack">
    <p>
      Made {momentOf(report.from.createdAt)} with version {visibleName(report.from.version)}
      {report.from.name && ` in ${visibleName(report.from.name)}`}. It writes{' '}
      {countText(report.written.reduce((sum, { files }) => sum + files, 0))} files.
    </p>
    {report.skipped.length > 0 && (
      <details>
        <summary>Left out: {countText(report.skipped.length)}</summary>
        <ul>
          {report.skipped.map(({ path, reason }) => (
            <li key={path}>
              <span class="mono">{visibleName(path)}</span> <span class="quiet">{visibleName(reason)}</span>
            </li>
          ))}
        </ul>
      </details>
    )}
    {report.todo.length > 0 && (
      <div class="notice warn">
        <p>Still to do by hand:</p>
        <ul>
          {report.todo.map(one => (
            <li key={one}>{visibleName(one)}</li>
          ))}
        </ul>
      </div>
    )}
  </div>
)

const RestoreForm = ({ close }: { close: () => void }) => {
  const path = useSignal('')
  const passphrase = useSignal('')
  const checked = useSignal<RestoreReport | undefined>(undefined)
  const done = useSignal(false)
  const restore = (mode: 'check' | 'apply') =>
    askDaemon('POST /bundles/restore', {
      path: path.value.trim(),
      mode,
      ...(passphrase.value && { passphrase: passphrase.value }),
      ...(checked.value && { expect: checked.value.digest }),
    })
  if (done.value)
    return (
      <DoneDialog title="The backup is restored" close={close}>
        <p>The sandbox restarts with it now. The state before it is kept for 7 days.</p>
      </DoneDialog>
    )
  return (
    <DialogForm
      title="Restore a backup"
      close={close}
      danger={checked.value !== undefined}
      verb={checked.value ? 'Restore and restart' : 'Check'}
      work={async () => {
        if (checked.value) {
          await restore('apply')
          done.value = true
        } else checked.value = await restore('check')
        return 'stays'
      }}
    >
      {checked.value ? (
        <>
          <p>
            It replaces the workspace and the conversations of this sandbox. Members, sign-ins and tokens stay as they
            are.
          </p>
          <Report report={checked.value} />
        </>
      ) : (
        <>
          <p>Put the backup into the workspace first. Checking reads it whole and changes nothing.</p>
          <TextField label="Path in the workspace" required value={path} />
          <TextField label="Passphrase" type="password" value={passphrase} />
        </>
      )}
    </DialogForm>
  )
}

const BackupRow = ({ bundle }: { bundle: Bundle }) => {
  const { name, state, createdAt, createdBy, sizeBytes, doneBytes = 0, secrets, detail } = bundle
  const action = useAction()
  const download = async () => {
    const { ticket } = await askDaemon('POST /system/ws-ticket', { for: 'bundle', name })
    saveFrom(`/bundles/download?${new URLSearchParams({ name, ticket })}`, name)
  }
  return (
    <Item
      title={
        <>
          <span class="mono">{visibleName(name)}</span>
          {secrets && <span class="tag">With secrets</span>}
          {state === 'failed' && <span class="tag bad">Failed</span>}
        </>
      }
      detail={
        <>
          {momentOf(createdAt)} by {visibleName(createdBy)}
          {state === 'ready' && ` · ${sizeTextOf(sizeBytes)}`}
          {detail && ` · ${visibleName(detail)}`}
          <FaultLine fault={action.fault} />
        </>
      }
      facts={
        state === 'packing' && (
          <span class="row">
            <progress aria-label={`Packing ${name}`} max={Math.max(1, sizeBytes)} value={doneBytes} />
            <span class="quiet small">packing</span>
          </span>
        )
      }
    >
      {state === 'ready' && (
        <ActionButton action={action} work={download} about={visibleName(name)}>
          Download
        </ActionButton>
      )}
      <AskButton
        label={state === 'packing' ? 'Stop' : 'Delete'}
        about={visibleName(name)}
        title={state === 'packing' ? 'Stop packing this backup?' : 'Delete this backup?'}
        work={async () => {
          await askDaemon('DELETE /bundles/{name}', { name })
          changed()
        }}
      >
        <p>{visibleName(name)} is gone for good; copies that were downloaded stay.</p>
      </AskButton>
    </Item>
  )
}

/** The backups on this machine. */
export const Backups = () => {
  const bundles = useQuery('bundles', ['bundles'], () => askDaemon('GET /bundles'))
  return (
    <section aria-labelledby="backups-heading">
      <div class="section-head">
        <h2 id="backups-heading">Backups</h2>
        <FormButton label="Restore" about="a backup" form={close => <RestoreForm close={close} />} />
        <FormButton label="Make a backup" form={close => <MakeForm close={close} />} />
      </div>
      <Loaded query={bundles}>
        {({ exports }) =>
          exports.length === 0 ? (
            <p class="quiet">Backups of this sandbox appear here, to download and to keep elsewhere.</p>
          ) : (
            <ul class="items">
              {exports.map(bundle => (
                <BackupRow key={bundle.name} bundle={bundle} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}
