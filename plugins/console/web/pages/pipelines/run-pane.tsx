import { useSignal } from '@preact/signals'
import type { CiRepo, PipelineJob, PipelineRun } from '../../../../pipelines/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { momentOf, sizeTextOf, spanText, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { Pairs } from '../../ui/pairs.js'
import { useQuery } from '../../ui/query.js'
import { RunButton } from '../new/run-button.js'
import { reaches } from '../registry.js'
import { HOST_NAMES, nameOfRun, toneOfStatus } from './run-words.js'
import { TextBlock } from '../../ui/text-block.js'

const MOST_RUNS = 200

const FixForm = ({ run, close }: { run: PipelineRun; close: () => void }) => {
  const note = useSignal('')
  const { repo, runId } = run
  return (
    <DialogForm
      title={`Fix: ${visibleName(nameOfRun(run))}`}
      verb="Start"
      close={close}
      work={async () => {
        const words = note.value.trim()
        const { conversationId } = await askDaemon('POST /ci/fix', { repo, runId, ...(words && { note: words }) })
        refetch(new Set(['ci']))
        location.hash = fragmentOf('c', conversationId)
      }}
    >
      <p>An agent works on it in a private copy at the commit of the run. It reads the logs as words from outside.</p>
      <TextField label="What else it should know" rows={3} value={note} />
    </DialogForm>
  )
}

/** The conversations whose landed work is uncommitted in a repository where a check fails: each can be told. */
const LandedBefore = ({ run: { repo, branch }, jobs }: { run: PipelineRun; jobs: readonly PipelineJob[] }) => {
  const { data } = useQuery(`landed ${repo}`, ['repos', 'landings'], () => askDaemon('GET /git/changes', { repo }))
  const failed = jobs.filter(({ status }) => status === 'failed').map(({ name }) => name)
  return (
    <>
      {Object.entries(data?.originAgents ?? {}).map(([id, { title = id }]) => (
        <RunButton
          key={id}
          label={`Tell ${visibleName(title)}`}
          about="that its landed work may have broken it"
          asked={() => ({
            conversationId: id,
            errand: 'land-breakage',
            prompt:
              `A check before a push of ${repo} (branch ${branch}) fails since your work is in the workspace: `
              + `${failed.join(', ')}. Run it here, find out whether your work broke it, and fix that.`,
          })}
        />
      ))}
    </>
  )
}

const RunActions = ({ run, can }: { run: PipelineRun; can: CiRepo['can'] }) => {
  const action = useAction()
  const { repo, runId, status } = run
  const maintains = reaches(person.value?.role, 'maintainer')
  const done = () => void refetch(new Set(['ci', 'prepush']))
  const rerun = (failedOnly: boolean) => async () => {
    await askDaemon('POST /ci/runs/rerun', { repo, runId, failedOnly })
    done()
  }
  return (
    <div class="row">
      {status === 'failed' && reaches(person.value?.role, 'collaborator') && (
        <FormButton label="Fix" about={nameOfRun(run)} primary form={close => <FixForm run={run} close={close} />} />
      )}
      {maintains && status !== 'running' && can.rerun && (
        <ActionButton action={action} work={rerun(false)}>
          Run again
        </ActionButton>
      )}
      {maintains && status === 'failed' && can.rerunFailed && (
        <ActionButton action={action} work={rerun(true)}>
          Run what failed again
        </ActionButton>
      )}
      {maintains && status === 'running' && can.cancel && (
        <ActionButton
          action={action}
          work={async () => {
            await askDaemon('POST /ci/runs/cancel', { repo, runId })
            done()
          }}
        >
          Stop
        </ActionButton>
      )}
      <FaultLine fault={action.fault} />
    </div>
  )
}

interface ReadLog {
  readonly text: string
  readonly offset: number
  readonly sizeBytes: number
}

