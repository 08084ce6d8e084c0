import { useSignal } from '@preact/signals'
import type { DiskDetail, DiskLink, DiskState } from '../../../../disks/contract.js'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, DoneDialog, FormButton } from '../../ui/dialog.js'
import { momentOf, sizeTextOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { TextBlock } from '../../ui/text-block.js'
import { Copyable } from '../../ui/copy.js'

const STATES: { readonly [state in DiskState]: readonly ['' | 'good' | 'busy' | 'warn' | 'bad', string] } = {
  mounted: ['good', 'Mounted'],
  mounting: ['busy', 'Mounting'],
  unmounted: ['', 'Not mounted'],
  stale: ['warn', 'Does not answer'],
  unavailable: ['bad', 'Unavailable'],
  failed: ['bad', 'Failed'],
}

const changed = (): void => refetch(new Set(['disks']))

const MountButton = ({ id }: { id: string }) => {
  const action = useAction()
  const step = useSignal('')
  const mount = async () => {
    step.value = ''
    let mounted = false
    try {
      for await (const line of await askDaemon('POST /disks/{id}/mount', { id })) {
        if (line.kind === 'log') step.value = line.message
        if (line.kind === 'result') mounted = true
      }
      if (!mounted) throw new Refusal('unavailable', step.value || 'it was not mounted')
    } finally {
      step.value = ''
      changed()
    }
  }
  return (
    <>
      <ActionButton action={action} class="primary" work={mount} about={visibleName(id)}>
        Mount
      </ActionButton>
      {step.value && (
        <p class="quiet" role="status">
          {visibleText(step.value)}
        </p>
      )}
      <FaultLine fault={action.fault} />
    </>
  )
}

const UnmountButtons = ({ id }: { id: string }) => {
  const action = useAction()
  const unmount = async (force: boolean) => {
    try {
      await askDaemon('POST /disks/{id}/unmount', { id, force })
    } finally {
      changed()
    }
  }
  return (
    <>
      <ActionButton action={action} work={() => unmount(false)} about={visibleName(id)}>
        Unmount
      </ActionButton>
      <AskButton label="Detach" about={visibleName(id)} title={`Detach ${visibleName(id)}?`} work={() => unmount(true)}>
        <p>Programs that use it keep their open files. What is not written yet may be lost.</p>
      </AskButton>
      <FaultLine fault={action.fault} />
    </>
  )
}

const Details = ({ disk }: { disk: DiskDetail }) => (
  <>
    <Pairs
      rows={[
        ['Source', disk.source],
        ['Folder', disk.mountPoint],
        ['Mounted since', disk.since === undefined ? undefined : momentOf(disk.since)],
        ['Carried by', disk.carriers.map(({ via, reason }) => `${via}: ${reason ?? 'usable'}`).join('; ')],
        ['Missing', disk.missing.map(({ name, install }) => `${name}: ${install}`).join('; ')],
        ['In use by', disk.users.map(({ pid, command }) => `${command} (${pid})`).join(', ')],
        [disk.pin?.kind === 'certificate' ? 'Certificate' : 'Host key', disk.pin && `SHA-256 ${disk.pin.sha256}`],
      ]}
    />
    {disk.log && (
      <section aria-label="The last mount">
        <h3>The last mount{disk.logAt !== undefined && `, ${momentOf(disk.logAt)}`}</h3>
        <TextBlock class="mono" what="the log" text={disk.log} />
      </section>
    )}
  </>
)

const DetailsDialog = ({ id, close }: { id: string; close: () => void }) => {
  const detail = useQuery(`disk ${id}`, ['disks'], () => askDaemon('GET /disks/{id}', { id }))
  return (
    <DoneDialog title={visibleName(id)} close={close}>
      <Loaded query={detail}>{disk => <Details disk={disk} />}</Loaded>
    </DoneDialog>
  )
}

const sizesOf = ({ totalBytes, freeBytes }: DiskLink): string | undefined =>
  totalBytes === undefined || freeBytes === undefined
    ? undefined
    : `${sizeTextOf(freeBytes)} free of ${sizeTextOf(totalBytes)}`

const DiskRow = ({ disk }: { disk: DiskLink }) => {
  const { id, state, source, mountPoint, link, via, readOnly, detail } = disk
  const on = state === 'mounted' || state === 'stale'
  const facts = [via && `with ${via}`, readOnly && 'read only', sizesOf(disk)].filter(Boolean).join(' · ')
  return (
    <Item
      title={visibleName(id)}
      state={STATES[state]}
      detail={
        <>
          <div>
            <Copyable text={source} what="the source">
              {visibleText(source)}
            </Copyable>
          </div>
          {on && (
            <div>
              <Copyable text={mountPoint} what="the folder">
                {visibleText(mountPoint)}
              </Copyable>
            </div>
          )}
          {facts && <div>{visibleText(facts)}</div>}
          {link !== undefined && <div>In the workspace as {visibleName(link)}</div>}
          {detail !== undefined && <div>{visibleText(detail)}</div>}
        </>
      }
    >
      {reaches(person.value?.role, 'maintainer') && (
        <>
          {(on || state === 'mounting') && <UnmountButtons id={id} />}
          {(state === 'unmounted' || state === 'failed' || state === 'stale') && <MountButton id={id} />}
          <FormButton label="Details" about={visibleName(id)} form={close => <DetailsDialog id={id} close={close} />} />
        </>
      )}
    </Item>
  )
}

/** The shares of other machines, and whether they are mounted. */
export const DisksPage = () => {
  const list = useQuery('disks', ['disks', 'capabilities'], () => askDaemon('GET /disks'))
  return (
    <PageFrame title="Disks">
      {reaches(person.value?.role, 'maintainer') && (
        <p class="quiet">
          Shares are added and changed among the <a href={fragmentOf('connections')}>connections</a>.
        </p>
      )}
      <Loaded query={list}>
        {({ disks }) =>
          disks.length === 0 ? (
            <p class="quiet">Folders of other machines that are mounted here appear here.</p>
          ) : (
            <ul class="items">
              {disks.map(disk => (
                <DiskRow key={disk.id} disk={disk} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </PageFrame>
  )
}
