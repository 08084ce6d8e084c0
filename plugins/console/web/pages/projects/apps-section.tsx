import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { AppSummary } from '../../../../workspace/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { DialogForm, FormButton } from '../../ui/dialog.js'
import { ChoiceField, TextField } from '../../ui/fields.js'
import { visibleName, visibleText } from '../../ui/format.js'
import { AddressLink } from '../../ui/address-link.js'
import { FaultLine, Item, Loaded, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches } from '../registry.js'
import { SessionLink } from './session-link.js'

/** How often a starting app is looked at. */
const LOOK_MS = 1_500

const changed = (): void => refetch(new Set(['panels', 'terminals']))

/** The state of a server that is started here. */
export const serverState = ({ running, healthy }: Pick<AppSummary, 'running' | 'healthy'>): ToneWord =>
  healthy ? ['good', 'Answers'] : running ? ['busy', 'Runs'] : ['', 'Stopped']

/** Apps listen on the machine of the sandbox: a page on the same machine reaches them. */
const isLocal = (): boolean => ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname)

/** A port of the machine of the sandbox, as a link where that is this one. */
const LocalPort = ({ port }: { port: number }) =>
  isLocal() ? (
    <a href={`http://localhost:${port}/`} target="_blank" rel="noopener noreferrer">
      port {port}
    </a>
  ) : (
    <>port {port}</>
  )

interface ServerLinksProps {
  readonly port: number | undefined
  readonly previewUrl: string | undefined
  readonly session: string | undefined
}

/** Where a server that is started here is reached, and what it prints. */
export const ServerLinks = ({ port, previewUrl, session }: ServerLinksProps) => (
  <>
    {port !== undefined && <LocalPort port={port} />}
    {previewUrl !== undefined && (
      <>
        {' '}
        <AddressLink address={previewUrl} label="Preview" />
      </>
    )}
    {session !== undefined && (
      <>
        {' '}
        <SessionLink session={session} label="What it prints" />
      </>
    )}
  </>
)

const AppRow = ({ repo, summary }: { repo: string; summary: AppSummary }) => {
  const { app, kind, running, port, previewUrl, session } = summary
  const action = useAction()
  const run = async (start: boolean) => {
    if (start) await askDaemon('POST /workspace/repos/{repo}/apps/{app}/start', { repo, app })
    else await askDaemon('POST /workspace/repos/{repo}/apps/{app}/stop', { repo, app })
    changed()
  }
  return (
    <Item
      title={visibleName(app)}
      state={serverState(summary)}
      detail={
        <>
          {kind && `${visibleName(kind)} `}
          <ServerLinks port={port} previewUrl={previewUrl} session={session} />
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {reaches(person.value?.role, 'maintainer') && (
        <ActionButton action={action} work={() => run(!running)} about={visibleName(app)}>
          {running ? 'Stop' : 'Start'}
        </ActionButton>
      )}
    </Item>
  )
}

const AddAppForm = ({ repo, close }: { repo: string; close: () => void }) => {
  const name = useSignal('')
  const chosen = useSignal('')
  const list = useQuery('templates', ['files'], () => askDaemon('GET /workspace/templates'))
  const templates = list.data?.templates.filter(({ kind }) => kind === 'app') ?? []
  const template = chosen.value || templates[0]?.key
  const about = templates.find(({ key }) => key === template)?.description
  return (
    <DialogForm
      title="Add an app"
      verb="Add"
      close={close}
      ready={template !== undefined && name.value.trim() !== ''}
      work={async () => {
        const { session } = await askDaemon('POST /workspace/repos/{repo}/apps', {
          ...{ repo, apps: [{ template: template!, name: name.value.trim() }] },
        })
        changed()
        goTo('terminals', session)
        return 'stays'
      }}
    >
      <Loaded query={list}>
        {({ source }) => (
          <ChoiceField
            label="Template"
            value={chosen}
            choices={templates.map(({ key, label }) => [key, visibleName(label)] as const)}
            hint={`${about ? `${visibleText(about)} ` : ''}From: ${visibleName(source)}.`}
          />
        )}
      </Loaded>
      <TextField label="Name" required value={name} hint="Lower case letters, digits and dashes; its folder." />
    </DialogForm>
  )
}

const TestForm = ({ repo, close }: { repo: string; close: () => void }) => {
  const folders = useSignal('')
  return (
    <DialogForm
      title="Run tests"
      verb="Run"
      close={close}
      work={async () => {
        const dirs = folders.value.split('\n').map(line => line.trim())
        const named = dirs.filter(Boolean)
        const { session } = await askDaemon('POST /workspace/repos/{repo}/tests', {
          ...{ repo, session: 'tests', dirs: named.length > 0 ? named : [''] },
        })
        changed()
        if (!reaches(person.value?.role, 'maintainer')) return undefined
        goTo('terminals', session)
        return 'stays'
      }}
    >
      <p>The command is the manifest's own: its test script, pytest, cargo test or go test.</p>
      <TextField label="Folders, one a line" rows={3} value={folders} hint="Without one, the whole repository." />
    </DialogForm>
  )
}

/** The apps of a repository and their ports, and its tests. */
export const AppsSection = ({ repo }: { repo: string }) => {
  const query = useQuery(`apps ${repo}`, ['apps', 'panels', 'files', 'terminals'], () =>
    askDaemon('GET /workspace/repos/{repo}/apps', { repo }),
  )
  const starting = query.data?.apps.some(({ running, healthy }) => running && !healthy) ?? false
  useEffect(() => {
    if (!starting) return undefined
    // No event says that a port answers.
    const timer = setInterval(() => refetch(new Set(['apps'])), LOOK_MS)
    return () => clearInterval(timer)
  }, [starting])
  const role = person.value?.role
  return (
    <section aria-labelledby="apps-heading">
      <div class="section-head">
        <h2 id="apps-heading">Apps</h2>
        {reaches(role, 'collaborator') && (
          <FormButton label="Run tests" form={close => <TestForm repo={repo} close={close} />} />
        )}
        {reaches(role, 'maintainer') && (
          <FormButton label="Add an app" form={close => <AddAppForm repo={repo} close={close} />} />
        )}
      </div>
      <Loaded query={query}>
        {({ apps }) =>
          apps.length === 0 ? (
            <p class="quiet">Folders of apps/ whose manifest has a dev or start script appear here.</p>
          ) : (
            <ul class="items">
              {apps.map(summary => (
                <AppRow key={summary.app} repo={repo} summary={summary} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}
