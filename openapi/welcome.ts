/** A page that the daemon serves: its parts and its policy. */
export interface OwnPage {
  readonly html: string
  readonly css: string
  readonly js: string
  /** Its `content-security-policy`. */
  readonly policy: string
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
  + "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const HTML = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandbox</title>
<link rel="stylesheet" href="/welcome/style.css"><script src="/welcome/script.js" defer></script></head>
<body><main><h1>Sandbox</h1>
<p>This is a sandbox: a daemon that runs coding agents beside your code, in private copies of your repositories.</p>
<p id="status" role="status">Looking whether you are signed in …</p>
<form id="invitation" hidden><label for="name">Your name, as the others here see it</label>
<input id="name" maxlength="80" autocomplete="name" required><button>Take the invitation</button></form>
<p id="how" hidden>To sign in as the owner, run <code>sandbox login</code> on the machine of the sandbox
and open the link it prints.</p>
<p><button id="out" type="button" hidden>Sign out</button></p>
<p class="quiet"><a href="/reference">All calls of this sandbox</a> · <a href="/openapi.json">openapi.json</a></p>
<noscript><p>Signing in on this page needs JavaScript. The command line and the HTTP calls do not.</p></noscript>
</main></body></html>
`

const CSS = `:root {
  color-scheme: light dark;
  --ink: #1c2024;
  --quiet: #5c6670;
  --line: #dfe3e8;
  --paper: #fff;
  --link: #0b5cad;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e9ec;
    --quiet: #98a2ad;
    --line: #2c333b;
    --paper: #14171a;
    --link: #79b8ff;
  }
}
* {
  box-sizing: border-box;
}
body {
  margin: 0;
  background: var(--paper);
  color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif;
}
main {
  max-width: 34rem;
  margin: 0 auto;
  padding: clamp(2rem, 12vh, 7rem) 1.25rem;
}
h1 {
  margin: 0;
  font-size: 2rem;
  line-height: 1.2;
}
p {
  margin: 0.85rem 0;
}
a {
  color: var(--link);
}
.quiet {
  color: var(--quiet);
  font-size: 0.875rem;
}
code {
  font-family: ui-monospace, Menlo, Consolas, monospace;
  font-size: 0.9em;
}
form {
  display: grid;
  gap: 0.5rem;
  margin: 1rem 0;
}
input,
button {
  font: inherit;
  padding: 0.5rem 0.75rem;
  color: inherit;
  background: var(--paper);
  border: 1px solid var(--line);
  border-radius: 0.4rem;
}
button {
  cursor: pointer;
  justify-self: start;
}
[hidden] {
  display: none !important;
}
`

/**
 * The session is stored for this origin only. The code of a link is removed from the address bar and the history before
 * any request.
 */
const JS = `const KEY = 'sandbox.session'
const by = id => document.getElementById(id)
const show = (id, on) => { by(id).hidden = !on }
const say = text => { by('status').textContent = text }
const ask = async (method, path, { session, body } = {}) => {
  const response = await fetch(path, {
    method, cache: 'no-store', ...(body && { body: JSON.stringify(body) }),
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...(session && { authorization: 'Bearer ' + session }),
    },
  })
  const value = await response.json()
  if (!response.ok) throw Object.assign(new Error(value.message), { status: response.status })
  return value
}
const device = () => (navigator.userAgentData?.platform || navigator.platform || 'browser').slice(0, 100)

const signedIn = ({ token, email, name, role }) => {
  localStorage.setItem(KEY, token)
  say('You are signed in as ' + (name || email) + ', ' + role + '.')
  show('out', true)
  show('invitation', false)
  show('how', false)
}
const signedOut = (text = 'You are not signed in.') => {
  say(text)
  show('out', false)
  show('how', true)
}

const invited = async invite => {
  const { providers } = await ask('GET', '/system/sign-in')
  if (providers.length) {
    const labels = providers.map(({ label }) => label).join(' or ')
    return signedOut('This invitation is taken with an account of ' + labels
      + ': open it in a client that signs in there. It was not used.')
  }
  say('You were invited to this sandbox.')
  show('invitation', true)
  by('invitation').addEventListener('submit', event => {
    event.preventDefault()
    const body = { invite, name: by('name').value.trim(), device: device() }
    void ask('POST', '/system/session', { body }).then(signedIn, error => signedOut(error.message))
  })
}

const begin = async () => {
  const link = new URLSearchParams(location.hash.slice(1))
  const [login, invite] = [link.get('login'), link.get('invite')]
  if (login || invite) history.replaceState(null, '', location.pathname)
  if (login) return signedIn(await ask('POST', '/system/session', { body: { login, device: device() } }))
  if (invite) return invited(invite)
  const session = localStorage.getItem(KEY)
  if (!session) return signedOut()
  try {
    signedIn(await ask('POST', '/system/session', { session, body: {} }))
  } catch (error) {
    if (error.status !== 401) throw error
    localStorage.removeItem(KEY)
    signedOut('Your session has ended.')
  }
}

by('out').addEventListener('click', async () => {
  const session = localStorage.getItem(KEY)
  try {
    await ask('POST', '/system/sessions/revoke', { session, body: { current: true } })
  } catch (error) {
    if (error.status !== 401) return say(error.message)
  }
  localStorage.removeItem(KEY)
  signedOut('You are signed out.')
})
const started = () => void begin().catch(error => signedOut(error.message))
// Opening a link while the page is open changes only the fragment.
addEventListener('hashchange', started)
started()
`

/**
 * The page at the root of the sandbox: explains it, shows whether the person is signed in, and completes sign-in links.
 */
export const welcomePage = (): OwnPage => ({ html: HTML, css: CSS, js: JS, policy: POLICY })
