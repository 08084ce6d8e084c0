import { chromium, type Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { readConfig } from '../kernel/config.js'
import { findChromium } from '../plugins/system/browsers/chromium.js'
import { createClient } from '../sdk/client.js'
import { askSocket } from '../sdk/cli/socket.js'
import { withChromium } from './support/browser.js'
import { daemonWith, folderOf } from './support/daemon.js'
import { exactly } from './support/lists.js'

const GROUPS = ['system']

const pageOf = async (t: Pick<Test, 'teardown'>): Promise<{ page: Page; faults: string[] }> => {
  const browser = await chromium.launch({
    executablePath: (await findChromium())!,
    chromiumSandbox: process.getuid?.() !== 0,
  })
  t.teardown(() => browser.close())
  const page = await browser.newPage()
  const faults: string[] = []
  page.on('console', message => message.type() === 'error' && faults.push(message.text()))
  page.on('pageerror', error => faults.push(error.message))
  return { page, faults }
}

const says = (page: Page, text: string) => page.locator('#status', { hasText: text }).waitFor({ timeout: 10_000 })

t.test(
  'the page at the root is for everybody, loads nothing from elsewhere, and changes only with the program',
  async t => {
    const { url } = await daemonWith(t, GROUPS)
    const page = await fetch(url)
    t.equal(page.status, 200)
    t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
    t.match(
      page.headers.get('content-security-policy'),
      /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/,
    )
    const text = await page.text()
    t.notMatch(text, /https?:|style="|onclick|<script>/)
    for (const [, path] of text.matchAll(/(?:href|src)="(\/[^"]*)"/g))
      t.equal((await fetch(url + path!)).status, 200, path!)
    t.equal((await fetch(url, { headers: { 'if-none-match': page.headers.get('etag')! } })).status, 304)
  },
)

t.test(
  'a link to sign in ends on the page, once, and the person stays signed in until they sign out',
  withChromium(),
  async t => {
    const daemon = await daemonWith(t, GROUPS)
    const { page, faults } = await pageOf(t)
    await page.goto(daemon.url)
    await says(page, 'You are not signed in')
    const { url } = (await askSocket(daemon.socket!, { do: 'login' })) as { url: string }
    t.ok(url.startsWith(`${daemon.url}/#login=`))
    await page.goto(url)
    await says(page, 'You are signed in as')
    t.equal(page.url(), `${daemon.url}/`, 'the code is in the address no more')
    await page.reload()
    await says(page, 'You are signed in as')
    const session = (await page.evaluate('localStorage.getItem("sandbox.session")')) as string
    t.match(await createClient({ url: daemon.url, session }).call('GET /info'), { me: { role: 'owner' } })
    await page.click('#out')
    await says(page, 'You are signed out')
    await t.rejects(createClient({ url: daemon.url, session }).call('GET /info'), {
      name: 'Refusal',
      reason: 'unauthenticated',
    })
    t.same(faults, [])
    await page.goto('about:blank')
    await page.goto(url)
    await says(page, 'code')
    t.equal(await page.isVisible('#how'), true, 'a link that was used says so, and what to do')
  },
)

t.test('an invitation is taken on the page under a name', withChromium(), async t => {
  const daemon = await daemonWith(t, GROUPS)
  const { invitation } = await daemon.client.call('POST /members', { role: 'collaborator' })
  const { page, faults } = await pageOf(t)
  await page.goto(invitation!.url)
  await says(page, 'You were invited')
  await page.fill('#name', 'Ada <b>')
  await page.click('#invitation button')
  await says(page, 'You are signed in as Ada <b>, collaborator.')
  t.match((await daemon.client.call('GET /members')).members.map(({ role }) => role).sort(), exactly('collaborator'))
  t.same(faults, [])
})

t.test('links name the public address where there is one, and the daemon answers under its host', async t => {
  const folder = folderOf(t)
  const read = (...more: string[]) => readConfig(['--workspace', folder, '--data', `${folder}-data`, ...more], {})
  for (const wrong of ['sandbox.example.org', 'ftp://x', 'https://x/path', 'https://u@x', ''])
    t.throws(() => read('--public-url', wrong), { message: /^--public-url expects an address such as / }, wrong)
  const { deployment } = read('--public-url', 'https://Sandbox.example.org/')
  t.match(deployment, { http: { publicUrl: 'https://sandbox.example.org', hosts: exactly('sandbox.example.org') } })
  const daemon = await daemonWith(t, GROUPS, { deployment })
  const { url } = (await askSocket(daemon.socket!, { do: 'login' })) as { url: string }
  t.match(url, /^https:\/\/sandbox\.example\.org\/#login=/)
  const { invitation } = await daemon.client.call('POST /members', { role: 'viewer' })
  t.match(invitation!.url, /^https:\/\/sandbox\.example\.org\/#invite=/)
})
