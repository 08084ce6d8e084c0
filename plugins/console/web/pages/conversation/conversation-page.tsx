import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { AgentCard } from '../../../../agents/contract.js'
import { askDaemon, faultSentence } from '../../data/api.js'
import { connection, fleet, served } from '../../data/live.js'
import { turnIsLive } from '../../data/roster.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { RunFeed } from '../../data/run-feed.js'
import { person } from '../../data/session/session.js'
import type { RunRow } from '../../run/row-kinds.js'
import { useAction, type ActionState } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { useCommands } from '../../ui/commands.js'
import { usePart } from '../../ui/lists/rows.js'
import { useArchiving } from '../fleet/archiving.js'
import { DiffCounts } from '../fleet/fleet-row.js'
import { countText, usdTextOf, visibleName } from '../../ui/format.js'
import { Icon } from '../../ui/icons.js'
import { VirtualList, type ListControl } from '../../ui/lists/list.js'
import { lazyView } from '../../ui/lazy.js'
import { useLastAnswer, useQuery } from '../../ui/query.js'
import { SideViews } from '../../ui/extensions/side-views.js'
import { useSteadyPresses } from '../../ui/lists/steady.js'
import { cardTitle, StatusTag } from '../../ui/status.js'
import { reaches, type PageProps } from '../registry.js'
import { OpenCardView } from './cards.js'
import { Composer } from './composer.js'
import { RowView, type RowActions } from './rows.js'
import { DataAge } from '../../ui/data-age.js'
import { FaultLine } from '../../ui/page.js'
import { ignored } from '../../../../../sdk/ignored.js'
import { Refusal } from '../../../../../sdk/refusal.js'

const QueuePane = lazyView(async () => (await import('./queue-pane.js')).QueuePane)
const ProcessesPane = lazyView(async () => (await import('./processes-pane.js')).ProcessesPane)
const LandedUncommitted = lazyView(async () => (await import('./uncommitted-note.js')).LandedUncommitted)
const FindBar = lazyView(async () => (await import('./find-bar.js')).FindBar)
const OptionsButton = lazyView(async () => (await import('./options-form.js')).OptionsButton)

const ESTIMATES: { readonly [type in RunRow['type']]: number } = {
  user: 96,
  prose: 120,
  thinking: 44,
  tool: 44,
  card: 140,
  line: 36,
}

/** Statuses of work that may stand in the workspace uncommitted. */
const LANDED: ReadonlySet<AgentCard['status']> = new Set(['landed', 'ready', 'conflict'])

/** The card of a conversation: from the board, or read if it is archived. */
const useAgent = (id: string): { readonly agent?: AgentCard; readonly error?: unknown } => {
  const live = fleet.value.cards.get(id)
  // Read again when it leaves the board: it may be archived, or gone for this person.
  const { data, error } = useQuery(`agent ${id} ${live !== undefined}`, [], async () =>
    fleet.peek().cards.has(id) ? undefined : askDaemon('GET /agents/{id}', { id }),
  )
  const agent = live ?? data
  return agent ? { agent } : { error }
}

interface HeadProps {
  readonly agent: AgentCard | undefined
  readonly id: string
  readonly action: ActionState
  readonly archive: (agents: readonly AgentCard[]) => Promise<void>
}

const Head = ({ agent, id, action, archive }: HeadProps) => {
  const mayWork = reaches(person.value?.role, 'collaborator')
  const title = visibleName(agent ? cardTitle(agent) : id)
  return (
    <header class="page-head">
      <a class="button plainly back" href={fragmentOf('fleet')} aria-label="Back to the fleet">
        <Icon name="back" />
      </a>
      <h1 class="grow one-line" dir="auto">
        {title}
      </h1>
      {agent && <StatusTag status={agent.status} />}
      {mayWork && agent && turnIsLive(agent) && (
        <ActionButton action={action} work={() => askDaemon('POST /agent/stop', { conversationId: id })}>
          Stop
        </ActionButton>
      )}
      {mayWork && agent && !turnIsLive(agent) && agent.archivedAt === undefined && (
        <ActionButton action={action} work={() => archive([agent])}>
          Archive
        </ActionButton>
      )}
      {mayWork && agent && <OptionsButton agent={agent} />}
      {agent?.workflow && (
        <a class="button" href={fragmentOf('workflows', agent.workflow.runId)}>
          Workflow
        </a>
      )}
      {mayWork && agent && served.value.has('share.preview') && (
        <a class="button" href={fragmentOf('share', id)}>
          Share
        </a>
      )}
      {agent?.branch && (
        <a class="button" href={fragmentOf('c', id, 'changes')}>
          Changes <DiffCounts diff={agent.diff} />
        </a>
      )}
    </header>
  )
}

