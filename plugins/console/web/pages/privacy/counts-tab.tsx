import type { ShieldStats } from '../../../../shield/contract.js'
import { askDaemon } from '../../data/api.js'
import { countText, visibleName } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'

const Counts = ({ stats }: { stats: ShieldStats }) => {
  const { requests, masked, restored, unrestored, perProvider, perDay, overheadMs, suggestions } = stats
  return (
    <>
      <section aria-labelledby="requests-heading">
        <h2 id="requests-heading">Requests of the last 90 days</h2>
        <Pairs
          rows={[
            ['Masked', countText(requests.shielded)],
            ['To trusted providers', countText(requests.trusted)],
            ['Refused', countText(requests.blocked)],
            ['Tokens restored', countText(restored)],
            ['Tokens lost', unrestored > 0 ? countText(unrestored) : undefined],
            ['Added time', `${overheadMs.p50} ms, at most ${overheadMs.p95} ms of 95 %`],
          ]}
        />
      </section>
      {suggestions.length > 0 && (
        <section aria-labelledby="suggestions-heading">
          <h2 id="suggestions-heading">What you might change</h2>
          <ul class="items">
            {suggestions.map(({ kind, detector, source, text }) => (
              <Item key={`${kind} ${detector} ${source ?? ''}`} title={visibleName(text)} />
            ))}
          </ul>
        </section>
      )}
      <section aria-labelledby="masked-heading">
        <h2 id="masked-heading">What was masked</h2>
        {masked.length === 0 && <p class="quiet">Nothing was masked.</p>}
        <ul class="items">
          {masked.map(({ kind, detector, count, distinct }) => (
            <Item
              key={`${kind} ${detector}`}
              title={visibleName(kind)}
              detail={detector}
              facts={`${countText(count)} places, ${countText(distinct)} values`}
            />
          ))}
        </ul>
      </section>
      <section aria-labelledby="by-provider-heading">
        <h2 id="by-provider-heading">By provider and day</h2>
        <ul class="items">
          {perProvider.map(({ provider, requests: made, masked: places, blocked }) => (
            <Item
              key={provider}
              title={visibleName(provider)}
              facts={`${countText(made)} requests, ${countText(places)} masked, ${countText(blocked)} refused`}
            />
          ))}
          {perDay.map(({ day, masked: places, blocked }) => (
            <Item key={day} title={day} facts={`${countText(places)} masked, ${countText(blocked)} refused`} />
          ))}
        </ul>
      </section>
    </>
  )
}

/** What the shield did, in numbers. */
export const CountsTab = () => {
  const stats = useQuery('shield-stats', ['privacy'], () => askDaemon('GET /shield/stats', {}))
  return <Loaded query={stats}>{found => <Counts stats={found} />}</Loaded>
}
