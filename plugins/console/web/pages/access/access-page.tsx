import { person } from '../../data/session/session.js'
import { PageFrame, Tabs } from '../../ui/page.js'
import { reaches, type PageProps } from '../registry.js'
import { AreasTab } from './areas-tab.js'
import { PeopleTab } from './people-tab.js'
import { SignInsTab } from './sign-ins-tab.js'
import { TokensTab } from './tokens-tab.js'

const TABS = [
  ['people', 'People'],
  ['areas', 'Areas'],
  ['sign-ins', 'Sign-ins'],
  ['tokens', 'Control tokens'],
] as const

/** Who may do what here: people, programs, and the folders that each of them reaches. */
export const AccessPage = ({ rest: [tab = 'people'] }: PageProps) => {
  const owner = reaches(person.value?.role, 'owner')
  const tabs = TABS.filter(([name]) => owner || name !== 'tokens')
  const current = tabs.find(([name]) => name === tab)?.[0] ?? 'people'
  return (
    <PageFrame title="Access">
      <Tabs page="access" label="Parts of access" current={current} tabs={tabs} />
      {current === 'people' && <PeopleTab owner={owner} />}
      {current === 'areas' && <AreasTab owner={owner} />}
      {current === 'sign-ins' && <SignInsTab owner={owner} />}
      {current === 'tokens' && <TokensTab />}
    </PageFrame>
  )
}