const JobRow = ({ repo, runId, job }: { repo: string; runId: number; job: PipelineJob }) => {
  const { id, name, status, stage, needs, durationSeconds } = job
  const log = useSignal<ReadLog | undefined>(undefined)
  const action = useAction()
  return (
    <Item
      title={visibleName(name)}
      state={toneOfStatus(status)}
      detail={
        <div class="stack">
          <div dir="auto">
            {[
              stage === undefined ? '' : `stage ${visibleName(stage)}`,
              needs && needs.length > 0 ? `waits for ${needs.map(visibleName).join(', ')}` : '',
              durationSeconds === undefined ? '' : spanText(durationSeconds * 1000),
            ]
              .filter(Boolean)
              .join(', ')}
          </div>
          {log.value && (
            <>
              <p class="quiet">
                {sizeTextOf(log.value.sizeBytes)}
                {log.value.offset > 0 && `, shown from ${sizeTextOf(log.value.offset)}`}
              </p>
              {log.value.text === '' ? (
                <p class="quiet">It is empty.</p>
              ) : (
                <TextBlock
                  class="said-text"
                  dir="auto"
                  label={`Log of ${visibleName(name)}`}
                  what="the log"
                  text={log.value.text}
                />
              )}
            </>
          )}
          <FaultLine fault={action.fault} />
        </div>
      }
    >
      {job.log === 'available' && (
        <ActionButton
          action={action}
          about={visibleName(name)}
          work={async () => {
            const find = status === 'failed' ? ({ find: 'failure' } as const) : {}
            log.value = await askDaemon('POST /ci/runs/log', { repo, runId, job: id, ...find })
          }}
        >
          Show the log
        </ActionButton>
      )}
    </Item>
  )
}

/** One run with its jobs and their logs. */
export const PipelineRunPane = ({ repo, runId }: { repo: string; runId: number }) => {
  const query = useQuery(`run ${repo} ${runId}`, ['ci'], async () => {
    const [{ runs, repos }, { jobs }] = await Promise.all([
      askDaemon('GET /ci/runs', { repo, limit: MOST_RUNS }),
      askDaemon('POST /ci/runs/jobs', { repo, runId }).catch(() => ({ jobs: [] as PipelineJob[] })),
    ])
    return { run: runs.find(each => each.runId === runId), repos, jobs }
  })
  return (
    <article class="stack" aria-label="Run">
      <p>
        <a href={fragmentOf('pipelines')}>All runs</a>
      </p>
      <Loaded query={query}>
        {({ run, repos, jobs }) => {
          if (!run) return <p class="empty quiet">This run is not kept any more.</p>
          const row = repos.find(({ host }) => host === run.host)
          return (
            <>
              <h2 dir="auto">{visibleName(nameOfRun(run))}</h2>
              {row && <RunActions run={run} can={row.can} />}
              {run.host === 'local' && run.status === 'failed' && reaches(person.value?.role, 'collaborator') && (
                <LandedBefore run={run} jobs={jobs} />
              )}
              <Pairs
                rows={[
                  ['State', toneOfStatus(run.status)[1]],
                  ['Where', `${HOST_NAMES[run.host]}, ${visibleName(run.project)}`],
                  ['Workflow', run.workflow],
                  ['Branch', run.branch],
                  ['Commit', run.sha],
                  ['Started by', run.authorName ?? run.trigger],
                  ['Started', momentOf(run.createdAt)],
                  ['Attempt', run.attempt === undefined ? undefined : String(run.attempt)],
                ]}
              />
              {run.url && (
                <p>
                  <a href={run.url} target="_blank" rel="noreferrer">
                    Its page at {HOST_NAMES[run.host]}
                  </a>
                </p>
              )}
              {run.fix && (
                <p>
                  <a href={fragmentOf('c', run.fix.conversationId)}>The conversation that fixes it</a>
                </p>
              )}
              <h3>Jobs</h3>
              {jobs.length > 0 ? (
                <ul class="items" aria-label="Jobs">
                  {jobs.map(job => (
                    <JobRow key={job.id} repo={repo} runId={runId} job={job} />
                  ))}
                </ul>
              ) : (
                <p class="empty quiet">No job is known: the forge lists none, or cannot be asked now.</p>
              )}
            </>
          )
        }}
      </Loaded>
    </article>
  )
}
