import type { WorkflowRun, WorkflowStepRun, WorkflowStepState } from '../../../../workflows/contract.js'
import { askDaemon } from '../../data/api.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { usdTextOf, visibleName, visibleText } from '../../ui/format.js'
import { Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { RunItem } from './run-item.js'

const STATES: { readonly [state in WorkflowStepState]: ToneWord } = {
  pending: ['', 'Waits'],
  running: ['busy', 'Running'],
  done: ['good', 'Done'],
  failed: ['bad', 'Failed'],
  skipped: ['', 'Left out'],
  stopped: ['', 'Stopped'],
}
const MOST_REPORT = 600

const StepRow = ({ run: { workflow }, step }: { run: WorkflowRun; step: WorkflowStepRun }) => {
  const {
    stepId,
    state,
    conversationId,
    startedAt,
    iterations,
    costUsd = 0,
    waitingFor,
    detail,
    document,
    report,
  } = step
  const { title = stepId, needs = [] } = workflow.steps.find(({ id }) => id === stepId) ?? {}
  const name = visibleName(title)
  return (
    <Item
      title={startedAt === undefined ? name : <a href={fragmentOf('c', conversationId)}>{name}</a>}
      state={STATES[state]}
      detail={
        <>
          <div>
            {[
              ...(needs.length > 0 ? [`after ${needs.join(', ')}`] : []),
              ...(iterations > 0 ? [iterations === 1 ? '1 round' : `${iterations} rounds`] : []),
              ...(costUsd > 0 ? [usdTextOf(costUsd)] : []),
            ].join(' · ')}
          </div>
          {waitingFor !== undefined && <a href={fragmentOf('needs')}>It waits for a person</a>}
          {document && (
            <div dir="auto">
              It says {document.done ? 'done' : 'not done'}: {visibleText(document.reason)}
            </div>
          )}
          {document?.data && <div class="mono">{visibleText(JSON.stringify(document.data))}</div>}
          {report !== undefined && <div dir="auto">{visibleText(report.slice(0, MOST_REPORT))}</div>}
          {detail !== undefined && state !== 'done' && <div dir="auto">{visibleName(detail)}</div>}
        </>
      }
    />
  )
}

/** One run with its steps. */
export const RunPane = ({ runId }: { runId: string }) => {
  const run = useQuery(`workflow run ${runId}`, ['workflows'], () =>
    askDaemon('GET /workflows/runs/{runId}', { runId }),
  )
  return (
    <PageFrame
      title="Run of a workflow"
      tools={
        <a class="button" href={fragmentOf('workflows')}>
          All workflows
        </a>
      }
    >
      <Loaded query={run}>
        {found => (
          <>
            <ul class="items">
              <RunItem run={found} linked={false} acts={reaches(person.value?.role, 'collaborator')} />
            </ul>
            <Pairs
              rows={[
                ['Started by', found.startedBy],
                ['From', found.repos.map(({ repo, base }) => `${repo} ${base.slice(0, 10)}`).join(', ')],
                ['Request', found.request],
              ]}
            />
            <section aria-labelledby="steps-heading">
              <h2 id="steps-heading">Steps</h2>
              <ul class="items">
                {found.steps.map(step => (
                  <StepRow key={step.stepId} run={found} step={step} />
                ))}
              </ul>
            </section>
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}
