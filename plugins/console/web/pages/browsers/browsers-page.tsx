import { useSignal } from '@preact/signals'
import type { BrowserSession } from '../../../../system/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf, goTo } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { AskButton, DialogForm } from '../../ui/dialog.js'
import { TextField } from '../../ui/fields.js'
import { agoOf, visibleName } from '../../ui/format.js'
import { Item } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { RunningSessions, type SessionWords } from '../../ui/sessions.js'
import { reaches, type PageProps } from '../registry.js'
import { BrowserView } from './browser-view.js'

const changed = (): void => refetch(new Set(['browsers']))

const unusedName = (): string =>
  `web-${[...crypto.getRandomValues(new Uint32Array(2))].map(one => one.toString(36)).join('')}`

const titleOf = ({ label, name }: BrowserSession): string => visibleName(label || name)

const OpenForm = ({ close }: { close: () => void }) => {
  const url = useSignal('http://')
  return (
    <DialogForm
      title="Open a browser"
      verb="Open"
      close={close}
      work={async () => {
        const { session } = await askDaemon('POST /system/browsers/{name}/page', {
          ...{ name: unusedName(), action: 'open', url: url.value.trim() },
        })
        changed()
        goTo('browsers', session.name)
        // Another address closes the dialog.
        return 'stays'
      }}
    >
      <p>A browser on the machine of the sandbox, without sign-ins. It reaches what the machine reaches.</p>
      <TextField label="Address" required type="url" value={url} />
    </DialogForm>
  )
}

const CloseButton = ({ session }: { session: BrowserSession }) => (
  <AskButton
    label="Close"
    about={titleOf(session)}
    title={`Close ${titleOf(session)}?`}
    work={async () => {
      await askDaemon('DELETE /system/browsers/{name}', { name: session.name })
      changed()
    }}
  >
    <p>Its pages close, and an agent that uses it loses them.</p>
  </AskButton>
)

const Row = ({ session }: { session: BrowserSession }) => {
  const { name, running, activityAt, conversationId, pages } = session
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <Item
      title={maintains && running ? <a href={fragmentOf('browsers', name)}>{titleOf(session)}</a> : titleOf(session)}
      state={running ? ['good', 'Runs'] : ['', 'Closed']}
      detail={
        <>
          {pages.map(({ id, title, url }) => (
            <div key={id}>{visibleName(title ? `${title} – ${url}` : url)}</div>
          ))}
          <div>
            used {agoOf(activityAt)}
            {conversationId && (
              <>
                {' '}
                by <a href={fragmentOf('c', conversationId)}>{visibleName(conversationId)}</a>
              </>
            )}
          </div>
        </>
      }
    >
      {maintains && running && <CloseButton session={session} />}
    </Item>
  )
}

const WORDS: SessionWords<BrowserSession> = {
  page: 'browsers',
  heading: 'Browsers',
  back: 'Back to the browsers',
  open: 'Open a browser',
  empty: 'Browsers that people and agents open on the machine of the sandbox appear here.',
  gone: 'This browser is closed.',
  titleOf,
  isOpen: ({ running }) => running,
  Row,
  End: CloseButton,
  View: BrowserView,
  form: close => <OpenForm close={close} />,
}

/** Browsers of the sandbox: the list, and one of them to view and use. */
export const BrowsersPage = ({ rest: [name] }: PageProps) => {
  const list = useQuery('browsers', ['browsers'], () => askDaemon('GET /system/browsers'))
  return <RunningSessions words={WORDS} name={name} list={list} />
}
