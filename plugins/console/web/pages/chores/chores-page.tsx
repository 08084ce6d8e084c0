import type { ChoreList, ChoreSignals, RepositoryChores } from '../../../../chores/contract.js'
import { askDaemon } from '../../data/api.js'
import { served } from '../../data/live.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { agoOf, countText, filesText, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { RunButton } from '../new/run-button.js'
import { reaches, type PageProps } from '../registry.js'
import { documentationRun } from './documentation-run.js'
import { PROBE_IDS, ProbeRow } from './probe-row.js'

const MOST_HOTSPOTS = 5

const nameOf = (repo: string): string => (repo === 'root' ? 'The workspace' : visibleName(repo))

const Signals = ({
  repo,
  signals: { totals, hotspots, packages, indexed },
}: {
  repo: string
  signals: ChoreSignals
}) => (
  <>
    {packages.some(({ documented }) => !documented) && reaches(person.value?.role, 'collaborator') && (
      <p>
        {countText(packages.filter(({ documented }) => !documented).length)} packages have no README.{' '}
        <RunButton
          label="Have them written"
          about={`README files of ${nameOf(repo)}`}
          asked={() =>
            documentationRun(
              repo,
              packages.filter(({ documented }) => !documented),
            )
          }
        />
      </p>
    )}
    <p class="quiet">
      {filesText(totals.files)} of code, {countText(packages.length)} packages
      {!indexed && '; the index is still being built'}
    </p>
    {hotspots.length > 0 && (
      <>
        <h3>Files that change often and are complicated</h3>
        <ul class="lines">
          {hotspots.slice(0, MOST_HOTSPOTS).map(({ path, commits, complexity }) => (
            <li key={path} dir="auto">
              <a href={fragmentOf('files', 'open', path)}>{visibleName(path)}</a>
              {`: ${countText(commits)} commits, ${countText(complexity)} branches`}
            </li>
          ))}
        </ul>
      </>
    )}
  </>
)

const Repository = ({ chores, list }: { chores: RepositoryChores; list: ChoreList }) => {
  const { repo, probes, signals } = chores
  return (
    <section aria-label={nameOf(repo)}>
      <h2>{nameOf(repo)}</h2>
      <ul class="items">
        {PROBE_IDS.map(id => (
          <ProbeRow
            key={id}
            repo={repo}
            id={id}
            result={probes.find(probe => probe.id === id)}
            running={list.running.find(probe => probe.repo === repo && probe.id === id)}
            entry={list.ledger.find(entry => entry.repo === repo && entry.chore === id)}
          />
        ))}
      </ul>
      <Signals repo={repo} signals={signals} />
    </section>
  )
}

/** Automations whose definition files them here. */
const FiledAutomations = () => {
  const { data } = useQuery('automations', ['automations', 'extensions', 'personas'], () =>
    askDaemon('GET /automations'),
  )
  const filed = (data?.automations ?? []).filter(({ chore }) => chore)
  return filed.length === 0 ? null : (
    <section aria-labelledby="filed-automations">
      <h2 id="filed-automations">Automations</h2>
      <ul class="items">
        {filed.map(({ id, enabled, runs: [last] }) => (
          <Item
            key={id}
            title={<a href={fragmentOf('automations', id)}>{visibleName(id)}</a>}
            state={enabled ? ['good', 'On'] : ['', 'Off']}
            facts={last && <span class="quiet small">ran {agoOf(last.at)}</span>}
          />
        ))}
      </ul>
    </section>
  )
}

/** What is outdated, vulnerable, unused, copied or large in each repository, and what was concluded. */
export const ChoresPage = (_: PageProps) => {
  const query = useQuery('chores', ['chores', 'repos'], () => askDaemon('GET /chores', {}))
  return (
    <PageFrame title="Chores">
      {served.value.has('automations.list') && <FiledAutomations />}
      <Loaded query={query}>
        {list =>
          list.repos.length === 0 ? (
            <p class="empty quiet">
              No repository is in the workspace. What can be maintained of one appears here once it is cloned or
              created.
            </p>
          ) : (
            <>
              {list.repos.map(chores => (
                <Repository key={chores.repo} chores={chores} list={list} />
              ))}
            </>
          )
        }
      </Loaded>
    </PageFrame>
  )
}
