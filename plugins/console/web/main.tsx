import '@preact/signals'
import './core.js'
import { render } from 'preact'
import { beginSession, signIn, watchSession } from './data/session/session.js'
import { watchEvents } from './data/live.js'
import { watchPlace } from './data/route.js'
import { watchExtensions } from './data/extensions/shown-extensions.js'
import { watchTheme } from './data/theme.js'
import { Shell } from './ui/shell/shell.js'
import { watchKeys } from './ui/shell/watch-keys.js'
import { lazyView } from './ui/lazy.js'
import { ignored } from '../../../sdk/ignored.js'

const SignInPage = lazyView(async () => (await import('./ui/shell/sign-in.js')).SignInPage)

const App = () => {
  const state = signIn.value
  if (state.kind === 'checking')
    return (
      <main class="front">
        <h1 class="visually-hidden">Sandbox</h1>
      </main>
    )
  if (state.kind === 'out') return <SignInPage message={state.message} codes={state.codes} options={state.options} />
  return <Shell />
}

watchTheme()
watchSession()
watchPlace()
watchEvents()
watchKeys()
watchExtensions()
render(<App />, document.getElementById('app')!)
void beginSession()
void import('./data/find-limits.js')
  .then(({ findLimits }) => findLimits())
  .catch(ignored('the first page is shown without them'))
// Also a sandbox that was updated meanwhile shows it when the session ends.
void SignInPage.preload().catch(ignored('it is loaded when it is shown'))
void import('./data/notifications.js')
  .then(({ watchNotifications }) => watchNotifications())
  .catch(ignored('the page works without notifications'))
