import { useSignal } from '@preact/signals'
import type { ExtensionRecord, RemovalPlan } from '../../../../extensions/contract.js'
import { askDaemon } from '../../data/api.js'
import { served } from '../../data/live.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { extensionName } from '../../data/extensions/shown-extensions.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame } from '../../ui/page.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { DeclaredAndUsed } from './declared-entries.js'
import { DevSection } from './dev-section.js'
import { ProgramsOfExtension } from './extension-programs.js'
import { ExtensionSettingsSection } from './extension-settings.js'
import { extensionState } from './extension-state.js'
import { PendingItem } from './powers.js'
import { PolicyForm, UpdateForm } from './update-form.js'

const changed = () => refetch(new Set(['extensions']))

const Plan = ({ plan }: { plan: RemovalPlan }) => {
  const { blocked, files, connections, settings, processes, automations, keeps } = plan
  if (blocked !== undefined) return <p class="notice warn">It cannot be removed: {visibleName(blocked)}.</p>
  const lines = [
    ...files.map(({ path, detail }) => `Deletes ${path}: ${detail}`),
    ...connections.map(({ id, effect }) => `Connection ${id}: ${effect}`),
    ...(settings.length > 0 ? [`Forgets the settings ${settings.map(({ key }) => key).join(', ')}`] : []),
    ...(processes.length > 0 ? [`Ends the programs ${processes.join(', ')}`] : []),
    ...automations.map(one => `The automation ${one} stays and no longer starts`),
    ...keeps,
  ]
  return (
    <ul class="plain-list" dir="auto">
      {lines.map(line => (
        <li key={line}>{visibleName(line)}</li>
      ))}
    </ul>
  )
}

const RemovalQuestion = ({ id }: { id: string }) => {
  const plan = useQuery(`removal ${id}`, ['extensions'], () => askDaemon('GET /extensions/{id}/removal', { id }))
  return <Loaded query={plan}>{given => <Plan plan={given} />}</Loaded>
}

const Actions = ({ record }: { record: ExtensionRecord }) => {
  const { id, enabled, essential, source, update, previous } = record
  const action = useAction()
  const maintains = reaches(person.value?.role, 'maintainer')
  const owns = reaches(person.value?.role, 'owner')
  if (!maintains || source === 'builtin') return null
  return (
    <section aria-label="What can be done">
      <div class="row">
        <ActionButton
          action={action}
          disabled={essential}
          work={async () => {
            await askDaemon('POST /extensions/{id}/enabled', { id, enabled: !enabled })
            changed()
          }}
        >
          {enabled ? 'Switch off' : 'Switch on'}
        </ActionButton>
        {source === 'installed' && (
          <FormButton
            label="Update"
            about={id}
            primary={update !== undefined}
            form={close => <UpdateForm record={record} owns={owns} close={close} />}
          />
        )}
        {source === 'installed' && owns && (
          <FormButton label="Policy" about={id} form={close => <PolicyForm record={record} close={close} />} />
        )}
        {previous && owns && (
          <AskButton
            label="Revert"
            about={id}
            title={`Go back to ${previous.version ?? previous.ref.slice(0, 12)}?`}
            work={async () => {
              await askDaemon('POST /extensions/{id}/revert', { id, ref: previous.ref })
              changed()
            }}
          >
            <p>The present version is kept, so that you can come back. What it stored stays as it is.</p>
          </AskButton>
        )}
        {owns && (
          <AskButton
            label="Remove"
            about={id}
            title={`Remove ${id}?`}
            work={async () => {
              await askDaemon('POST /extensions/{id}/remove', { id })
              changed()
              goTo('extensions')
            }}
          >
            <RemovalQuestion id={id} />
          </AskButton>
        )}
      </div>
      <FaultLine fault={action.fault} />
    </section>
  )
}

const HEALTH = {
  watching: 'The update is watched for a minute.',
  unhealthy: 'The update does not run as it should.',
} as const

const Notices = ({ record: { problems, advisory, update, health, backend } }: { record: ExtensionRecord }) => (
  <>
    {advisory && (
      <p class="notice bad">
        A registry warns of it{advisory.autoDisabled ? ', so it was switched off' : ''}: {visibleName(advisory.reason)}
      </p>
    )}
    {health && health.state !== 'healthy' && (
      <p class={`notice ${health.state === 'unhealthy' ? 'bad' : ''}`}>
        {HEALTH[health.state]} {health.detail !== undefined && visibleName(health.detail)}
        {health.autoReverted && ' The version before was restored.'}
      </p>
    )}
    {update?.needsReview !== undefined && (
      <p class="notice warn">The update waits for a person: {visibleName(update.needsReview)}</p>
    )}
    {update?.review && (
      <p class="notice">
        <a href={fragmentOf('c', update.review.conversationId)}>What an agent says of the update</a>
      </p>
    )}
    {backend?.detail !== undefined && <p class="notice warn">{visibleName(backend.detail)}</p>}
    {problems.map(problem => (
      <p key={problem} class="notice warn">
        {visibleName(problem)}
      </p>
    ))}
  </>
)

