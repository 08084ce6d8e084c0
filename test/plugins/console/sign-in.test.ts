import t from 'tap'
import { readConfig } from '../../../kernel/config/config.js'
import { askSocket } from '../../../sdk/cli/daemon/socket.js'
import { until, withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  goTo,
  launchBrowser,
  loginLink,
  openTab,
  ownerBrowser,
} from '../../support/browser/console.js'
import { daemonWith, folderOf } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { startRealIssuer } from '../../support/servers/real-issuer.js'

/** The keys of what a page keeps beyond its tab. */
const KEPT = `(async () => {
  const done = asked => new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result)
    asked.onerror = () => reject(asked.error)
  })
  const kept = Object.keys(localStorage)
  for (const { name } of await indexedDB.databases()) {
    const database = await done(indexedDB.open(name))
    for (const store of database.objectStoreNames)
      kept.push(...(await done(database.transaction(store).objectStore(store).getAllKeys())))
    database.close()
  }
  return kept
})()`

t.test('signing in without a provider', withChromium(), async t => {
  const daemon = await daemonWith(t, CONSOLE_GROUPS)
  const browser = await launchBrowser(t)

  await t.test('a link signs in once, and the person stays signed in until they sign out', async t => {
    const tab = await openTab(browser, daemon)
    const { page } = tab
    await page.goto(daemon.url)
    await page.getByText('You are not signed in.').waitFor()
    t.same(await barriersOf(page), [])
    const url = await loginLink(daemon)
    t.ok(url.startsWith(`${daemon.url}/#login=`))
    await page.goto(url)
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    t.equal(page.url(), `${daemon.url}/`, 'the code is in the address no more')
    await page.reload()
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    t.equal(await page.evaluate('Object.keys(localStorage).concat(Object.keys(sessionStorage)).length'), 0)
    await page.getByRole('link', { name: 'You' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await page.reload()
    await page.getByText('You are not signed in.').waitFor()
    await endJourney(t, tab)
    await page.goto('about:blank')
    await page.goto(url)
    await page.getByText(/code/).first().waitFor()
    await page.getByText('run sandbox login').waitFor()
  })

  await t.test('on a computer of somebody else nothing is kept, and a reload asks to sign in again', async t => {
    const { invitation } = await daemon.client.call('POST /members', { role: 'collaborator' })
    const tab = await openTab(browser, daemon, {})
    const { page } = tab
    await page.goto(invitation!.url)
    await page.getByLabel('Your name').fill('Ben')
    await page.getByLabel('This is not my computer').check()
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.locator('[data-ready=yes]').waitFor()
    await runTurn(daemon.client, 'visited', 'say hello')
    await goTo(page, '#/c/visited')
    await page.getByLabel('Message to the agent').fill('half a thought')
    t.same(await page.evaluate(KEPT), [], 'IndexedDB and what outlives the tab are empty')
    await page.reload()
    await page.getByText('You are not signed in.').waitFor()
    await endJourney(t, tab)
    await page.context().close()
  })

  await t.test('signing out leaves nothing of the person in the browser', async t => {
    const tab = await ownerBrowser(browser, daemon, '#/c/visited', {})
    const { page } = tab
    await page.getByLabel('Message to the agent').fill('half a thought')
    t.ok(((await page.evaluate(KEPT)) as string[]).length > 1, 'the session and the draft')
    await goTo(page, '#/me')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    t.same(await page.evaluate(KEPT), [])
    await endJourney(t, tab)
    await page.context().close()
  })

  await t.test('a session that was ended elsewhere asks to sign in again', async t => {
    const { page } = await openTab(browser, daemon)
    await page.goto(await loginLink(daemon))
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    await page.locator('[data-ready=yes]').waitFor()
    await daemon.client.call('POST /system/sessions/revoke', { email: 'owner@sandbox.local' })
    await page.getByText('Your session has ended.').waitFor()
    await page.goto(await loginLink(daemon))
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
  })

  await t.test('a page that stays open renews its session, and shows no token', async t => {
    // In a context of its own: its clock is moved on.
    const tab = await openTab(browser, daemon, {})
    const { page } = tab
    const tokens = new Set<string>()
    const seen: string[] = []
    page.on('request', request => {
      const { authorization } = request.headers()
      if (authorization) tokens.add(authorization.replace('Bearer ', ''))
      seen.push(request.url())
    })
    page.on('console', message => seen.push(message.text()))
    await page.clock.install()
    await page.goto(await loginLink(daemon))
    await page.locator('[data-ready=yes]').waitFor()
    const opened = page.waitForResponse('**/system/session')
    await page.clock.fastForward('06:02:00')
    const { token } = (await (await opened).json()) as { token: string }
    t.notOk(tokens.has(token), 'the session has another token')
    await goTo(page, '#/logs')
    await page.getByRole('heading', { name: 'Logs' }).waitFor()
    await until(() => tokens.has(token))
    seen.push(page.url(), await page.title(), await page.content())
    for (const one of [...tokens, token]) t.notOk(seen.join('\n').includes(one), 'in no address, title, log or text')
    await page.context().close()
  })

  await t.test('an invitation is accepted under a name', async t => {
    const owner = daemon.auth.openLocal('test').token
    const invited = await daemon.fetch('/members', {
      method: 'POST',
      headers: { authorization: `Bearer ${owner}` },
      body: JSON.stringify({ role: 'collaborator' }),
    })
    const { invitation } = (await invited.json()) as { invitation: { url: string } }
    const tab = await openTab(browser, daemon)
    const { page } = tab
    await page.goto(invitation.url)
    await page.getByText('You were invited').waitFor()
    t.same(await barriersOf(page), [])
    await page.getByLabel('Your name').fill('Ada <b>')
    await page.getByRole('button', { name: 'Accept the invitation' }).click()
    await page.getByText('Ada <b>').waitFor()
    await endJourney(t, tab)
  })
})

t.test(
  'a provider signs in with a code and PKCE or an identity token, the first with the claim code',
  withChromium(),
  async t => {
    const issuer = await startRealIssuer(t)
    const daemon = await daemonWith(t, CONSOLE_GROUPS, {
      deployment: {
        identity: {
          claim: 'code',
          providers: [issuer.provider, { ...issuer.provider, id: 'other', label: 'Other', flow: 'id_token' }],
        },
      },
    })
    await issuer.allow(`${daemon.url}/`)
    const [provider] = (await daemon.client.call('GET /system/sign-in')).providers
    t.match(provider, { flow: 'code', authorize: /\/auth$/, token: /\/token$/ })
    await daemon.client.call('POST /members', { email: 'ada@example.org', role: 'maintainer' })
    const browser = await launchBrowser(t)
    for (const [label, hidden] of [
      ['Real', 'code'],
      ['Other', 'id_token'],
    ] as const) {
      const tab = await openTab(browser, daemon, {})
      const { page } = tab
      const left: string[] = []
      page.on('request', request => left.push(request.url()))
      await page.goto(daemon.url)
      const claim = page.getByLabel('Claim code')
      await page.getByRole('button', { name: `Sign in with ${label}` }).waitFor()
      t.equal(await claim.count(), hidden === 'code' ? 1 : 0, 'asked for until somebody owns the sandbox')
      if (hidden === 'code') {
        t.same(await barriersOf(page), [])
        await claim.fill(daemon.auth.claim!)
      }
      await page.getByRole('button', { name: `Sign in with ${label}` }).click()
      await page.locator('[name=login]').fill('ada@example.org')
      await page.locator('[name=password]').fill('any')
      await page.locator('[type=submit]').click()
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('heading', { name: 'Fleet' }).waitFor()
      t.equal(page.url(), `${daemon.url}/`)
      const asked = new URL(left.find(url => url.includes('/auth?'))!).searchParams
      t.equal(asked.get('response_type'), hidden)
      t.equal(asked.has('code_challenge'), hidden === 'code')
      t.notOk(
        left.some(url => url.startsWith(daemon.url) && /code=|id_token=/.test(url)),
        'nothing of it reaches logs',
      )
      t.same(await barriersOf(page), [])
      const { sessions } = await daemon.client.call('GET /system/sessions')
      t.ok(sessions.some(({ email }) => email === 'ada@example.org'))
      await page.context().close()
    }
    const { page } = await openTab(browser, daemon)
    await page.goto(`${daemon.url}/#state=made-up&code=stolen`)
    await page.reload()
    t.equal(await page.evaluate('location.hash'), '')
  },
)

t.test('links name the public address where there is one, and the daemon answers under its host', async t => {
  const folder = folderOf(t)
  const read = (...more: string[]) => readConfig(['--workspace', folder, '--data', `${folder}-data`, ...more], {})
  for (const wrong of ['sandbox.example.org', 'ftp://x', 'https://x/path', 'https://u@x', ''])
    t.throws(() => read('--public-url', wrong), { message: /^--public-url expects an address such as / }, wrong)
  const { deployment } = read('--public-url', 'https://Sandbox.example.org/')
  t.match(deployment, { http: { publicUrl: 'https://sandbox.example.org', hosts: exactly('sandbox.example.org') } })
  const daemon = await daemonWith(t, ['system'], { deployment })
  const { url } = (await askSocket(daemon.socket!, { do: 'login' })) as { url: string }
  t.match(url, /^https:\/\/sandbox\.example\.org\/#login=/)
  const { invitation } = await daemon.client.call('POST /members', { role: 'viewer' })
  t.match(invitation!.url, /^https:\/\/sandbox\.example\.org\/#invite=/)
})
