import type { AgentCard } from '../../../../agents/contract.js'
import { fragmentOf } from '../../data/route.js'
import { agoOf, countText, momentOf, spanText, visibleName } from '../../ui/format.js'
import { StatusTag, cardTitle } from '../../ui/status.js'

const detailOf = ({ cards, failure, activity, landRequested, status, startedAt, workflow }: AgentCard): string => {
  if (cards?.length) return cards.map(({ title }) => title).join(' · ')
  if (status === 'error' && failure) return failure
  if (landRequested) return 'Somebody asks for this work to be landed.'
  const { tool, target, todo } = activity ?? {}
  const doing = [todo, [tool, target].filter(Boolean).join(' ')].filter(Boolean).join(' · ')
  if (startedAt && doing) return `${doing} · ${spanText(Date.now() - startedAt)}`
  return doing || (workflow ? `${workflow.name}: step ${workflow.index} of ${workflow.total}` : '')
}

/** The lines that a conversation changed. */
export const DiffCounts = ({ diff }: Pick<AgentCard, 'diff'>) =>
  diff && diff.files > 0 ? (
    <span class="mono diff-counts">
      <span class="plus">+{countText(diff.insertions)}</span> <span class="minus">−{countText(diff.deletions)}</span>
      <span class="visually-hidden"> in {countText(diff.files)} files</span>
    </span>
  ) : null

interface FleetRowProps {
  readonly card: AgentCard
  readonly snippet?: string | undefined
  readonly selected: boolean
  readonly toggle?: ((id: string) => void) | undefined
}

/** One conversation of the board. */
export const FleetRow = ({ card, snippet, selected, toggle }: FleetRowProps) => {
  const title = visibleName(cardTitle(card))
  const detail = snippet ?? detailOf(card)
  return (
    <div class="fleet-row">
      {toggle && (
        <label class="fleet-pick">
          <input type="checkbox" checked={selected} onChange={() => toggle(card.id)} />
          <span class="visually-hidden">Select {title}</span>
        </label>
      )}
      <a class="fleet-link" href={fragmentOf('c', card.id)} data-row={card.id}>
        <span class="fleet-title" dir="auto">
          {title}
        </span>
        <span class="fleet-detail quiet small" dir="auto">
          {detail ? visibleName(detail) : ' '}
        </span>
      </a>
      <span class="fleet-facts">
        <DiffCounts diff={card.diff} />
        {card.waiting !== undefined && <span class="tag">{card.waiting} queued</span>}
        <StatusTag status={card.status} />
        <time class="quiet small" dateTime={new Date(card.updatedAt).toISOString()} title={momentOf(card.updatedAt)}>
          {agoOf(card.updatedAt)}
        </time>
      </span>
    </div>
  )
}