const StatusBar = ({ feed, agent }: { feed: RunFeed; agent: AgentCard | undefined }) => {
  const { standing } = feed.state.value
  const { model, provider, usage, context, note } = standing
  const cost = usage?.costUsd ?? agent?.costUsd
  const words = [
    [...new Set([provider ?? agent?.provider, model ?? agent?.model])].filter(Boolean).join(' · '),
    cost !== undefined && cost > 0 ? usdTextOf(cost) : '',
    context && context.contextWindow > 0
      ? `${Math.round((100 * context.tokens) / context.contextWindow)} % of the context`
      : '',
    note ?? '',
  ].filter(Boolean)
  return words.length ? <p class="status-bar small quiet">{words.join(' — ')}</p> : null
}

const TODO_SIGNS = { pending: '○', in_progress: '◐', completed: '●' } as const

const Todos = ({ feed }: { feed: RunFeed }) => {
  const { todos } = feed.state.value.standing
  if (!todos.length) return null
  const done = todos.filter(({ status }) => status === 'completed').length
  return (
    <details class="folded todos">
      <summary>
        Plan: {countText(done)} of {countText(todos.length)} done
      </summary>
      <ul>
        {todos.map(({ content, status }) => (
          <li key={content}>
            <span aria-hidden="true">{TODO_SIGNS[status] ?? '○'}</span> {visibleName(content)}
            <span class="visually-hidden"> ({status})</span>
          </li>
        ))}
      </ul>
    </details>
  )
}

