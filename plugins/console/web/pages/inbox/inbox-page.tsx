import { useSignal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { AgentCard } from '../../../../agents/contract.js'
import { askDaemon } from '../../data/api.js'
import { attention, fleet } from '../../data/live.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { waitsForPerson } from '../../data/roster.js'
import { person } from '../../data/session/session.js'
import { conversationTitle } from '../fleet/conversation-title.js'
import { agoOf, momentOf, visibleName } from '../../ui/format.js'
import { useCounted, type CountedProps } from '../../ui/lists/counted.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { cardTitle, StatusTag } from '../../ui/status.js'
import { useSteadyPresses } from '../../ui/lists/steady.js'
import { pageIsVisible } from '../../ui/visible.js'
import { OpenCardView } from '../conversation/cards.js'
import { DiffCounts } from '../fleet/fleet-row.js'
import { HeldWakeSection } from '../automations/held-wakes.js'
import { ApprovalsSection } from '../approvals/approvals-section.js'
import { NeedsSection } from '../needs/needs-section.js'
import { reaches, type PageProps } from '../registry.js'

const namesOf = (cards: readonly { readonly requestId: string }[]): string =>
  cards
    .map(({ requestId }) => requestId)
    .sort()
    .join()

const Questions = (props: CountedProps) => {
  // The cards of the board say when to read the whole ones again. It never shows a card that is raised and answered
  // between two of its events, so what it does not show is read again at the next one.
  const known = namesOf([...fleet.value.cards.values()].flatMap(({ cards }) => cards ?? []))
  const list = useQuery('inbox', ['cards'], () => askDaemon('GET /agent/cards'))
  const { rev } = fleet.value
  const isRead = list.data !== undefined
  useEffect(() => {
    if (list.data && namesOf(list.data.cards.map(({ card }) => card)) !== known) refetch(new Set(['cards']))
  }, [rev, known, isRead])
  useCounted(props, list.data?.cards.length)
  return (
    <Loaded query={list}>
      {({ cards }) =>
        cards.length > 0 && (
          <section aria-labelledby="inbox-questions">
            <h2 id="inbox-questions">Questions</h2>
            {cards.map(({ conversationId, raisedAt, card }) => (
              <article key={card.requestId} class="inbox-card" aria-label={conversationTitle(conversationId)}>
                <div class="row apart">
                  <a href={fragmentOf('c', conversationId)} data-row={conversationId} dir="auto">
                    {conversationTitle(conversationId)}
                  </a>
                  <time class="quiet small" dateTime={new Date(raisedAt).toISOString()} title={momentOf(raisedAt)}>
                    {agoOf(raisedAt)}
                  </time>
                </div>
                <OpenCardView card={card} />
              </article>
            ))}
          </section>
        )
      }
    </Loaded>
  )
}

interface ListProps {
  readonly title: string
  readonly agents: readonly AgentCard[]
  readonly say: (agent: AgentCard) => string
  readonly changes?: true
}

const Conversations = ({ title, agents, say, changes }: ListProps) =>
  agents.length === 0 ? null : (
    <section>
      <h2>{title}</h2>
      <ul class="items">
        {agents.map(agent => (
          <Item
            key={agent.id}
            title={
              <a href={fragmentOf('c', agent.id, ...(changes ? ['changes'] : []))}>{visibleName(cardTitle(agent))}</a>
            }
            detail={visibleName(say(agent))}
            facts={
              <>
                <DiffCounts diff={agent.diff} />
                <StatusTag status={agent.status} />
              </>
            }
          />
        ))}
      </ul>
    </section>
  )

/** What is read for the inbox, and the call each part needs. */
const SECTIONS: readonly { readonly needs: string; readonly Section: FunctionComponent<CountedProps> }[] = [
  { needs: 'agent.cards', Section: Questions },
  { needs: 'needs.list', Section: NeedsSection },
  { needs: 'approvals.list', Section: ApprovalsSection },
  { needs: 'automations.pendingList', Section: HeldWakeSection },
]

/** Everything that waits for the signed-in person: questions, requests to land, and stuck work. */
export const InboxPage = (_: PageProps) => {
  const { landings, stuck } = waitsForPerson(fleet.value.cards.values(), {
    email: person.value?.email ?? '',
    lands: reaches(person.value?.role, 'maintainer'),
  })
  const body = useRef<HTMLElement>(null)
  useSteadyPresses(body)
  const counts = useSignal<{ readonly [section: string]: number }>({})
  const sections = SECTIONS.filter(({ needs }) => pageIsVisible({ role: 'viewer', needs }))
  // Known only when every part was read, and the board is there.
  const nothing =
    attention.value !== undefined
    && landings.length + stuck.length === 0
    && sections.every(({ needs }) => counts.value[needs] === 0)
  return (
    <PageFrame title="Inbox" body={body}>
      {nothing && (
        <div class="empty stack">
          <h2>Nothing waits for you</h2>
          <p class="quiet">
            Questions, needs and proposals of agents appear here, with requests to land work and conversations of yours
            that failed or have conflicts.
          </p>
          <div>
            <a class="button" href={fragmentOf('fleet')}>
              Go to the fleet
            </a>
          </div>
        </div>
      )}
      {sections.map(({ needs, Section }) => (
        <Section
          key={needs}
          counted={entries => {
            counts.value = { ...counts.value, [needs]: entries }
          }}
        />
      ))}
      <Conversations
        title="Asked to be landed"
        agents={landings}
        changes
        say={({ landRequested, lastBy }) =>
          `${landRequested?.name ?? landRequested?.email ?? lastBy} asks for this work to be landed.`
        }
      />
      <Conversations
        title="Stuck"
        agents={stuck}
        say={({ status, failure }) =>
          failure ?? (status === 'conflict' ? 'Its work conflicts with the workspace.' : 'Its last turn failed.')
        }
      />
    </PageFrame>
  )
}
