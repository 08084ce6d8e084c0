import { useSignal } from '@preact/signals'
import type { PipelineRun, PipelineStatus } from '../../../../pipelines/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { ChoiceField } from '../../ui/fields.js'
import { agoOf, spanText, visibleName } from '../../ui/format.js'
import { MoreRow, useFurther } from '../../ui/lists/more.js'
import { FaultLine, Item, Loaded, PageFrame, Tabs } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { PrepushState } from './prepush-state.js'
import { RepositoriesTab } from './repositories-tab.js'
import { PipelineRunPane } from './run-pane.js'
import { HOST_NAMES, nameOfRun, toneOfStatus } from './run-words.js'

const RunRow = ({ run }: { run: PipelineRun }) => {
  const { repo, host, runId, number, branch, sha, status, createdAt, durationSeconds, failedJobs, authorName, fix } =
    run
  return (
    <Item
      title={<a href={fragmentOf('pipelines', 'run', repo, String(runId))}>{visibleName(nameOfRun(run))}</a>}
      state={toneOfStatus(status)}
      detail={
        <>
          <div dir="auto">
            {HOST_NAMES[host]}
            {number !== undefined && ` ${number}`}, {visibleName(repo)}
            {branch && `, branch ${visibleName(branch)}`} <span class="mono">{sha.slice(0, 8)}</span>
          </div>
          <div dir="auto">
            {agoOf(createdAt)}
            {durationSeconds !== undefined && `, ${spanText(durationSeconds * 1000)}`}
            {authorName !== undefined && `, ${visibleName(authorName)}`}
            {failedJobs && failedJobs.length > 0 && `, failed: ${failedJobs.map(visibleName).join(', ')}`}
            {fix && ', an agent works on it'}
          </div>
        </>
      }
    />
  )
}

const RunList = () => {
  const status = useSignal<PipelineStatus | ''>('')
  const action = useAction()
  const key = status.value
  const read = (before?: number) =>
    askDaemon('GET /ci/runs', { ...(key && { status: key }), ...(before !== undefined && { before }) })
  const list = useQuery(`pipelines ${key}`, ['ci'], () => read())
  const further = useFurther(`pipelines ${key}`, list.data?.next, async before => {
    const { runs, next } = await read(before)
    return { rows: runs, next }
  })
  return (
    <>
      <PrepushState />
      <div class="row">
        <ChoiceField
          label="Show"
          value={status}
          choices={[
            ['', 'All runs'],
            ['failed', 'Failed'],
            ['running', 'Running'],
            ['success', 'Passed'],
          ]}
        />
        <ActionButton
          action={action}
          work={async () => {
            await askDaemon('GET /ci/runs', { fresh: true, limit: 1 })
            refetch(new Set(['ci']))
          }}
        >
          Ask the forges now
        </ActionButton>
        {reaches(person.value?.role, 'collaborator') && (
          <ActionButton
            action={action}
            work={async () => {
              await askDaemon('POST /ci/seen')
              refetch(new Set(['ci']))
            }}
          >
            Mark all as seen
          </ActionButton>
        )}
        <FaultLine fault={action.fault} />
      </div>
      <Loaded query={list}>
        {({ runs }) =>
          runs.length > 0 ? (
            <>
              <ul class="items" aria-label="Runs">
                {[...runs, ...further.rows].map(run => (
                  <RunRow key={`${run.repo} ${run.runId}`} run={run} />
                ))}
              </ul>
              <MoreRow label="Show older runs" of={further} />
            </>
          ) : (
            <p class="empty quiet">
              No run here. Those of repositories appear once their forge is connected, and checks before a push once a
              rule of the settings makes one.
            </p>
          )
        }
      </Loaded>
    </>
  )
}

/** The runs of pipelines; one of them; and the repositories that they are of. */
export const PipelinesPage = ({ rest: [part = 'runs', repo, runId] }: PageProps) => {
  if (part === 'run' && repo !== undefined && runId !== undefined)
    return (
      <PageFrame title="Run">
        <PipelineRunPane key={`${repo} ${runId}`} repo={repo} runId={Number(runId)} />
      </PageFrame>
    )
  const shown = part === 'repositories' ? part : 'runs'
  return (
    <PageFrame title="Pipelines">
      <Tabs
        page="pipelines"
        label="Runs and repositories"
        current={shown}
        tabs={[
          ['runs', 'Runs'],
          ['repositories', 'Repositories'],
        ]}
      />
      {shown === 'repositories' ? <RepositoriesTab /> : <RunList />}
    </PageFrame>
  )
}
