import type { WorkflowRun, WorkflowRunState } from '../../../../workflows/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { agoOf, usdTextOf, visibleName } from '../../ui/format.js'
import { FaultLine, Item, type ToneWord } from '../../ui/page.js'

const STATES: { readonly [state in WorkflowRunState]: ToneWord } = {
  running: ['busy', 'Running'],
  done: ['good', 'Done'],
  failed: ['bad', 'Failed'],
  stopped: ['', 'Stopped'],
  overspent: ['warn', 'Out of money'],
  error: ['bad', 'Failed'],
}

/** What collaborators do with a run. */
const RunActions = ({ run: { runId, state, workflow, archivedAt } }: { run: WorkflowRun }) => {
  const action = useAction()
  const name = visibleName(workflow.name)
  const does = (call: 'stop' | 'archive' | 'unarchive') => async () => {
    if (call === 'stop') await askDaemon('POST /workflows/runs/{runId}/stop', { runId })
    else if (call === 'archive') await askDaemon('POST /workflows/runs/{runId}/archive', { runId })
    else await askDaemon('POST /workflows/runs/{runId}/unarchive', { runId })
    refetch(new Set(['workflows']))
  }
  const isArchived = archivedAt !== undefined
  return (
    <>
      {state === 'running' ? (
        <ActionButton action={action} about={name} work={does('stop')}>
          Stop
        </ActionButton>
      ) : (
        <ActionButton action={action} about={name} work={does(isArchived ? 'unarchive' : 'archive')}>
          {isArchived ? 'Bring back' : 'Archive'}
        </ActionButton>
      )}
      <FaultLine fault={action.fault} />
    </>
  )
}

/** One run in a list, or at the top of its page. */
export const RunItem = ({ run, acts, linked }: { run: WorkflowRun; acts: boolean; linked: boolean }) => {
  const { runId, state, workflow, request, startedAt, endedAt, costUsd, steps, detail } = run
  const done = steps.filter(step => step.state === 'done').length
  const waits = steps.some(({ waitingFor }) => waitingFor !== undefined)
  const name = visibleName(workflow.name)
  return (
    <Item
      title={linked ? <a href={fragmentOf('workflows', runId)}>{name}</a> : name}
      state={STATES[state]}
      detail={
        <>
          <div>
            {`${done} of ${steps.length} steps done`}
            {costUsd > 0 && ` · ${usdTextOf(costUsd)}`}
            {waits && (
              <>
                {' · '}
                <a href={fragmentOf('needs')}>waits for a person</a>
              </>
            )}
          </div>
          {request !== undefined && <div dir="auto">{visibleName(request.slice(0, 200))}</div>}
          {detail !== undefined && <div dir="auto">{visibleName(detail)}</div>}
        </>
      }
      facts={<span class="quiet small">{agoOf(endedAt ?? startedAt)}</span>}
    >
      {acts && <RunActions run={run} />}
    </Item>
  )
}
