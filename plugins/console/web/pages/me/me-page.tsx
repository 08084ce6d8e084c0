import { useSignal } from '@preact/signals'
import { askDaemon } from '../../data/api.js'
import { letterKeys, setLetterKeys } from '../../data/keys.js'
import { limits } from '../../data/limits.js'
import { served } from '../../data/live.js'
import { chooseNotifications, notifications } from '../../data/notifications.js'
import { pushed, testPush } from '../../data/push.js'
import { chooseTheme, theme, type ThemeChoice } from '../../data/theme.js'
import { person, signOut } from '../../data/session/session.js'
import { AskButton } from '../../ui/dialog.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { FaultLine } from '../../ui/page.js'

const Sessions = () => {
  const action = useAction()
  const { data } = useQuery('sessions', ['sessions'], () => askDaemon('GET /system/sessions'))
  return (
    <section class="stack">
      <h2>Sign-ins</h2>
      <ul class="plain-list">
        {data?.sessions.map(({ id, email, device, via, lastSeenAt, current }) => (
          <li key={id} class="row apart">
            <span>
              {visibleName(device ?? via)} <span class="quiet small">{email}</span>
              <br />
              <span class="quiet small">Last used {momentOf(lastSeenAt)}</span>
            </span>
            {current ? (
              <span class="tag good">This one</span>
            ) : (
              <ActionButton action={action} work={() => askDaemon('POST /system/sessions/revoke', { id })}>
                End<span class="visually-hidden"> the sign-in {visibleName(device ?? via)}</span>
              </ActionButton>
            )}
          </li>
        ))}
      </ul>
      <FaultLine fault={action.fault} />
    </section>
  )
}

const WHY_NOT = {
  none: 'This browser shows no notifications for this page; its title still counts what waits for you.',
  denied: 'This browser blocks notifications of this page; its title still counts what waits for you.',
} as const

const HOW = {
  on: 'They come also while no page of the sandbox is open.',
  off: 'They come while no page of the sandbox is open too, if this browser has a push service.',
  none: 'They come while a page of the sandbox is open in the background.',
} as const

const Notifications = () => {
  const action = useAction()
  const delivered = useSignal<number | undefined>(undefined)
  const state = notifications.value
  if (state === 'none' || state === 'denied') return <p class="quiet">{WHY_NOT[state]}</p>
  const push = served.value.has('push.subscribe') && reaches(person.value?.role, 'collaborator') ? pushed.value : 'none'
  const test = async () => {
    delivered.value = await testPush()
  }
  return (
    <section class="stack">
      <label class="check">
        <input
          type="checkbox"
          checked={state === 'on'}
          disabled={action.busy}
          onChange={event => {
            const { checked } = event.currentTarget
            delivered.value = undefined
            void action.run(() => chooseNotifications(checked))
          }}
        />
        <span>
          Notify me on this device when a turn has finished, an agent is stuck or something awaits approval
          <br />
          <span class="quiet small">{HOW[push]}</span>
        </span>
      </label>
      {state === 'on' && push === 'on' && (
        <div class="row">
          <ActionButton action={action} work={test}>
            Send a test
          </ActionButton>
          <span class="quiet" role="status">
            {delivered.value !== undefined && deliveredTo(delivered.value)}
          </span>
        </div>
      )}
      <FaultLine fault={action.fault} />
    </section>
  )
}

const deliveredTo = (devices: number): string =>
  devices === 0 ? 'No device of yours took it.' : devices === 1 ? 'One device took it.' : `${devices} devices took it.`

/** The person's role, the theme of the page, and their sessions. */
export const MePage = (_: PageProps) => (
  <>
    <header class="page-head">
      <h1>You</h1>
    </header>
    <main class="page-body">
      <div class="stack new-form">
        <p>
          {person.value?.name ?? person.value?.email}, <span class="quiet">{person.value?.role}</span>
          {person.value?.areas && <span class="quiet"> in {person.value.areas.join(', ')}</span>}
        </p>
        <label class="field">
          Theme
          <select value={theme.value} onChange={event => chooseTheme(event.currentTarget.value as ThemeChoice)}>
            <option value="system">As the system</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={letterKeys.value}
            onChange={event => setLetterKeys(event.currentTarget.checked)}
          />
          <span>
            Keys without Ctrl, Alt or ⌘ do something: press <kbd>?</kbd> to see which
          </span>
        </label>
        <Notifications />
        <Sessions />
        {limits.value.length > 0 && (
          <section class="stack">
            <h2>This browser</h2>
            {limits.value.map(sentence => (
              <p key={sentence}>{sentence}</p>
            ))}
          </section>
        )}
        <div class="row">
          <button class="button" type="button" onClick={() => void signOut()}>
            Sign out
          </button>
          {person.value?.role !== 'owner' && (
            <AskButton
              label="Leave"
              about="this sandbox"
              title="Leave this sandbox?"
              work={async () => {
                await askDaemon('DELETE /members/self')
                await signOut()
              }}
            >
              <p>Your access ends everywhere. To come back you need a new invitation.</p>
            </AskButton>
          )}
        </div>
        <p class="small quiet">
          <a href="/reference">All calls of this sandbox</a>
        </p>
      </div>
    </main>
  </>
)
