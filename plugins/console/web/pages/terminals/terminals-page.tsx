import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { TerminalSession } from '../../../../system/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session.js'
import { AskButton, DialogForm, FormButton } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, visibleName } from '../../ui/format.js'
import { Icon } from '../../ui/icons.js'
import { Bones, Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { TerminalView } from './terminal-view.js'

const KINDS: { readonly [kind in TerminalSession['kind']]: string } = {
  shell: 'a shell',
  panel: 'of a panel',
  agent: 'of an agent',
  job: 'a job',
  process: 'a process',
}

const titleOf = ({ label, name }: TerminalSession): string => visibleName(label ?? name)

const stateOf = ({ running, exitCode }: TerminalSession): ToneWord =>
  running ? ['good', 'Runs'] : [exitCode ? 'bad' : '', exitCode === undefined ? 'Ended' : `Ended with ${exitCode}`]

const changed = (): void => refetch(new Set(['terminals']))

const OpenForm = ({ close }: { close: () => void }) => {
  const label = useSignal('')
  const cwd = useSignal('')
  const command = useSignal('')
  return (
    <DialogForm
      title="Open a terminal"
      verb="Open"
      close={close}
      work={async () => {
        const { name } = await askDaemon('POST /system/terminals', {
          ...(label.value.trim() && { label: label.value.trim() }),
          ...(cwd.value.trim() && { cwd: cwd.value.trim() }),
          ...(command.value.trim() && { command: command.value.trim() }),
        })
        changed()
        goTo('terminals', name)
        // Another address closes the dialog.
        return 'stays'
      }}
    >
      <p>A shell in the workspace. It goes on when you close the page.</p>
      <TextField label="Name" value={label} />
      <TextField label="Folder" value={cwd} placeholder="The root of the workspace" />
      <TextField label="Command to type first" value={command} />
    </DialogForm>
  )
}

const EndButton = ({ session }: { session: TerminalSession }) => (
  <AskButton
    label="End"
    about={titleOf(session)}
    title={`End ${titleOf(session)}?`}
    work={async () => {
      await askDaemon('DELETE /system/terminals/{name}', { name: session.name })
      changed()
    }}
  >
    <p>Everything that runs in it is ended too.</p>
  </AskButton>
)

const Row = ({ session }: { session: TerminalSession }) => {
  const { name, kind, command, cwd, activityAt, attached } = session
  const maintains = reaches(person.value?.role, 'maintainer')
  const title = titleOf(session)
  return (
    <Item
      title={maintains && session.running ? <a href={fragmentOf('terminals', name)}>{title}</a> : title}
      state={stateOf(session)}
      detail={
        <>
          {KINDS[kind] ?? kind}
          {command && (
            <>
              {' '}
              · runs <span class="mono">{visibleName(command)}</span>
            </>
          )}
          {cwd && ` · in ${visibleName(cwd)}`}
          {activityAt > 0 && ` · used ${agoOf(activityAt)}`}
          {attached > 0 && ` · ${attached} watching`}
        </>
      }
    >
      {maintains && <EndButton session={session} />}
    </Item>
  )
}

const One = ({ name, sessions }: { name: string; sessions: readonly TerminalSession[] }) => {
  const session = sessions.find(one => one.name === name)
  const back = useRef<HTMLAnchorElement>(null)
  return (
    <>
      <header class="page-head">
        <a ref={back} class="button plainly back" href={fragmentOf('terminals')} aria-label="Back to the terminals">
          <Icon name="back" />
        </a>
        <h1 class="grow one-line" dir="auto">
          {session ? titleOf(session) : visibleName(name)}
        </h1>
        {session && <EndButton session={session} />}
      </header>
      <main class="page-fill terminal">
        {session ? (
          <TerminalView key={name} session={session} leave={() => back.current?.focus()} />
        ) : (
          <p class="empty quiet">There is no such terminal.</p>
        )}
      </main>
    </>
  )
}

/** Shells in the workspace: the list, and one of them to use. */
export const TerminalsPage = ({ rest }: PageProps) => {
  const [name] = rest
  const list = useQuery('terminals', ['terminals'], () => askDaemon('GET /system/terminals'))
  const maintains = reaches(person.value?.role, 'maintainer')
  if (name !== undefined && maintains) return list.data ? <One name={name} sessions={list.data.sessions} /> : <Bones />
  return (
    <PageFrame
      title="Terminals"
      tools={maintains && <FormButton label="Open a terminal" primary form={close => <OpenForm close={close} />} />}
    >
      <Loaded query={list}>
        {({ sessions }) =>
          sessions.length === 0 ? (
            <p class="quiet">Terminals that people and agents open in the workspace appear here.</p>
          ) : (
            <ul class="items">
              {sessions.map(session => (
                <Row key={session.name} session={session} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </PageFrame>
  )
}
