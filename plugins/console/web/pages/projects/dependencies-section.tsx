import { useSignal } from '@preact/signals'
import type { InstallSession, ProjectSetup, SetupState } from '../../../../workspace/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { countText, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { SessionLink } from './session-link.js'
import { Copyable } from '../../ui/copy.js'

const STATES: { readonly [state in SetupState]: ToneWord } = {
  ready: ['good', 'Installed'],
  installing: ['busy', 'Installing'],
  'needs-setup': ['warn', 'Not installed'],
  stale: ['warn', 'Out of date'],
  unsupported: ['bad', 'Not possible here'],
}
/** The states in which an install helps. */
const OPEN: ReadonlySet<SetupState> = new Set(['needs-setup', 'stale'])
/** What a call takes at once. */
const MOST = 50

interface ProjectRowProps {
  readonly project: ProjectSetup
  readonly session: string | undefined
  readonly install: (() => void) | undefined
}

const ProjectRow = ({ project, session, install }: ProjectRowProps) => {
  const { dir, ecosystem, manager, command, evidence, state, missing } = project
  const name = dir === '' ? 'The workspace' : visibleName(dir)
  return (
    <Item
      title={<span class={dir === '' ? '' : 'mono'}>{name}</span>}
      state={STATES[state] ?? ['', state]}
      detail={
        <>
          {ecosystem} · {visibleName(manager)}, by {visibleName(evidence)}
          {missing !== undefined && missing > 0 && ` · ${countText(missing)} missing`}
          {state === 'unsupported' && ' · its package manager is not on this machine'}
          {OPEN.has(state) && (
            <>
              {' '}
              ·{' '}
              <Copyable text={command} what="the command">
                {visibleName(command)}
              </Copyable>
            </>
          )}
          {session !== undefined && (
            <>
              {' '}
              · <SessionLink session={session} label="Progress" />
            </>
          )}
        </>
      }
    >
      {install && OPEN.has(state) && (
        <button class="button" type="button" onClick={install}>
          Install<span class="visually-hidden"> {name}</span>
        </button>
      )}
    </Item>
  )
}

/** The projects of the workspace, and the installs of their dependencies. */
export const DependenciesSection = () => {
  const query = useQuery('setup', ['panels', 'files', 'terminals'], () => askDaemon('GET /workspace/setup'))
  const sessions = useSignal<readonly InstallSession[]>([])
  const action = useAction()
  const mayInstall = reaches(person.value?.role, 'collaborator')
  const install = (dirs: readonly string[]) =>
    void action.run(async () => {
      const answer = await askDaemon('POST /workspace/setup/install', { dirs: dirs.slice(0, MOST) })
      sessions.value = answer.sessions
      refetch(new Set(['panels', 'terminals']))
    })
  const open = query.data?.projects.filter(({ state }) => OPEN.has(state)).map(({ dir }) => dir) ?? []
  return (
    <section aria-labelledby="dependencies-heading">
      <div class="section-head">
        <h2 id="dependencies-heading">Dependencies</h2>
        {mayInstall && open.length > 1 && (
          <button class="button" type="button" disabled={action.busy} onClick={() => install([...new Set(open)])}>
            Install all that are missing
          </button>
        )}
      </div>
      <FaultLine fault={action.fault} />
      <Loaded query={query}>
        {({ projects }) =>
          projects.length === 0 ? (
            <p class="quiet">Folders with a manifest, such as package.json or pyproject.toml, appear here.</p>
          ) : (
            <ul class="items">
              {projects.map(project => (
                <ProjectRow
                  key={`${project.dir} ${project.ecosystem}`}
                  project={project}
                  session={sessions.value.find(({ dir }) => dir === project.dir)?.session}
                  install={mayInstall && !action.busy ? () => install([project.dir]) : undefined}
                />
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}
