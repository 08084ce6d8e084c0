import { askDaemon } from '../../data/api.js'
import { person } from '../../data/session/session.js'
import { Loaded, PageFrame, Tabs } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { PolicyTab } from './policy-tab.js'
import { TryForm } from './try-form.js'
import { VerdictsTab } from './verdicts-tab.js'

/** What agents may do while nobody looks: the policy, what was held or denied, and how a command would be decided. */
export const SafetyPage = ({ rest: [tab = 'policy'] }: PageProps) => {
  const state = useQuery('safety', ['safety', 'settings'], () => askDaemon('GET /safety'))
  const maintains = reaches(person.value?.role, 'maintainer')
  const tries = reaches(person.value?.role, 'collaborator')
  return (
    <PageFrame title="Safety">
      <Tabs
        page="safety"
        label="Parts of the safety policy"
        current={tab}
        tabs={[['policy', 'Policy'], ...(maintains ? [['verdicts', 'Verdicts'] as const] : [])]}
      />
      {tab === 'verdicts' && maintains ? (
        <VerdictsTab />
      ) : (
        <Loaded query={state}>
          {found => (
            <>
              <PolicyTab state={found} maintains={maintains} />
              {tries && <TryForm />}
            </>
          )}
        </Loaded>
      )}
    </PageFrame>
  )
}
