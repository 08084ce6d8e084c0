import { askDaemon } from '../../data/api.js'
import { person } from '../../data/session/session.js'
import { Loaded, PageFrame, Tabs } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { CountsTab } from './counts-tab.js'
import { PrivacyPolicyTab } from './privacy-policy-tab.js'
import { TryTab } from './try-tab.js'

const PolicyOf = ({ owns }: { owns: boolean }) => {
  const state = useQuery('shield', ['privacy', 'endpoints', 'accounts', 'capabilities'], () => askDaemon('GET /shield'))
  return <Loaded query={state}>{found => <PrivacyPolicyTab state={found} owns={owns} />}</Loaded>
}

/** Personal data in what leaves for models: what was masked, the policy, and what a text would become. */
export const PrivacyPage = ({ rest: [tab = 'counts'] }: PageProps) => {
  const role = person.value?.role
  const [maintains, tries] = [reaches(role, 'maintainer'), reaches(role, 'collaborator')]
  return (
    <PageFrame title="Privacy">
      <Tabs
        page="privacy"
        label="Parts of the privacy shield"
        current={tab}
        tabs={[
          ['counts', 'Masked'],
          ...(maintains ? [['policy', 'Policy'] as const] : []),
          ...(tries ? [['try', 'Try a text'] as const] : []),
        ]}
      />
      {tab === 'policy' && maintains ? (
        <PolicyOf owns={reaches(role, 'owner')} />
      ) : tab === 'try' && tries ? (
        <TryTab maintains={maintains} />
      ) : (
        <CountsTab />
      )}
    </PageFrame>
  )
}