const CHECKS = { pass: ['good', 'Good'], warn: ['warn', 'Look'], fail: ['bad', 'Failed'] } as const

const Readiness = ({ id }: { id: string }) => {
  const open = useSignal(false)
  return (
    <section aria-labelledby="readiness-heading">
      <h2 id="readiness-heading">Could others run it?</h2>
      <button
        class="button"
        type="button"
        aria-expanded={open.value}
        onClick={() => {
          open.value = !open.value
        }}
      >
        {open.value ? 'Hide the checks' : 'Check'}
      </button>
      {open.value && <Checks id={id} />}
    </section>
  )
}

const Checks = ({ id }: { id: string }) => {
  const found = useQuery(`readiness ${id}`, ['extensions'], () => askDaemon('GET /extensions/{id}/readiness', { id }))
  return (
    <Loaded query={found}>
      {({ checks }) => (
        <ul class="items">
          {checks.map(({ id: check, label, status, detail }) => (
            <Item key={check} title={label} state={CHECKS[status]} detail={visibleName(detail)} />
          ))}
        </ul>
      )}
    </Loaded>
  )
}

const Shows = ({ record: { id, manifest, pageCalls } }: { record: ExtensionRecord }) => {
  const views = manifest.contributes?.views ?? []
  const viewers = manifest.contributes?.viewers ?? []
  const path = useSignal('')
  if (!pageCalls || (views.length === 0 && viewers.length === 0)) return null
  return (
    <section aria-labelledby="shows-heading">
      <h2 id="shows-heading">Its pages</h2>
      <ul class="plain-list">
        {views.map(({ id: view, label }) => (
          <li key={view}>
            <a href={fragmentOf('x', id, view)} dir="auto">
              {visibleName(label)}
            </a>
          </li>
        ))}
      </ul>
      {viewers.length > 0 && (
        <form
          class="row"
          onSubmit={event => {
            event.preventDefault()
            const ending = path.value.split('.').at(-1)!.toLowerCase()
            const viewer = viewers.find(({ extensions }) => extensions.includes(ending)) ?? viewers[0]!
            goTo('x', id, 'file', viewer.id, ...path.value.split('/').filter(Boolean))
          }}
        >
          <label class="field grow">
            File to draw ({[...new Set(viewers.flatMap(({ extensions }) => extensions))].join(', ')})
            <input
              required
              value={path.value}
              onInput={event => {
                path.value = event.currentTarget.value
              }}
            />
          </label>
          <button class="button" type="submit">
            Open
          </button>
        </form>
      )}
    </section>
  )
}

const Facts = ({ record }: { record: ExtensionRecord }) => {
  const { id, manifest, source, commit } = record
  const [tone, word] = extensionState(record)
  return (
    <p>
      <span class={`tag ${tone}`}>{word}</span> <span class="mono">{visibleName(id)}</span>{' '}
      {visibleName(manifest.version ?? '0.0.0')} · {source === 'installed' ? 'installed at' : 'of the workspace,'}{' '}
      <span class="mono">{commit.slice(0, 12)}</span>
      {record.health?.state === 'healthy' && ` · updated ${momentOf(Date.parse(record.health.at))}`}
    </p>
  )
}

/** One extension: how it stands, what it declares and uses, its settings, and what can be done with it. */
export const ExtensionDetail = ({ id }: { id: string }) => {
  const list = useQuery('extensions', ['extensions'], () => askDaemon('GET /extensions'))
  const record = list.data?.extensions.find(each => each.id === id)
  const waiting = list.data?.pending.find(each => each.id === id)
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame
      title={visibleName(record ? extensionName(record) : id)}
      tools={
        <a class="button" href={fragmentOf('extensions')}>
          All extensions
        </a>
      }
    >
      <Loaded query={list}>
        {() =>
          record ? (
            <>
              <Facts record={record} />
              <Notices record={record} />
              <Actions record={record} />
              <Shows record={record} />
              <ProgramsOfExtension record={record} maintains={maintains} />
              {maintains && record.source === 'installed' && <DevSection record={record} />}
              <DeclaredAndUsed record={record} />
              <ExtensionSettingsSection
                id={id}
                settings={record.manifest.contributes?.settings ?? []}
                mayChange={maintains}
              />
              {maintains && served.value.has('logs.list') && (
                <p>
                  <a href={fragmentOf('logs', `extension-${id}`)}>What it logged</a>
                </p>
              )}
              {maintains && <Readiness id={id} />}
            </>
          ) : waiting ? (
            <ul class="items">
              <PendingItem pending={waiting} maintains={maintains} />
            </ul>
          ) : (
            <p class="quiet">There is no extension of this name.</p>
          )
        }
      </Loaded>
    </PageFrame>
  )
}
