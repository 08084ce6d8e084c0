import type { ChoreLedgerEntry, ProbeId, ProbeResult, RunningProbe } from '../../../../chores/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { FormButton } from '../../ui/dialog.js'
import { agoOf, momentOf, visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, type ToneWord } from '../../ui/page.js'
import type { AskedRun } from '../new/asked-run.js'
import { RunButton } from '../new/run-button.js'
import { reaches } from '../registry.js'
import { ConcludeForm } from './conclude-form.js'
import { FactLines, headlineOf } from './probe-facts.js'

const LABELS: { readonly [id in ProbeId]: string } = {
  outdated: 'Outdated packages',
  audit: 'Vulnerabilities',
  knip: 'Unused code',
  jscpd: 'Copied code',
  ui: 'Shared components',
  bundle: 'Size of the build',
}

/** Every measurement, in the order in which a page shows them. */
export const PROBE_IDS = Object.keys(LABELS) as readonly ProbeId[]

const OUTCOMES: { readonly [outcome in ChoreLedgerEntry['outcome']]: string } = {
  acted: 'It was done',
  reported: 'There is something to do',
  clean: 'There is nothing to do',
}

const stateOf = (result: ProbeResult | undefined, running: RunningProbe | undefined): ToneWord => {
  if (running) return ['busy', running.startedAt === undefined ? 'Waits' : 'Is measured']
  if (!result) return ['', 'Not measured']
  if (result.state === 'failed') return ['bad', 'Failed']
  if (result.state === 'unavailable') return ['', 'Cannot be measured']
  return result.staleAt <= Date.now() ? ['warn', 'Old'] : ['good', 'Measured']
}

const Conclusion = ({ entry: { outcome, by, ranAt, snoozedUntil } }: { entry: ChoreLedgerEntry }) => (
  <div dir="auto">
    {OUTCOMES[outcome]}: {by !== undefined && `${visibleName(by)}, `}
    {agoOf(ranAt)}
    {snoozedUntil !== undefined && `, put off until ${momentOf(snoozedUntil)}`}
  </div>
)

const WORK: { readonly [id in ProbeId]: string } = {
  outdated: 'Bring the outdated packages up to date, one after another, and leave out those that break something.',
  audit: 'Remove the known vulnerabilities of its packages with the smallest updates that do.',
  knip: 'Remove code, exports and packages that nothing uses; look at each before you remove it.',
  jscpd: 'Put code that stands in several places into one, where that makes it simpler.',
  ui: 'Use the shared components where pages bring their own copies of them.',
  bundle: 'Make the build smaller without taking anything from its users.',
}

/** What an agent is asked to do about a measurement. */
const choreRun = (repo: string, id: ProbeId, { facts }: ProbeResult): AskedRun => ({
  title: LABELS[id],
  runRole: 'maintenance-chore',
  ...(repo !== 'root' && { startIn: repo }),
  prompt: [
    `${WORK[id]} It is about the repository ${repo}; it was measured: ${facts ? headlineOf(facts) : 'nothing'}.`,
    'Measure again yourself, run its checks after each step, and say in the end what you did and what is left.',
  ].join('\n'),
})

interface ProbeRowProps {
  readonly repo: string
  readonly id: ProbeId
  readonly result: ProbeResult | undefined
  readonly running: RunningProbe | undefined
  readonly entry: ChoreLedgerEntry | undefined
}

/** One measurement of a repository, and what can be done about it. */
export const ProbeRow = ({ repo, id, result, running, entry }: ProbeRowProps) => {
  const action = useAction()
  const label = LABELS[id]
  const ask = (call: 'POST /chores/probe' | 'POST /chores/probe/stop') => async () => {
    await askDaemon(call, { repo, id })
    refetch(new Set(['chores']))
  }
  return (
    <Item
      title={label}
      state={stateOf(result, running)}
      detail={
        <div class="stack">
          {result?.facts && <div>{headlineOf(result.facts)}</div>}
          {result?.reason !== undefined && <div dir="auto">{visibleText(result.reason)}</div>}
          {result && (
            <time dateTime={new Date(result.ranAt).toISOString()} title={momentOf(result.ranAt)}>
              {agoOf(result.ranAt)}
            </time>
          )}
          {entry && <Conclusion entry={entry} />}
          {result?.facts && <FactLines facts={result.facts} />}
          <FaultLine fault={action.fault} />
        </div>
      }
    >
      {reaches(person.value?.role, 'collaborator') && (
        <>
          {running ? (
            <ActionButton action={action} work={ask('POST /chores/probe/stop')} about={label}>
              Stop
            </ActionButton>
          ) : (
            <ActionButton action={action} work={ask('POST /chores/probe')} about={label}>
              Measure
            </ActionButton>
          )}
          {result?.facts && <RunButton label="Have it done" about={label} asked={() => choreRun(repo, id, result)} />}
          {result && (
            <FormButton
              label="Conclude"
              about={label}
              form={close => <ConcludeForm repo={repo} result={result} label={label} close={close} />}
            />
          )}
        </>
      )}
    </Item>
  )
}