/** Whether anybody sees this tab. */
const useVisible = (): boolean => {
  const visible = useSignal(document.visibilityState === 'visible')
  useEffect(() => {
    const look = () => {
      visible.value = document.visibilityState === 'visible'
    }
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return visible.value
}

const useFeed = (id: string, agent: AgentCard | undefined): RunFeed => {
  const feed = useMemo(() => new RunFeed(id), [id])
  const visible = useVisible()
  const { loaded } = feed.state.value
  const online = connection.value === 'connected'
  const { run } = agent ?? {}
  const known = agent !== undefined
  useEffect(() => {
    if (known) void feed.open(agent && !turnIsLive(agent) ? agent.run : undefined)
    else feed.pause()
  }, [feed, known])
  useEffect(() => () => feed.close(), [feed])
  useEffect(() => {
    if (!visible) feed.pause()
    else if (loaded && online && run) void feed.follow(run)
  }, [feed, run, loaded, visible, online])
  return feed
}

/** One conversation: its record, its open card, and the composer. */
const Conversation = ({ id }: { id: string }) => {
  const { agent, error: missing } = useAgent(id)
  const feed = useFeed(id, agent)
  const action = useAction()
  const finding = useSignal(false)
  const control = useRef<ListControl>(undefined)
  const reached = useRef<number>(undefined)
  const state = feed.state.value
  const mayWork = reaches(person.value?.role, 'collaborator')
  const mayLand = reaches(person.value?.role, 'maintainer')
  // What was read of a conversation that is gone, or that this person may no longer see, is shown no longer.
  const gone = agent === undefined && missing !== undefined
  const unknown = gone && missing instanceof Refusal && missing.reason === 'not-found'
  const { loaded, earlier, skipped } = state
  const rows = gone ? [] : state.rows
  const error = state.error ?? missing
  // While another card is read the ones before stay, with what a person types there.
  const cards = useLastAnswer(
    useQuery(`cards ${id} ${agent?.cards?.map(({ requestId }) => requestId).join() ?? ''}`, [], async () =>
      agent?.cards?.length ? (await askDaemon('GET /agent/cards', { conversationId: id })).cards : [],
    ),
  )
  const open = (cards ?? []).filter(({ card }) => agent?.cards?.some(({ requestId }) => requestId === card.requestId))
  const actions = useMemo<RowActions>(
    () => ({
      rewind: index =>
        void action.run(async () => {
          if (!agent?.branch && !confirm('This takes the whole workspace back.')) return
          await askDaemon('POST /agent/rewind', {
            ...{ conversationId: id, index },
            ...(feed.newest !== undefined && { expect: feed.newest }),
          })
          await feed.open(agent?.run)
        }),
      fork: keep => goTo('new', id, String(keep)),
    }),
    [id, agent?.run, agent?.branch],
  )
  // Keys that are typed while it is loaded would act on the page.
  useEffect(() => void FindBar.preload().catch(ignored('it is loaded when it is opened')), [])
  useEffect(() => {
    if (mayWork) void askDaemon('POST /agents/{id}/seen', { id }).catch(ignored('the next visit says it'))
  }, [id])
  const archiving = useArchiving(action, () => goTo('fleet'))
  const asked = useRef<HTMLDivElement>(null)
  useSteadyPresses(asked)
  const toMessage = (by: 1 | -1) => {
    const from = control.current?.firstShown() ?? 0
    const said = rows.flatMap((row, at) => (row.type === 'user' ? [at] : []))
    const at = reached.current ?? from
    const next = by > 0 ? said.find(one => one > at) : said.findLast(one => one < at)
    if (next === undefined) return
    reached.current = next
    control.current?.toIndex(next)
  }
  useCommands([
    {
      ...{ id: 'find', label: 'Find in this conversation', group: 'Conversation', keys: 'mod+f' },
      run: () => {
        finding.value = true
      },
    },
    ...(mayWork
      ? [
          {
            ...{ id: 'composer', label: 'Write to the agent', group: 'Conversation', keys: 'r' },
            run: () => void usePart('composer', 'focus'),
          },
        ]
      : []),
    {
      ...{ id: 'previous message', label: 'Previous message of a person', group: 'Conversation', keys: '[' },
      run: () => toMessage(-1),
    },
    {
      ...{ id: 'next message', label: 'Next message of a person', group: 'Conversation', keys: ']' },
      run: () => toMessage(1),
    },
    ...(agent?.branch
      ? [
          {
            ...{ id: 'changes', label: 'Changes', group: 'Conversation', keys: 'd' },
            run: () => goTo('c', id, 'changes'),
          },
        ]
      : []),
    ...(mayWork && agent && !turnIsLive(agent) && agent.archivedAt === undefined
      ? [
          {
            ...{ id: 'archive', label: 'Archive this conversation', group: 'Conversation', keys: 'e' },
            run: () => archiving.run([agent]),
          },
        ]
      : []),
  ])
  return (
    <>
      <Head agent={agent} id={id} action={action} archive={archiving.archive} />
      {archiving.question}
      {finding.value && (
        <FindBar
          feed={feed}
          show={at => control.current?.toIndex(at)}
          close={() => {
            finding.value = false
          }}
        />
      )}
      <main class="conversation">
        <FaultLine fault={action.fault} />
        <DataAge />
        {Boolean(error) && (
          <p class="notice bad">
            {faultSentence(error)} {unknown && <a href={fragmentOf('fleet')}>Show the conversations there are</a>}
          </p>
        )}
        {(earlier > 0 || skipped > 0) && (
          <p class="earlier small quiet">
            {skipped > 0 ? (
              <button class="link" type="button" onClick={() => void feed.whole()}>
                Load {countText(skipped)} earlier steps of this run
              </button>
            ) : (
              <button class="link" type="button" onClick={() => void feed.earlier()}>
                Load earlier messages
              </button>
            )}
          </p>
        )}
        {loaded ? (
          <VirtualList
            class="transcript"
            label="Transcript"
            followsEnd
            items={rows}
            keyOf={row => row.key}
            estimate={row => ESTIMATES[row.type]}
            onStart={() => void feed.earlier()}
            control={given => {
              control.current = given
            }}
            render={row => (
              <div class="transcript-row">
                <RowView row={row} actions={mayWork ? actions : undefined} />
              </div>
            )}
          />
        ) : (
          <div class="list-box" aria-busy="true" />
        )}
        <div class="dock">
          {agent && mayLand && LANDED.has(agent.status) && <LandedUncommitted agent={agent} />}
          <Todos feed={feed} />
          {agent?.processes && <ProcessesPane id={id} count={agent.processes} />}
          <div ref={asked} aria-live="polite">
            {open.map(({ card }) => (
              <OpenCardView key={card.requestId} card={card} />
            ))}
          </div>
          {agent?.waiting !== undefined && (
            <QueuePane
              id={id}
              waiting={agent.waiting}
              paused={agent.queuePaused === true}
              changes={state.standing.queued}
            />
          )}
          {mayWork && !unknown && (
            <Composer
              id={id}
              agent={agent}
              live={agent !== undefined && turnIsLive(agent)}
              commands={state.standing.commands}
            />
          )}
          <SideViews beside="conversation" surface={{ conversation: id }} keys={{ status: agent?.status }} />
          {agent?.run && (
            <SideViews beside="run" surface={{ conversation: id, run: agent.run }} keys={{ status: agent.status }} />
          )}
          <StatusBar feed={feed} agent={agent} />
        </div>
      </main>
    </>
  )
}

const Changes = lazyView(async () => (await import('../review/review-page.js')).ReviewPage)

/** The page of one conversation, or of its changes. */
export const ConversationPage = ({ rest }: PageProps) => {
  const [id = '', part, ...more] = rest
  return part === 'changes' ? <ChangesOf key={id} id={id} rest={more} /> : <Conversation key={id} id={id} />
}

const ChangesOf = ({ id, rest }: { id: string; rest: readonly string[] }) => (
  <Changes id={id} agent={useAgent(id).agent} rest={rest} />
)
