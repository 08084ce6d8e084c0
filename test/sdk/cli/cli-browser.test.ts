import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { fakeDaemon } from './cli-process.js'
import { json } from '../wire.js'
import { exactly } from '../../support/lists.js'

const SESSION = {
  name: 'web-1',
  label: 'web-1',
  server: 'web',
  running: true,
  activityAt: Date.now(),
  conversationId: 'c-1',
  pages: [
    { id: 'p1', title: 'In\u001b[31mbox', url: 'https://mail.example/', active: false },
    { id: 'p2', url: 'https://two.example/', active: true },
  ],
}

t.test('browser lists the pages of the browsers', async t => {
  const daemon = await fakeDaemon(t, (_, response) => json(response, 200, { sessions: [SESSION] }))
  const { code, out } = await daemon.run(['browser'])
  t.equal(code, 0)
  t.match(
    out.split('\n'),
    exactly(
      /^NAME +STATE +USED +OF +PAGES$/,
      /^web-1 +running +.*c-1 +2$/,
      /^web-1 +p1 +https:\/\/mail\.example\/ +In\\u001b\[31mbox$/,
      /^web-1 +p2 \* +https:\/\/two\.example\/$/,
      '',
    ),
  )
  t.same(JSON.parse((await daemon.run(['browser', '--json'])).out), { sessions: [SESSION] })
})

t.test('browser opens, sends, captures and closes', async t => {
  const asked: string[] = []
  const daemon = await fakeDaemon(t, ({ method, path, body }, response) => {
    const sent = JSON.stringify(body ?? {})
    asked.push(`${method} ${path} ${sent}`)
    const capture = {
      pageId: 'p2',
      mime: 'image/webp',
      data: Buffer.from('RIFF').toString('base64'),
      width: 1,
      height: 1,
      text: 'Hello\nyou\u001b]0;x',
      truncated: true,
    }
    json(
      response,
      200,
      method === 'DELETE' ? { ok: true } : { session: SESSION, ...(sent.includes('capture') && { capture }) },
    )
  })
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  t.match((await daemon.run(['browser', 'open', 'web-1', 'https://two.example/'])).out, /web-1 +running/)
  t.equal((await daemon.run(['browser', 'reload', 'web-1', '--page', 'p1'])).code, 0)
  t.equal(
    (await daemon.run(['browser', 'capture', 'web-1', '--out', join(folder, 'page.webp')])).out,
    'Hello\nyou\\u001b]0;x\n(there is more text)\n',
  )
  t.equal(readFileSync(join(folder, 'page.webp'), 'utf8'), 'RIFF')
  t.equal((await daemon.run(['browser', 'close', 'web-1'])).out, 'closed web-1\n')
  t.same(asked, [
    'POST /system/browsers/web-1/page {"action":"open","url":"https://two.example/"}',
    'POST /system/browsers/web-1/page {"action":"reload","pageId":"p1"}',
    'POST /system/browsers/web-1/page {"action":"capture"}',
    'DELETE /system/browsers/web-1 {}',
  ])
  for (const wrong of [['open', 'web-1'], ['fly', 'web-1'], ['close'], ['capture', 'web-1', 'x'], ['list', 'x']])
    t.equal((await daemon.run(['browser', ...wrong])).code, 2, wrong.join(' '))
})
