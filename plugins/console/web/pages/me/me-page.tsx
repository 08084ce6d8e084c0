import { askDaemon } from '../../data/api.js'
import { letterKeys, setLetterKeys } from '../../data/keys.js'
import { limits } from '../../data/limits.js'
import { chooseNotifications, notifications } from '../../data/notifications.js'
import { chooseTheme, theme, type ThemeChoice } from '../../data/theme.js'
import { person, signOut } from '../../data/session/session.js'
import { AskButton } from '../../ui/dialog.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { useQuery } from '../../ui/query.js'
import type { PageProps } from '../registry.js'
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

const Notifications = () => {
  const state = notifications.value
  if (state === 'none' || state === 'denied') return <p class="quiet">{WHY_NOT[state]}</p>
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={state === 'on'}
        onChange={event => void chooseNotifications(event.currentTarget.checked)}
      />
      <span>Notify me when something waits for me and this page is in the background</span>
    </label>
  )
}

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
