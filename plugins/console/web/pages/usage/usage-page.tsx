import { useSignal } from '@preact/signals'
import type { UsageRow } from '../../../../usage/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { fleet } from '../../data/live.js'
import { ChoiceField } from '../../ui/fields.js'
import { FigureTable } from '../../ui/lists/figure-table.js'
import { countText, dayText, usdTextOf, visibleName } from '../../ui/format.js'
import { Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { cardTitle } from '../../ui/status.js'
import type { PageProps } from '../registry.js'
import { BudgetSection } from './budget-section.js'

const SPANS = [
  ['7', 'The last 7 days'],
  ['30', 'The last 30 days'],
  ['90', 'The last 90 days'],
  ['', 'Always'],
] as const
const BY = [
  ['day', 'Day'],
  ['conversationId', 'Conversation'],
  ['model', 'Model'],
  ['provider', 'Provider'],
] as const
type UsageKey = (typeof BY)[number][0]
const QUERY: { readonly [key in UsageKey]: string } = {
  day: 'day',
  conversationId: 'conversation',
  model: 'model',
  provider: 'provider',
}
const MOST_ROWS = 500

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

const Name = ({ row, by }: { row: UsageRow; by: UsageKey }) => {
  const value = row[by]
  if (value === undefined) return <span class="quiet">none</span>
  if (by === 'day') return <time dateTime={value}>{dayText(value)}</time>
  if (by !== 'conversationId') return <span dir="auto">{visibleName(value)}</span>
  const card = fleet.value.cards.get(value)
  return (
    <a href={fragmentOf('c', value)} dir="auto">
      {visibleName(card ? cardTitle(card) : value)}
    </a>
  )
}

const Sums = ({ row }: { row: UsageRow }) => (
  <>
    <td class="number">{countText(row.turns)}</td>
    <td class="number">{countText(row.inputTokens + row.cacheReadTokens + row.cacheCreationTokens)}</td>
    <td class="number">{countText(row.outputTokens)}</td>
    <td class="number">
      {usdTextOf(row.costUsd)}
      {row.unpriced > 0 && <span class="quiet small"> + {countText(row.unpriced)} unpriced</span>}
    </td>
  </>
)

/** What turns cost, and the budgets that limit it. */
export const UsagePage = (_: PageProps) => {
  const span = useSignal<(typeof SPANS)[number][0]>('30')
  const by = useSignal<UsageKey>('day')
  const input = {
    by: QUERY[by.value],
    ...(span.value && { from: dayOf(Date.now() - (Number(span.value) - 1) * 86_400_000) }),
  }
  const key = `usage ${JSON.stringify(input)}`
  const rollup = useQuery(key, ['usage'], () => askDaemon('GET /usage/rollup', input))
  return (
    <PageFrame title="Usage">
      <BudgetSection />
      <section aria-labelledby="rollup-heading">
        <div class="section-head">
          <h2 id="rollup-heading">What was used</h2>
        </div>
        <div class="filters inline">
          <ChoiceField label="Time" value={span} choices={SPANS} />
          <ChoiceField label="Grouped by" value={by} choices={BY} />
        </div>
        <Loaded query={rollup}>
          {({ rows, total }) =>
            rows.length === 0 ? (
              <p class="quiet">Nothing was used in this time. What turns cost appears here as they end.</p>
            ) : (
              <>
                <FigureTable
                  head={[BY.find(([one]) => one === by.value)![1], 'Requests', 'Tokens in', 'Tokens out', 'Cost']}
                >
                  {(by.value === 'day' ? [...rows].reverse() : rows).slice(0, MOST_ROWS).map((row, at) => (
                    <tr key={row[by.value] ?? at}>
                      <th scope="row">
                        <Name row={row} by={by.value} />
                      </th>
                      <Sums row={row} />
                    </tr>
                  ))}
                  <tr class="total">
                    <th scope="row">Total</th>
                    <Sums row={total} />
                  </tr>
                </FigureTable>
                {rows.length > MOST_ROWS && (
                  <p class="quiet small">{countText(rows.length - MOST_ROWS)} more are in the sum. Choose less time.</p>
                )}
              </>
            )
          }
        </Loaded>
        <p class="quiet small">Days are days in UTC. Work of a subscription counts at list price.</p>
      </section>
    </PageFrame>
  )
}
