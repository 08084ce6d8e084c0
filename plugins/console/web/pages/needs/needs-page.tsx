import { askDaemon } from '../../data/api.js'
import { Loaded, PageFrame, Tabs } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { PageProps } from '../registry.js'
import { NeedList } from './need-list.js'

const SETTLED = 'given,declined,withdrawn,expired'

/** What agents wait for, and what became of earlier needs. */
export const NeedsPage = ({ rest: [tab = 'open'] }: PageProps) => {
  const status = tab === 'settled' ? SETTLED : 'open'
  const list = useQuery(`needs ${status}`, ['needs'], () => askDaemon('GET /needs', { status, limit: 200 }))
  return (
    <PageFrame title="Needs">
      <Tabs
        page="needs"
        label="Needs by their state"
        current={tab}
        tabs={[
          ['open', 'Open'],
          ['settled', 'Settled'],
        ]}
      />
      <Loaded query={list}>
        {({ needs }) =>
          needs.length > 0 ? (
            <NeedList needs={needs} />
          ) : tab === 'settled' ? (
            <p class="empty quiet">What agents needed and got in the last 90 days appears here.</p>
          ) : (
            <p class="empty quiet">
              No agent waits for anything. When a task stops on something that only a person can give, such as a secret,
              a decision or a file, it appears here, and the agent goes on once it is given.
            </p>
          )
        }
      </Loaded>
    </PageFrame>
  )
}
