import pty from '@lydell/node-pty'
import { join } from 'node:path'
import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { launchBrowser } from '../../support/browser/console.js'
import { folderOf, root } from '../../support/daemon.js'
import { linkCodeOf } from '../../../plugins/console/web/data/session/link.js'

t.test('a link to sign in may name a conversation', async t => {
  t.same(linkCodeOf('#login=abc&conversation=c-1'), { kind: 'login', login: 'abc', conversation: 'c-1' })
  t.same(linkCodeOf('#login=abc'), { kind: 'login', login: 'abc' })
  t.equal(linkCodeOf('#conversation=c-1'), undefined)
})

t.test('the link that the sample prints opens its conversation, signed in', withChromium(), async t => {
  const env = { ...process.env, XDG_STATE_HOME: folderOf(t), NO_COLOR: '1' }
  const sample = pty.spawn(process.execPath, [join(root, 'sdk', 'cli.js'), 'serve', '--sample', '--port', '0'], {
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
