import { useEffect } from 'preact/hooks'
import type { Panel } from '../../../../panels/contract.js'
import { askDaemon } from '../../data/api.js'
import { repoTitle } from '../../data/git-answers.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { AskedRun } from '../new/asked-run.js'
import { RunButton } from '../new/run-button.js'
import { reaches } from '../registry.js'
import { ServerLinks, serverState } from './apps-section.js'

/** How often a starting server is looked at. */
const LOOK_MS = 1_500

const changed = (): void => refetch(new Set(['panels', 'terminals']))

/** What an agent is asked about a server that does not stay up. */
const serverRun = (repo: string, exitCode: number): AskedRun => ({
  title: `The server of ${repo}`,
  runRole: 'deployment-fix',
  ...(repo !== 'root' && { startIn: repo }),
  prompt:
    `The development server of the repository ${repo} ends by itself with exit code ${exitCode}. Start it here, find `
    + 'out why, fix the cause, and show that it stays up and answers.',
})

const PanelRow = ({ panel }: { panel: Panel }) => {
  const { repo, running, port, previewUrl, session, exitCode, servers, hasPanel } = panel
  const action = useAction()
  const name = visibleName(repoTitle(repo))
  const work = (what: 'start' | 'restart' | 'stop') => async () => {
    if (what === 'stop') await askDaemon('POST /panels/{repo}/stop', { repo })
    else await askDaemon('POST /panels/{repo}/start', { repo, restart: what === 'restart' })
    changed()
  }
  const mayStart = reaches(person.value?.role, 'maintainer')
  const others = servers.filter(each => each.session !== session || session === undefined)
  return (
    <Item
      title={name}
      state={serverState(panel)}
      detail={
        <>
          {exitCode !== undefined && `It ended by itself with exit code ${exitCode}. `}
          <ServerLinks port={port} previewUrl={previewUrl} session={session} />
          {others.length > 0 && (
            <>
              {' '}
              Also answers: <span class="mono">{others.map(({ url }) => visibleName(url)).join(', ')}</span>
            </>
          )}
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {exitCode !== undefined && reaches(person.value?.role, 'collaborator') && (
        <RunButton label="Have it fixed" about={`the server of ${name}`} asked={() => serverRun(repo, exitCode)} />
      )}
      {mayStart && running && (
        <ActionButton action={action} work={work('restart')} about={`the server of ${name}`}>
          Restart
        </ActionButton>
      )}
      {mayStart && (running || hasPanel) && (
        <ActionButton action={action} work={work(running ? 'stop' : 'start')} about={`the server of ${name}`}>
          {running ? 'Stop' : 'Start'}
        </ActionButton>
      )}
    </Item>
  )
}

/** The development server of a repository. */
export const PanelSection = ({ repo }: { repo: string }) => {
  const query = useQuery(`panel ${repo}`, ['panels', 'ports', 'files', 'terminals'], () =>
    askDaemon('GET /panels/{repo}', { repo }),
  )
  const starting = query.data?.running === true && !query.data.healthy
  useEffect(() => {
    if (!starting) return undefined
    const timer = setInterval(() => refetch(new Set(['panels'])), LOOK_MS)
    return () => clearInterval(timer)
  }, [starting])
  return (
    <section aria-labelledby="panel-heading">
      <h2 id="panel-heading">Development server</h2>
      <Loaded query={query}>
        {panel =>
          panel.hasPanel || panel.running || panel.servers.length > 0 ? (
            <ul class="items">
              <PanelRow panel={panel} />
            </ul>
          ) : (
            <p class="quiet">A package.json with a dev script, in operator/ or the root of the repository, has one.</p>
          )
        }
      </Loaded>
    </section>
  )
}
