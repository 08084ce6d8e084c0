import { useSignal } from '@preact/signals'
import type { Issue, IssueState } from '../../../../issues/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { useSettled } from '../../ui/fields.js'
import { agoOf, countText, visibleName } from '../../ui/format.js'
import { MoreRow, useFurther } from '../../ui/lists/more.js'
import { FaultLine, Item, Loaded, PageFrame, Tabs, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { SearchField } from '../../ui/search-field.js'
import { reaches, type PageProps } from '../registry.js'
import { issuesChanged } from './issue-actions.js'
import { IssuePane } from './issue-pane.js'
import { ReportersTab } from './reporters-tab.js'

const STATES = ['open', 'resolved', 'ignored'] as const
const TITLES: { readonly [state in IssueState]: string } = { open: 'Open', resolved: 'Resolved', ignored: 'Ignored' }
const ID = /^iss_[0-9a-f]{20}$/

const isState = (text: string): text is IssueState => STATES.some(state => state === text)

const toneOf = ({ regressed, isNew, level }: Issue): ToneWord => {
  if (regressed) return ['bad', 'Came again']
  return isNew ? ['warn', 'New'] : ['', level]
}

const IssueRow = ({ issue }: { issue: Issue }) => {
  const { id, title, culprit, location, count, users, lastSeen, fix } = issue
  return (
    <Item
      title={<a href={fragmentOf('issues', id)}>{visibleName(title)}</a>}
      state={toneOf(issue)}
      detail={
        <>
          <div class="mono" dir="auto">
            {visibleName(location?.path ?? culprit ?? '')}
          </div>
          <div>
            {countText(count)} {count === 1 ? 'event' : 'events'}
            {users !== undefined && `, ${countText(users)} ${users === 1 ? 'user' : 'users'}`}, last {agoOf(lastSeen)}
            {fix && ', an agent works on it'}
          </div>
        </>
      }
    />
  )
}

const IssueList = ({ state }: { state: IssueState }) => {
  const words = useSignal('')
  const query = useSettled(words.value.trim())
  const action = useAction()
  const read = (after?: string) =>
    askDaemon('GET /issues', { state, ...(query && { query }), ...(after !== undefined && { after }) })
  const list = useQuery(`issues ${state} ${query}`, ['issues'], () => read())
  const further = useFurther(`${state} ${query}`, list.data?.next, async after => {
    const { issues, next } = await read(after)
    return { rows: issues, next }
  })
  return (
    <>
      <div class="row">
        <SearchField label="Search issues" value={words} main />
        {reaches(person.value?.role, 'collaborator') && (
          <ActionButton
            action={action}
            work={async () => {
              await askDaemon('POST /issues/seen')
              issuesChanged()
            }}
          >
            Mark all as seen
          </ActionButton>
        )}
        <FaultLine fault={action.fault} />
      </div>
      <Loaded query={list}>
        {({ issues }) =>
          issues.length > 0 ? (
            <>
              <ul class="items">
                {[...issues, ...further.rows].map(issue => (
                  <IssueRow key={issue.id} issue={issue} />
                ))}
              </ul>
              <MoreRow label="Show more issues" of={further} />
            </>
          ) : (
            <p class="empty quiet">
              {query
                ? 'No issue has these words.'
                : 'No issue here. When a program with a reporter fails, each of its faults appears here once.'}
            </p>
          )
        }
      </Loaded>
    </>
  )
}

/** The faults that programs report; one of them; and the programs. */
export const IssuesPage = ({ rest: [part = 'open'] }: PageProps) => {
  if (ID.test(part))
    return (
      <PageFrame title="Issue">
        <IssuePane key={part} id={part} />
      </PageFrame>
    )
  const maintains = reaches(person.value?.role, 'maintainer')
  const shown = part === 'reporters' && maintains ? part : isState(part) ? part : 'open'
  return (
    <PageFrame title="Issues">
      <Tabs
        page="issues"
        label="Issues by their state"
        current={shown}
        tabs={[
          ...STATES.map(state => [state, TITLES[state]] as const),
          ...(maintains ? [['reporters', 'Reporters'] as const] : []),
        ]}
      />
      {shown === 'reporters' ? <ReportersTab /> : <IssueList key={shown} state={shown} />}
    </PageFrame>
  )
}
