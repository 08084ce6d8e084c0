import { readFileSync, readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'

/** Text that could forge a log line, a terminal control sequence or a change of text direction. */
const FORGED =
  'x\n{"level":"error","at":1,"message":"forged"}\r\u2028\u0085\u001b[2J\u001b]0;owned\u0007\u202egnp.exe\u2066'
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/

t.test(
  'no name of a client, a person or an agent becomes a log line, a control sequence or a change of direction',
  async t => {
    const folder = folderOf(t)
    const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
    makeWorkspace(where.workspace)
    const daemon = await spawnDaemon(t, where)
    const { client } = daemon
    const ask = (path: string, headers: { [name: string]: string } = {}, body?: string) =>
      new Promise<void>((resolve, reject) => {
        const asked = request(
          daemon.url + path,
          { method: body === undefined ? 'GET' : 'POST', headers: { 'content-type': 'application/json', ...headers } },
          response => {
            response.resume().once('end', resolve)
          },
        )
        asked.once('error', reject)
        asked.end(body)
      })
    const agent = Buffer.from('x\u001b[2J\u009b31m', 'latin1').toString('latin1').replaceAll('\u001b', '\u00a0')
    await ask('/agents', { 'x-sandbox-control': `sbc_${'a'.repeat(22)}.${'b'.repeat(43)}`, 'user-agent': agent })
    for (const path of [
      `/${encodeURIComponent(FORGED)}`,
      `/agents/${encodeURIComponent(FORGED)}`,
      `/activity?query=${encodeURIComponent(FORGED)}`,
      `/logs/file?name=${encodeURIComponent(FORGED)}`,
    ]) {
      await ask(path, { authorization: `Bearer ${daemon.session}`, 'user-agent': agent })
    }
    await ask('/system/session', { 'user-agent': agent }, JSON.stringify({ login: 'none', device: FORGED }))
    await runTurn(client, 'c', 'write a.txt\n| a\nsay done', { isolated: true })
    await client.call('POST /agents/{id}/rename', { id: 'c', title: FORGED }).catch(() => {})
    await client
      .call('POST /system/control/tokens', { label: `ci ${FORGED.slice(-12)}`, scope: 'land' })
      .catch(() => {})
    await client.call('POST /agents/{id}/land', { id: 'c' })
    await client.call('POST /agents/{id}/place', { id: 'c', text: FORGED }).catch(() => {})
    const { events } = await client.call('GET /activity')
    t.ok(events.some(({ type }) => type === 'agent.landed'))
    t.ok(events.some(({ type }) => type === 'access.denied'))
    for (const event of events)
      t.notMatch(
        JSON.stringify(event, (_, value: unknown) =>
          typeof value === 'string' && CONTROL.test(value)
            ? t.fail(`${event.type} holds ${JSON.stringify(value)}`)
            : value,
        ),
        'bbbbbb',
      )
    await daemon.terminate()

    const logs = join(where.data, 'logs')
    for (const name of readdirSync(logs, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(entry => join(entry.parentPath, entry.name))) {
      for (const line of readFileSync(name, 'utf8').split('\n').filter(Boolean)) {
        t.notMatch(line, CONTROL, name)
        t.notMatch((JSON.parse(line) as { message?: string }).message, /^forged$/)
      }
    }
    for (const line of daemon.stderr().split('\n').filter(Boolean)) t.notMatch(line, CONTROL)
    const days = join(where.data, 'activity', 'days')
    for (const name of readdirSync(days))
      for (const line of readFileSync(join(days, name), 'utf8').split('\n').filter(Boolean)) t.notMatch(line, CONTROL)
  },
)

t.test('the shell of a turn neither finds nor opens the record and the logs', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const daemon = await spawnDaemon(t, where)
  const { programs } = await daemon.client.call('GET /info')
  if (!programs.some(({ name, present }) => name === 'bwrap' && present))
    return t.comment('no wall can be built on this machine')
  await fetch(`${daemon.url}/agents`, { headers: { 'x-sandbox-control': 'none' } })
  const { data } = where
  const frames = await runTurn(
    daemon.client,
    'c',
    [
      `run ls ${join(data, 'activity')} ${join(data, 'logs')} 2>&1; `
        + `cat ${join(data, 'activity/days')}/*.jsonl ${join(data, 'logs/daemon.log')} 2>&1; find / -name `
        + 'daemon.log -o -name "20*.jsonl" 2>/dev/null | head -5; echo over',
      'say done',
    ].join('\n'),
    { isolated: true },
  )
  const words = JSON.stringify(frames)
  t.match(words, /over/)
  t.match(words, /No such file or directory|cannot access/)
  t.notMatch(words, /access\.denied|"pid":\d|days\/20\d\d-\d\d-\d\d\.jsonl\\\\n/)
})
