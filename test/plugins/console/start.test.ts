import pty from '@lydell/node-pty'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import {
  barriersOf,
  CONSOLE_GROUPS,
  endJourney,
  launchBrowser,
  loginLink,
  openTab,
} from '../../support/browser/console.js'
import { daemonWith, folderOf } from '../../support/daemon.js'
import { linkCodeOf } from '../../../plugins/console/web/data/session/link.js'
import { programFile } from '../../../sdk/node/programs/package.js'

t.test('a link to sign in may name a conversation', async t => {
  t.same(linkCodeOf('#login=abc&conversation=c-1'), { kind: 'login', login: 'abc', conversation: 'c-1' })
  t.same(linkCodeOf('#login=abc'), { kind: 'login', login: 'abc' })
  t.equal(linkCodeOf('#conversation=c-1'), undefined)
})

t.test('the link that the sample prints opens its conversation, signed in', withChromium(), async t => {
  const env = { ...process.env, XDG_STATE_HOME: folderOf(t), NO_COLOR: '1' }
  const sample = pty.spawn(process.execPath, [programFile('sdk/cli.js'), 'serve', '--sample', '--port', '0'], {
    ...{ env, cols: 400, rows: 50 },
  })
  const ended = new Promise<number>(resolve => sample.onExit(({ exitCode }) => resolve(exitCode)))
  t.teardown(async () => {
    sample.kill('SIGTERM')
    await ended
  })
  let out = ''
  const link = await new Promise<string>((resolve, reject) => {
    sample.onData(text => {
      out += text
      const [url] = /http:\S+#login=\S+&conversation=c-\S+(?=\s)/.exec(out) ?? []
      if (url) resolve(url)
    })
    void ended.then(code => reject(new Error(`it ended with ${code}: ${out}`)))
  })
  const page = await (await launchBrowser(t)).newPage()
  await page.goto(link)
  await page.getByRole('heading', { name: 'The demonstration' }).waitFor()
  await page.getByText('Landed', { exact: true }).first().waitFor()
  t.match(page.url(), /\/#\/c\/c-[^/]+$/, 'the code is in the address no more')
})

t.test('the page is served and signs in while the daemon still starts, and says so', withChromium(), async t => {
  const boot = Promise.withResolvers<void>()
  const daemon = await daemonWith(t, CONSOLE_GROUPS, { boot: boot.promise })
  t.teardown(() => boot.resolve())
  t.match(await (await fetch(`${daemon.url}/health`)).json(), { ready: false })
  const page = await fetch(daemon.url)
  t.equal(page.status, 200)
  const [, script] = /src="(\/console\/[^"]+)"/.exec(await page.text()) ?? []
  t.equal((await fetch(daemon.url + script)).status, 200)
  const tab = await openTab(await launchBrowser(t), daemon)
  await tab.page.goto(await loginLink(daemon))
  const said = tab.page.getByText('The sandbox is starting …')
  await said.waitFor()
  t.same(await barriersOf(tab.page), [])
  boot.resolve()
  await said.waitFor({ state: 'detached' })
  await tab.page.getByRole('link', { name: 'Start a conversation' }).waitFor()
  await endJourney(t, tab)
})
