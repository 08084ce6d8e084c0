import { useSignal } from '@preact/signals'
import type { WorkflowRow } from '../../../../workflows/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { CheckField } from '../../ui/fields.js'
import { visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { GateDialog } from './gate-dialog.js'
import { RunItem } from './run-item.js'
import { RunPane } from './run-pane.js'
import { RunForm, WorkflowForm } from './workflow-form.js'

const LISTED = 100

const WorkflowItem = ({ row }: { row: WorkflowRow }) => {
  const { runs, gateTokenAt: _at, ...workflow } = row
  const { id, name, description, steps, gate } = workflow
  const role = person.value?.role
  const going = runs.filter(({ state }) => state === 'running').length
  return (
    <Item
      title={visibleName(name)}
      state={going > 0 ? ['busy', going === 1 ? '1 run goes on' : `${going} runs go on`] : undefined}
      detail={
        <>
          {description !== undefined && <div dir="auto">{visibleName(description)}</div>}
          <ol>
            {steps.map(step => (
              <li key={step.id} dir="auto">
                {visibleName(step.title)}
                {step.needs.length > 0 && ` (after ${step.needs.join(', ')})`}
              </li>
            ))}
          </ol>
        </>
      }
    >
      {reaches(role, 'collaborator') && (
        <FormButton label="Run" about={name} form={close => <RunForm close={close} workflow={workflow} />} />
      )}
      {reaches(role, 'maintainer') && (
        <>
          {gate && (
            <FormButton label="Gate" about={name} form={close => <GateDialog id={id} name={name} close={close} />} />
          )}
          <FormButton label="Edit" about={name} form={close => <WorkflowForm close={close} workflow={workflow} />} />
          <AskButton
            label="Remove"
            about={name}
            title={`Remove ${visibleName(name)}?`}
            work={async () => {
              await askDaemon('DELETE /workflows/{id}', { id })
              refetch(new Set(['workflows']))
            }}
          >
            <p>Its runs stay, and those that are going go on. The token of its gate is deleted.</p>
          </AskButton>
        </>
      )}
    </Item>
  )
}

const Designs = () => {
  const list = useQuery('workflows', ['workflows'], () => askDaemon('GET /workflows'))
  return (
    <section aria-labelledby="workflows-heading">
      <div class="section-head">
        <h2 id="workflows-heading">Designs</h2>
        {reaches(person.value?.role, 'maintainer') && (
          <FormButton label="Add a workflow" primary form={close => <WorkflowForm close={close} />} />
        )}
      </div>
      <Loaded query={list}>
        {({ workflows, problems }) => (
          <>
            {problems.map(({ id, message }) => (
              <p key={`${id} ${message}`} class="notice bad" dir="auto">
                {id !== undefined && `${visibleName(id)}: `}
                {visibleName(message)}
              </p>
            ))}
            {workflows.length === 0 ? (
              <p class="quiet">
                A workflow is a design of conversations that run in order: each hands on what it found to those that
                need it.
              </p>
            ) : (
              <ul class="items">
                {workflows.map(row => (
                  <WorkflowItem key={row.id} row={row} />
                ))}
              </ul>
            )}
          </>
        )}
      </Loaded>
    </section>
  )
}

const RunList = () => {
  const archived = useSignal(false)
  const list = useQuery(`workflow runs ${archived.value}`, ['workflows'], () =>
    askDaemon('GET /workflows/runs', { archived: archived.value, limit: LISTED }),
  )
  const acts = reaches(person.value?.role, 'collaborator')
  return (
    <section aria-labelledby="runs-heading">
      <div class="section-head">
        <h2 id="runs-heading">Runs</h2>
        <CheckField label="Archived ones" value={archived} />
      </div>
      <Loaded query={list}>
        {({ runs }) =>
          runs.length === 0 ? (
            <p class="quiet">{archived.value ? 'No run is archived.' : 'No run yet.'}</p>
          ) : (
            <ul class="items">
              {runs.map(run => (
                <RunItem key={run.runId} run={run} acts={acts} linked />
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}

/** Designs and runs of workflows, or one run with its steps. */
export const WorkflowsPage = ({ rest: [runId] }: PageProps) =>
  runId === undefined ? (
    <PageFrame title="Workflows">
      <Designs />
      <RunList />
    </PageFrame>
  ) : (
    <RunPane runId={runId} />
  )
