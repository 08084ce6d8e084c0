import { useSignal } from '@preact/signals'
import type { TerminalSession } from '../../../../system/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { AskButton, DialogForm } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, visibleName } from '../../ui/format.js'
import { Item, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { RunningSessions, type SessionWords } from '../../ui/sessions.js'
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

const WORDS: SessionWords<TerminalSession> = {
  page: 'terminals',
  heading: 'Terminals',
  back: 'Back to the terminals',
  open: 'Open a terminal',
  empty: 'Terminals that people and agents open in the workspace appear here.',
  gone: 'There is no such terminal.',
  frameClass: 'terminal',
  titleOf,
  // What an ended one showed last can be read too.
  isOpen: () => true,
  Row,
  End: EndButton,
  View: TerminalView,
  form: close => <OpenForm close={close} />,
}

/** Shells in the workspace: the list, and one of them to use. */
export const TerminalsPage = ({ rest: [name] }: PageProps) => {
  const list = useQuery('terminals', ['terminals'], () => askDaemon('GET /system/terminals'))
  return <RunningSessions words={WORDS} name={name} list={list} />
}
