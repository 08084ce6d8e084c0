import { useSignal } from '@preact/signals'
import type {
  AutomationCatalog,
  AutomationRow,
  AutomationRun,
  AutomationTrigger,
  CatalogTemplate,
} from '../../../../automations/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { agoOf, momentOf, spanText, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { ChatForm } from '../webchat/chat-form.js'
import { isChat } from '../webchat/chats.js'
import { AutomationForm } from './automation-form.js'
import { definitionOf } from './definition.js'
import { HeldWakeSection } from './held-wakes.js'
import { TextBlock } from '../../ui/text-block.js'

const OUTCOMES: { readonly [outcome in AutomationRun['outcome']]: ToneWord } = {
  completed: ['good', 'Completed'],
  skipped: ['', 'Skipped'],
  error: ['bad', 'Failed'],
  interrupted: ['warn', 'Interrupted'],
}
const EMPTY: AutomationCatalog = { sources: [], templates: [], workspaceEvents: [] }

const changed = () => refetch(new Set(['automations']))
const useCatalog = (): AutomationCatalog =>
  useQuery('automation catalog', ['extensions'], () => askDaemon('GET /automations/catalog')).data ?? EMPTY

const triggerText = (trigger: AutomationTrigger): string => {
  switch (trigger.kind) {
    case 'schedule':
      return `${trigger.cron} (${trigger.timeZone ?? 'UTC'})`
    case 'event':
      return 'its webhook'
    case 'listener':
      return trigger.provider === 'webchat' ? 'visitors of web pages' : `messages of ${trigger.provider}`
    case 'workspace':
      return trigger.event
  }
}

const stateOf = ({ problem, running, enabled, disabledBy }: AutomationRow): ToneWord => {
  if (problem !== undefined) return ['warn', 'Cannot fire']
  if (running) return ['busy', 'Running']
  if (enabled) return ['good', 'On']
  return disabledBy === 'failures' ? ['bad', 'Switched off after failures'] : ['', 'Off']
}

/** The facts of an automation in one line. */
const Facts = ({ row }: { row: AutomationRow }) => {
  const { trigger, nextRun, missed, queued, failures, lastError, problem } = row
  return (
    <>
      <div dir="auto">
        {visibleName(triggerText(trigger))}
        {nextRun !== undefined && ` · next ${momentOf(nextRun)}`}
        {queued !== undefined && ` · ${queued} waiting`}
        {missed !== undefined && ` · ${missed} missed`}
        {failures > 0 && ` · ${failures} failed in a row`}
      </div>
      {problem !== undefined && <div dir="auto">{visibleName(problem)}</div>}
      {lastError !== undefined && <div dir="auto">{visibleName(lastError)}</div>}
    </>
  )
}

/** What maintainers do with an automation. */
const Actions = ({ row, catalog }: { row: AutomationRow; catalog: AutomationCatalog }) => {
  const { id, enabled, trigger } = row
  const action = useAction()
  const said = useSignal('')
  const does = (label: string, work: () => Promise<unknown>) => (
    <ActionButton action={action} work={work} about={id}>
      {label}
    </ActionButton>
  )
  return (
    <>
      {trigger.kind !== 'listener'
        && does('Run now', async () => {
          const { skipped } = await askDaemon('POST /automations/{id}/run', { id })
          said.value = skipped === undefined ? 'It runs.' : `It did not run: ${skipped}`
          changed()
        })}
      {does(enabled ? 'Switch off' : 'Switch on', async () => {
        await askDaemon('POST /automations/{id}/enabled', { id, enabled: !enabled })
        changed()
      })}
      <FormButton
        label="Edit"
        about={id}
        form={close => {
          const given = definitionOf(row)
          if (isChat(given)) return <ChatForm close={close} given={given} />
          return <AutomationForm close={close} catalog={catalog} given={given} edits />
        }}
      />
      <AskButton
        label="Remove"
        about={id}
        title={`Remove ${visibleName(id)}?`}
        work={async () => {
          await askDaemon('DELETE /automations/{id}', { id })
          changed()
          location.hash = fragmentOf('automations')
        }}
      >
        <p>Its history, its token and what waits are deleted; its conversations stay.</p>
      </AskButton>
      {said.value && (
        <p role="status" class="small" dir="auto">
          {visibleText(said.value)}
        </p>
      )}
      <FaultLine fault={action.fault} />
    </>
  )
}

const RunRow = ({ run }: { run: AutomationRun }) => {
  const { at, outcome, detail, conversationId, durationMs, cause, by } = run
  const moment = momentOf(at)
  return (
    <Item
      title={conversationId ? <a href={fragmentOf('c', conversationId)}>{moment}</a> : moment}
      state={OUTCOMES[outcome]}
      detail={
        <div dir="auto">
          {cause}
          {by !== undefined && ` by ${visibleName(by)}`}
          {durationMs !== undefined && ` · ${spanText(durationMs)}`}
          {detail !== undefined && ` · ${visibleName(detail)}`}
        </div>
      }
    />
  )
}

