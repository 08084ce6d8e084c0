import { askDaemon } from '../../data/api.js'
import { Loaded, PageFrame, Tabs } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { PageProps } from '../registry.js'
import { ApprovalList } from './approval-list.js'

/** What agents propose, and what became of earlier proposals. */
export const ApprovalsPage = ({ rest: [tab = 'open'] }: PageProps) => {
  const status = tab === 'settled' ? 'done,declined' : 'proposed,approved,sending,failed'
  const list = useQuery(`approvals ${status}`, ['approvals'], () => askDaemon('GET /approvals', { status, limit: 200 }))
  return (
    <PageFrame title="Approvals">
      <Tabs
        page="approvals"
        label="Approvals by their state"
        current={tab}
        tabs={[
          ['open', 'Open'],
          ['settled', 'Settled'],
        ]}
      />
      <Loaded query={list}>
        {({ approvals }) =>
          approvals.length > 0 ? (
            <ApprovalList approvals={approvals} />
          ) : tab === 'settled' ? (
            <p class="empty quiet">What was carried out or declined in the last 90 days appears here.</p>
          ) : (
            <p class="empty quiet">
              No agent proposes anything. When an agent wants to post or send something, it appears here word for word,
              and goes out only after your yes.
            </p>
          )
        }
      </Loaded>
    </PageFrame>
  )
}
