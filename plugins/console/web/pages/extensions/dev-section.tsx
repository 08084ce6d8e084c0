import { useSignal } from '@preact/signals'
import type { DevCheckout, ExtensionRecord } from '../../../../extensions/contract.js'
import { unapprovedDigest } from '../../../../../sdk/refusal.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { countText, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const changed = (): void => refetch(new Set(['extensions', 'files']))

interface RunFormProps {
  readonly checkout: DevCheckout
  readonly close: () => void
}

/** Runs an extension from a folder; powers that it adds are shown, and approved with a second click. */
const RunForm = ({ checkout: { id, path, conversation, running: again }, close }: RunFormProps) => {
  const added = useSignal<{ readonly digest: string; readonly words: string } | undefined>(undefined)
  return (
    <DialogForm
      title={again ? `Reload ${id}?` : `Run ${id} from ${path}?`}
      verb={added.value ? 'Approve and run' : again ? 'Reload' : 'Run'}
      danger={added.value !== undefined}
      close={close}
      work={async () => {
        const approved = added.value && { digest: added.value.digest }
        try {
          if (again) await askDaemon('POST /extensions/{id}/dev/reload', { id, ...approved })
          else
            await askDaemon('POST /extensions/{id}/dev', {
              ...{ id, path, ...(conversation !== undefined && { conversation }) },
              ...approved,
            })
        } catch (error) {
          const digest = unapprovedDigest(error)
          if (digest === undefined || digest === added.value?.digest) throw error
          added.value = { digest, words: (error as Error).message }
          return 'stays'
        }
        changed()
        return undefined
      }}
    >
      <p>A copy of the folder runs in place of the installed commit, which stays the pinned one.</p>
      {added.value && (
        <p class="notice warn" role="alert" dir="auto">
          {visibleText(added.value.words)}
        </p>
      )}
    </DialogForm>
  )
}

const CheckoutRow = ({ checkout, held }: { checkout: DevCheckout; held: string | undefined }) => {
  const { id, path, conversation, branch, uncommitted, version, built, stale, running } = checkout
  const action = useAction()
  const back = async () => {
    await askDaemon('DELETE /extensions/{id}/dev', { id })
    changed()
  }
  return (
    <Item
      title={<span class="mono">{visibleName(path)}</span>}
      state={running ? ['good', 'Runs'] : undefined}
      detail={
        <>
          {visibleName(version)} · branch {visibleName(branch)}
          {conversation !== undefined && (
            <>
              {' '}
              · in the <a href={fragmentOf('c', conversation)}>private copy</a> of {visibleName(conversation)}
            </>
          )}
          {uncommitted > 0 && ` · ${countText(uncommitted)} files not committed`}
          {!built ? ' · not built' : stale && ' · sources are newer than what is built'}
          {running && held !== undefined && ` · ${visibleName(held)}`}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      <FormButton
        label={running ? 'Reload' : 'Run from here'}
        about={visibleName(path)}
        form={close => <RunForm checkout={checkout} close={close} />}
      />
      {running && (
        <ActionButton action={action} work={back}>
          Back to its commit
        </ActionButton>
      )}
    </Item>
  )
}

/** The folders that an installed extension can run from; nothing where there is none. */
export const DevSection = ({ record }: { record: ExtensionRecord }) => {
  const { data } = useQuery('dev checkouts', ['extensions', 'files', 'refs'], () => askDaemon('GET /extensions/dev'))
  const checkouts = data?.checkouts.filter(({ id }) => id === record.id) ?? []
  if (checkouts.length === 0) return null
  return (
    <section aria-labelledby="dev-heading">
      <h2 id="dev-heading">Folders it can run from</h2>
      <ul class="items">
        {checkouts.map(checkout => (
          <CheckoutRow key={`${checkout.conversation}:${checkout.path}`} checkout={checkout} held={record.dev?.held} />
        ))}
      </ul>
    </section>
  )
}
