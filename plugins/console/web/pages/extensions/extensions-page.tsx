import { useSignal } from '@preact/signals'
import type { ExtensionRecord, InvalidExtension, PendingExtension } from '../../../../extensions/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { extensionName } from '../../data/extensions/shown-extensions.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame } from '../../ui/page.js'
import { useAction } from '../../ui/action.js'
import { useCommands } from '../../ui/commands.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { ExtensionDetail } from './extension-detail.js'
import { extensionState } from './extension-state.js'
import { InstallForm } from './install-form.js'
import { PendingItem } from './powers.js'

const CreateForm = ({ close }: { close: () => void }) => {
  const publisher = useSignal('local')
  const name = useSignal('')
  return (
    <DialogForm
      title="Create an extension"
      verb="Create"
      close={close}
      ready={name.value !== '' && publisher.value !== ''}
      work={async () => {
        const { id } = await askDaemon('POST /extensions/workspace', { publisher: publisher.value, name: name.value })
        refetch(new Set(['extensions']))
        goTo('extensions', id)
      }}
    >
      <p>A small extension in TypeScript is written into the workspace, and runs at once. It asks for nothing.</p>
      <TextField label="Publisher" value={publisher} required hint="Lower case letters, digits and dashes." />
      <TextField label="Name" value={name} required hint="Also the name of its folder." />
    </DialogForm>
  )
}

const Listed = ({ record }: { record: ExtensionRecord }) => {
  const { id, manifest, source, problems, update } = record
  return (
    <Item
      title={<a href={fragmentOf('extensions', id)}>{visibleName(extensionName(record))}</a>}
      state={extensionState(record)}
      detail={
        <>
          <span class="mono">{visibleName(id)}</span> {visibleName(manifest.version ?? '0.0.0')} ·{' '}
          {source === 'installed' ? 'installed' : 'of the workspace'}
          {update && ` · update to ${visibleName(update.version ?? update.ref.slice(0, 12))}`}
          {update?.securityFix && ', a security fix'}
          {problems.length > 0 && ` · ${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}`}
        </>
      }
    />
  )
}

const Invalid = ({ invalid }: { invalid: readonly InvalidExtension[] }) => (
  <section aria-labelledby="invalid-heading">
    <h2 id="invalid-heading">Folders without a valid extension</h2>
    <ul class="items">
      {invalid.map(({ dir, error }) => (
        <Item
          key={dir}
          title={<span class="mono">{visibleName(dir)}</span>}
          state={['bad', 'Invalid']}
          detail={visibleName(error)}
        />
      ))}
    </ul>
  </section>
)

const Pending = ({ pending, maintains }: { pending: readonly PendingExtension[]; maintains: boolean }) => (
  <section aria-labelledby="pending-heading">
    <h2 id="pending-heading">Waiting for approval</h2>
    <ul class="items">
      {pending.map(each => (
        <PendingItem key={each.id} pending={each} maintains={maintains} />
      ))}
    </ul>
  </section>
)

const List = () => {
  const list = useQuery('extensions', ['extensions'], () => askDaemon('GET /extensions'))
  const maintains = reaches(person.value?.role, 'maintainer')
  const owns = reaches(person.value?.role, 'owner')
  const checking = useAction()
  const groupsShown = useSignal(false)
  const check = () =>
    void checking.run(async () => {
      await askDaemon('POST /extensions/updates/check')
      refetch(new Set(['extensions']))
    })
  useCommands(
    maintains ? [{ id: 'check updates', label: 'Check extensions for updates', group: 'Extensions', run: check }] : [],
  )
  return (
    <PageFrame title="Extensions">
      <Loaded query={list}>
        {({ extensions, pending, invalid, updatesCheckedAt }) => {
          const groups = extensions.filter(({ source }) => source === 'builtin')
          const others = extensions.filter(({ source }) => source !== 'builtin')
          return (
            <>
              {pending.length > 0 && <Pending pending={pending} maintains={maintains} />}
              <section aria-labelledby="extensions-heading">
                <div class="section-head">
                  <h2 id="extensions-heading">Installed and of the workspace</h2>
                  {maintains && (
                    <>
                      <button class="button" type="button" disabled={checking.busy} onClick={check}>
                        Check for updates
                      </button>
                      <FormButton label="Create" about="an extension" form={close => <CreateForm close={close} />} />
                      <FormButton
                        label="Install"
                        about="an extension"
                        primary
                        form={close => <InstallForm close={close} owns={owns} />}
                      />
                    </>
                  )}
                </div>
                <FaultLine fault={checking.fault} />
                {others.length === 0 ? (
                  <p class="quiet">
                    Extensions add views, tools, routes and programs to the sandbox. Create one in the workspace, or
                    install one from a repository.
                  </p>
                ) : (
                  <ul class="items">
                    {others.map(record => (
                      <Listed key={record.id} record={record} />
                    ))}
                  </ul>
                )}
                {updatesCheckedAt !== undefined && (
                  <p class="quiet small">Registries were asked {momentOf(Date.parse(updatesCheckedAt))}.</p>
                )}
              </section>
              {invalid.length > 0 && <Invalid invalid={invalid} />}
              <section aria-labelledby="groups-heading">
                <h2 id="groups-heading">Parts of the sandbox itself</h2>
                <button
                  class="button"
                  type="button"
                  aria-expanded={groupsShown.value}
                  onClick={() => {
                    groupsShown.value = !groupsShown.value
                  }}
                >
                  {groupsShown.value ? 'Hide' : 'Show'} {groups.length} groups
                </button>
                {groupsShown.value && (
                  <ul class="items">
                    {groups.map(({ id, manifest }) => (
                      <Item
                        key={id}
                        title={visibleName(manifest.name ?? id)}
                        state={['good', 'Built in']}
                        detail={`${manifest.permissions?.daemon?.length ?? 0} calls of other groups and its own`}
                      />
                    ))}
                  </ul>
                )}
              </section>
            </>
          )
        }}
      </Loaded>
    </PageFrame>
  )
}

/** What is added to the sandbox, what each may do, and what waits for approval. */
export const ExtensionsPage = ({ rest: [id] }: PageProps) => (id ? <ExtensionDetail key={id} id={id} /> : <List />)
