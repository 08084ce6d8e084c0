import type { AgentCard } from '../../../../agents/contract.js'
import { askDaemon } from '../../data/api.js'
import { attention, fleet } from '../../data/live.js'
import { fragmentOf } from '../../data/route.js'
import { waitsForPerson } from '../../data/roster.js'
import { person } from '../../data/session/session.js'
import { agoOf, momentOf, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { cardTitle, StatusTag } from '../../ui/status.js'
import { pageIsVisible } from '../../ui/visible.js'
import { OpenCardView } from '../conversation/cards.js'
import { DiffCounts } from '../fleet/fleet-row.js'
import { HeldWakeSection } from '../automations/held-wakes.js'
import { ApprovalsSection } from '../approvals/approvals-section.js'
import { NeedsSection } from '../needs/needs-section.js'
import { reaches, type PageProps } from '../registry.js'

const titleOf = (id: string): string => {
  const agent = fleet.value.cards.get(id)
  return visibleName(agent ? cardTitle(agent) : id)
}

const Questions = () => {
  // The cards of the board say when to read the whole ones again.
  const known = [...fleet.value.cards.values()].flatMap(({ cards }) => cards ?? []).map(({ requestId }) => requestId)
  const list = useQuery(`inbox ${known.sort().join()}`, [], () => askDaemon('GET /agent/cards'))
  return (
    <Loaded query={list}>
      {({ cards }) =>
        cards.length > 0 && (
          <section aria-labelledby="inbox-questions">
            <h2 id="inbox-questions">Questions</h2>
            {cards.map(({ conversationId, raisedAt, card }) => (
              <article key={card.requestId} class="inbox-card" aria-label={titleOf(conversationId)}>
                <div class="row apart">
                  <a href={fragmentOf('c', conversationId)} data-row={conversationId} dir="auto">
                    {titleOf(conversationId)}
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

/** Everything that waits for the signed-in person: questions, requests to land, and stuck work. */
export const InboxPage = (_: PageProps) => {
  const { landings, stuck } = waitsForPerson(fleet.value.cards.values(), {
    email: person.value?.email ?? '',
    lands: reaches(person.value?.role, 'maintainer'),
  })
  const nothing =
    attention.value?.cards === 0
    && attention.value.approvals + attention.value.needs === 0
    && landings.length === 0
    && stuck.length === 0
  return (
    <PageFrame title="Inbox">
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
      <Questions />
      {pageIsVisible({ role: 'viewer', needs: 'needs.list' }) && <NeedsSection />}
      {pageIsVisible({ role: 'viewer', needs: 'approvals.list' }) && <ApprovalsSection />}
      {pageIsVisible({ role: 'viewer', needs: 'automations.pendingList' }) && <HeldWakeSection />}
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
