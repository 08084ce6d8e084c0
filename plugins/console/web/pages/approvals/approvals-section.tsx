import { askDaemon } from '../../data/api.js'
import { useCounted, type CountedProps } from '../../ui/lists/counted.js'
import { Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { ApprovalList } from './approval-list.js'

/** The proposals that wait for a yes; nothing where none does. */
export const ApprovalsSection = (props: CountedProps) => {
  const list = useQuery('proposed approvals', ['approvals'], () => askDaemon('GET /approvals', { status: 'proposed' }))
  useCounted(props, list.data?.approvals.length)
  return (
    <Loaded query={list}>
      {({ approvals }) =>
        approvals.length > 0 && (
          <section aria-labelledby="approvals-heading">
            <h2 id="approvals-heading">What agents propose</h2>
            <ApprovalList approvals={approvals} />
          </section>
        )
      }
    </Loaded>
  )
}
