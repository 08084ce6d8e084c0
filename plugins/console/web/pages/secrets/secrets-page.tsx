import { useSignal } from '@preact/signals'
import type { SecretEntry } from '../../../../secrets/contract.js'
import { askDaemon } from '../../data/api.js'
import { served } from '../../data/live.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { agoOf, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { SearchField } from '../../ui/search-field.js'
import { reaches, type PageProps } from '../registry.js'
import { CiForm } from './ci-form.js'
import { SecretImportForm } from './import-form.js'
import { GenerateForm, RevealForm, SecretForm } from './secret-forms.js'
import { SecretUses } from './secret-uses.js'
import { StoreNotice } from './store-notice.js'
import { Copyable } from '../../ui/copy.js'

const KINDS = {
  env: 'stored here',
  generated: 'generated here',
  capability: 'of a connection',
  provider: 'of a provider',
} as const

const SecretRow = ({ entry, owner }: { entry: SecretEntry; owner: boolean }) => {
  const { key, kind, label, status, requiredBy, storedAt, revealable, hosts, personas, ci, lastUse } = entry
  const own = kind === 'env' || kind === 'generated'
  return (
    <Item
      title={<span class="mono">{visibleName(label ?? key)}</span>}
      state={status === 'missing' ? ['warn', 'Missing'] : undefined}
      detail={
        <>
          {own && status !== 'missing' && (
            <div>
              Written as <Copyable text={`{{secret:${key}}}`} what="the reference" />
            </div>
          )}
          <div>
            {KINDS[kind] ?? kind} · {visibleName(storedAt)}
            {hosts?.length ? ` · only to ${hosts.join(', ')}` : ''}
            {personas?.length ? ` · only for ${personas.join(', ')}` : ''}
            {requiredBy.length > 0 && ` · needed by ${requiredBy.map(({ resourceId }) => resourceId).join(', ')}`}
          </div>
          {ci && (
            <div>
              {ci.synced ? 'CI services have this value' : 'CI services have an older value: write it into CI again'}
            </div>
          )}
          <div>
            {lastUse
              ? `Last used ${agoOf(lastUse.at)}${lastUse.detail ? `: ${visibleName(lastUse.detail)}` : ''}`
              : 'Never used'}
          </div>
        </>
      }
    >
      {owner && revealable && status !== 'missing' && (
        <FormButton label="Reveal" about={key} form={close => <RevealForm name={key} close={close} />} />
      )}
      {own && (
        <>
          <FormButton
            label={status === 'missing' ? 'Add' : 'Rotate'}
            about={key}
            form={close => <SecretForm name={key} close={close} stored={status !== 'missing'} hosts={hosts ?? []} />}
          />
          {status !== 'missing' && (
            <AskButton
              label="Remove"
              about={key}
              title={`Remove ${key}?`}
              work={async () => {
                await askDaemon('DELETE /secrets/{key}', { key })
                refetch(new Set(['secrets']))
              }}
            >
              <p>The value is destroyed. What refers to it is refused from then on; the list of its uses stays.</p>
            </AskButton>
          )}
        </>
      )}
    </Item>
  )
}

/** Stored values by name, with their purpose and uses. */
export const SecretsPage = (_: PageProps) => {
  const store = useQuery('secret store', ['secrets'], () => askDaemon('GET /secrets/store'))
  const inventory = useQuery('secrets', ['secrets', 'capabilities'], () => askDaemon('GET /secrets/inventory'))
  const hasGit = served.value.has('git.repos')
  const repos = useQuery(`ci repos ${hasGit}`, ['repos'], async () =>
    hasGit ? ['root', ...(await askDaemon('GET /git/repos')).repos] : [],
  )
  const owner = reaches(person.value?.role, 'owner')
  const open = store.data && !store.data.locked
  const words = useSignal('')
  return (
    <PageFrame title="Secrets">
      <Loaded query={store}>{state => <StoreNotice state={state} owner={owner} />}</Loaded>
      <section aria-labelledby="stored-heading">
        <div class="section-head">
          <h2 id="stored-heading">Stored values</h2>
          {open && (
            <>
              {repos.data?.length ? (
                <FormButton label="Write into CI" form={close => <CiForm repos={repos.data!} close={close} />} />
              ) : null}
              <FormButton label="Import" about="secrets" form={close => <SecretImportForm close={close} />} />
              <FormButton label="Generate" about="a value" form={close => <GenerateForm close={close} />} />
              <FormButton label="Add a secret" primary form={close => <SecretForm close={close} />} />
            </>
          )}
        </div>
        <Loaded query={inventory}>
          {({ entries }) =>
            entries.length === 0 ? (
              <p class="quiet">
                Values that agents use without seeing them appear here by name. They are masked wherever they would
                show.
              </p>
            ) : (
              <>
                {entries.length > 10 && <SearchField label="Search secrets" placeholder="Search names" value={words} />}
                <ul class="items">
                  {entries
                    .filter(({ key }) => key.toLowerCase().includes(words.value.toLowerCase()))
                    .map(entry => (
                      <SecretRow key={`${entry.kind} ${entry.key}`} entry={entry} owner={owner} />
                    ))}
                </ul>
              </>
            )
          }
        </Loaded>
      </section>
      <SecretUses />
    </PageFrame>
  )
}