/** The address of a webhook, and its token when somebody asks for it. */
const Webhook = ({ id }: { id: string }) => {
  const action = useAction()
  const shown = useSignal<{ url: string; token: string } | undefined>(undefined)
  const { url, token } = shown.value ?? {}
  return (
    <section aria-labelledby="webhook-heading">
      <h2 id="webhook-heading">Webhook</h2>
      {token === undefined ? (
        <p class="quiet">Programs start it with a POST to its address, with its token.</p>
      ) : (
        <Pairs
          mono
          rows={[
            ['Address', url],
            ['Token', token],
          ]}
        />
      )}
      <div class="row">
        <ActionButton
          action={action}
          work={async () => {
            shown.value = await askDaemon('GET /automations/{id}/token', { id })
          }}
        >
          Show the token
        </ActionButton>
        <AskButton
          label="Make a new token"
          about={`for ${id}`}
          title="Make a new token?"
          work={async () => {
            shown.value = await askDaemon('POST /automations/{id}/token/rotate', { id })
          }}
        >
          <p>The old one stops working at once.</p>
        </AskButton>
      </div>
      <FaultLine fault={action.fault} />
    </section>
  )
}

const Detail = ({ id }: { id: string }) => {
  const row = useQuery(`automation ${id}`, ['automations', 'extensions', 'personas'], () =>
    askDaemon('GET /automations/{id}', { id, limit: 200 }),
  )
  const catalog = useCatalog()
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame
      title={visibleName(id)}
      tools={
        <a class="button" href={fragmentOf('automations')}>
          All automations
        </a>
      }
    >
      <Loaded query={row}>
        {found => (
          <>
            <ul class="items">
              <Item title="Now" state={stateOf(found)} detail={<Facts row={found} />}>
                {maintains && <Actions row={found} catalog={catalog} />}
              </Item>
            </ul>
            <section aria-labelledby="prompt-heading">
              <h2 id="prompt-heading">What the agent is asked</h2>
              <TextBlock class="mono" dir="auto" what="the prompt" text={found.prompt} />
            </section>
            {maintains && found.trigger.kind === 'event' && <Webhook id={id} />}
            <section aria-labelledby="runs-heading">
              <h2 id="runs-heading">History</h2>
              {found.runs.length === 0 ? (
                <p class="quiet">It has not run yet.</p>
              ) : (
                <ul class="items">
                  {found.runs.map(run => (
                    <RunRow key={run.at} run={run} />
                  ))}
                </ul>
              )}
            </section>
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}

const Templates = ({ templates, catalog }: { templates: readonly CatalogTemplate[]; catalog: AutomationCatalog }) =>
  templates.length === 0 ? null : (
    <section aria-labelledby="templates-heading">
      <h2 id="templates-heading">Ready-made</h2>
      <ul class="items">
        {templates.map(({ id, title, description, note, extension, trigger, prompt, guard }) => (
          <Item
            key={`${extension} ${id}`}
            title={visibleName(title)}
            detail={<div dir="auto">{visibleName(description ?? note ?? `of ${extension}`)}</div>}
          >
            <FormButton
              label="Use"
              about={title}
              form={close => (
                <AutomationForm
                  close={close}
                  catalog={catalog}
                  given={{ id, trigger, prompt, ...(guard !== undefined && { guard }) }}
                />
              )}
            />
          </Item>
        ))}
      </ul>
    </section>
  )

const List = () => {
  const list = useQuery('automations', ['automations', 'extensions', 'personas'], () => askDaemon('GET /automations'))
  const catalog = useCatalog()
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame title="Automations">
      <HeldWakeSection />
      <section aria-labelledby="automations-heading">
        <div class="section-head">
          <h2 id="automations-heading">Work that starts by itself</h2>
          {maintains && (
            <FormButton
              label="Add an automation"
              primary
              form={close => <AutomationForm close={close} catalog={catalog} />}
            />
          )}
        </div>
        <Loaded query={list}>
          {({ automations, problems }) => (
            <>
              {problems.map(({ id, message }) => (
                <p key={`${id} ${message}`} class="notice bad" dir="auto">
                  {id !== undefined && `${visibleName(id)}: `}
                  {visibleName(message)}
                </p>
              ))}
              {automations.length === 0 ? (
                <p class="quiet">
                  Automations start agents on a schedule, by a webhook, by a message or after an event of the workspace.
                </p>
              ) : (
                <ul class="items">
                  {automations.map(row => (
                    <Item
                      key={row.id}
                      title={<a href={fragmentOf('automations', row.id)}>{visibleName(row.id)}</a>}
                      state={stateOf(row)}
                      detail={<Facts row={row} />}
                      facts={row.runs[0] && <span class="quiet small">{agoOf(row.runs[0].at)}</span>}
                    >
                      {maintains && <Actions row={row} catalog={catalog} />}
                    </Item>
                  ))}
                </ul>
              )}
            </>
          )}
        </Loaded>
      </section>
      {maintains && <Templates templates={catalog.templates} catalog={catalog} />}
    </PageFrame>
  )
}

/** Work that starts by itself: what there is, what waits, and what became of it. */
export const AutomationsPage = ({ rest }: PageProps) =>
  rest[0] === undefined ? <List /> : <Detail key={rest[0]} id={rest[0]} />
