import t from 'tap'
import { attach, withTerminals } from './terminals-support.js'

t.test('a terminal is opened, typed into, and ends with its code', async t => {
  const daemon = await withTerminals(t)
  t.same(await daemon.client.call('GET /system/terminals'), { sessions: [] })
  const made = await daemon.client.call('POST /system/terminals', { name: 'web-a', label: 'mine', command: 'echo hel""lo', cols: 100, rows: 30 })
  t.match(made, { name: 'web-a', label: 'mine', kind: 'shell', running: true, cols: 100, rows: 30, attached: 0 })
  const one = await attach(t, daemon, 'web-a', '&cols=100&rows=30')
  await one.shows(/[\r\n]hello\r/)
  one.type('cd .. && pwd; exit 3\r')
  t.equal(await one.exit(), 3)
  t.equal((await one.closed).code, 1000)
  console.log(JSON.stringify(one.text()), await daemon.client.call('GET /system/terminals'))
  console.log(await daemon.client.call('GET /system/terminals/{name}/scrollback', { name: 'web-a' }))
})
