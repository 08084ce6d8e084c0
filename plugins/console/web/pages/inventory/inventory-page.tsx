import type { InventoryKind, InventoryList, InventoryListed } from '../../../../inventory/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { visibleName, visibleText } from '../../ui/format.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { EntryForm } from './entry-form.js'

const idOf = (entry: InventoryListed): string | undefined =>
  entry.kind === 'backend' ? entry.provider : entry.kind === 'service' ? entry.service : undefined

const changed = (): void => refetch(new Set(['inventory']))

const EntryRow = ({ entry, list, kinds }: { entry: InventoryListed; list: InventoryList; kinds: InventoryKind[] }) => {
  const { kind, name, values, secrets, usedBy } = entry
  const declared = kinds.find(each => each.kind === kind && each.id === idOf(entry))
  const facts = Object.entries(values).map(([key, value]) => `${key}: ${value}`)
  const missing = secrets.filter(({ set }) => !set)
  return (
    <Item
      title={visibleName(name)}
      state={['', declared?.label ?? visibleName(idOf(entry) ?? kind)]}
      detail={
        <>
          {facts.length > 0 && <div>{visibleText(facts.join(' · '))}</div>}
          {entry.kind !== 'backend' && (
            <div>
              On {visibleName(entry.on)}
              {entry.expose !== '' && `, exposed by ${visibleName(entry.expose)}`}
            </div>
          )}
          {usedBy.length > 0 && <div>Used by {visibleText(usedBy.join(', '))}</div>}
          {missing.length > 0 && (
            <div>
              Not stored: {visibleText(missing.map(({ key }) => key).join(', '))}. Store it among the{' '}
              <a href={fragmentOf('secrets')}>secrets</a>.
            </div>
          )}
        </>
      }
    >
      {reaches(person.value?.role, 'maintainer') && (
        <>
          {declared && (
            <FormButton
              label="Change"
              about={visibleName(name)}
              form={close => <EntryForm entry={entry} kinds={kinds} list={list} close={close} />}
            />
          )}
          <AskButton
            label="Remove"
            about={visibleName(name)}
            title={`Remove ${visibleName(name)}?`}
            work={async () => {
              await askDaemon('DELETE /inventory/{name}', { name })
              changed()
            }}
          >
            <p>Its entry goes from the file. What runs keeps running.</p>
          </AskButton>
        </>
      )}
    </Item>
  )
}

const Entries = ({ list, kinds }: { list: InventoryList; kinds: InventoryKind[] }) => {
  const mayChange = reaches(person.value?.role, 'maintainer') && list.ready
  return (
    <>
      {!list.ready && (
        <p class="quiet">
          There is no repository <span class="mono">intent</span> yet:{' '}
          <a href={fragmentOf('connections', 'devops')}>connect DevOps</a>, which makes it.
        </p>
      )}
      {list.dirty && (
        <p class="quiet">{visibleText(list.file ?? '')} has uncommitted edits: commit or undo them to add entries.</p>
      )}
      {mayChange && (
        <div class="row">
          <FormButton label="Add an entry" form={close => <EntryForm kinds={kinds} list={list} close={close} />} />
        </div>
      )}
      {list.entries.length === 0 ? (
        <p class="quiet">Machines one has, services and apps one wants run appear here.</p>
      ) : (
        <ul class="items">
          {list.entries.map(entry => (
            <EntryRow key={entry.name} entry={entry} list={list} kinds={kinds} />
          ))}
        </ul>
      )}
    </>
  )
}

/** The entries of the deployment configuration. */
export const InventoryPage = () => {
  const kinds = useQuery('inventory kinds', [], () => askDaemon('GET /inventory/kinds'))
  const list = useQuery('inventory', ['inventory', 'secrets'], () => askDaemon('GET /inventory'))
  return (
    <PageFrame title="Inventory">
      <Loaded query={kinds}>
        {({ kinds }) => <Loaded query={list}>{list => <Entries list={list} kinds={kinds} />}</Loaded>}
      </Loaded>
    </PageFrame>
  )
}
