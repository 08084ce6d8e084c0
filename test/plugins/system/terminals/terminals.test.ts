import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openEvents } from '../stream/events-support.js'
import { attach, attached, withTerminals } from './terminals-support.js'
import { findTmux } from '../../../../plugins/system/terminals/programs.js'
import type { Support } from '../../../support/daemon.js'
import { joined } from '../../../support/joined.js'
import { exactly } from '../../../support/lists.js'
import { openSocket, talkTo, turnedAway } from '../../../support/sockets/client.js'
import { inTime } from '../../../support/in-time.js'

if (!(await findTmux())) {
  if (process.env.CI) throw new Error('tmux is not installed, and nothing may be left out here')
  console.error('tmux is not installed: terminals are kept in the daemon')
}

const socketOf = async ({ url, client }: Support, session: string, query = '') => {
  const { ticket } = await client.call('POST /system/ws-ticket', { for: 'terminal' })
  return `${url}/system/terminal?session=${session}&ticket=${ticket}${query}`
}
const json = (body: object) => ({ method: 'POST', body: JSON.stringify(body) })

t.test('tokens and callers without a credential cannot use terminals, and bad input is refused', async t => {
  const daemon = await withTerminals(t)
  for (const [method, path] of [
    ['GET', '/system/terminals'],
    ['POST', '/system/terminals'],
    ['DELETE', '/system/terminals/web-a'],
    ['GET', '/system/terminals/web-a/scrollback'],
    ['POST', '/system/ws-ticket'],
  ]) {
    t.equal((await fetch(daemon.url + path, { method: method! })).status, 401, `${method} ${path}`)
    const { token } = await daemon.token('land')
    t.equal(
      (await fetch(daemon.url + path, { method: method!, headers: { 'x-sandbox-control': token } })).status,
      403,
      `${method} ${path}`,
    )
  }
  t.same(await daemon.client.call('GET /system/terminals'), { sessions: [] })
  for (const [body, status, message] of [
    [{ name: 'job-a' }, 400, /^name: expected/],
    [{ name: 'web-' }, 400, /^name: expected/],
    [{ name: `web-${'a'.repeat(41)}` }, 400, /^name: expected/],
    [{ name: 'web-a;b' }, 400, /^name/],
    [{ cols: 19 }, 400, /^cols: expected/],
    [{ rows: 201 }, 400, /^rows: expected/],
    [{ label: '' }, 400, /^label/],
    [{ command: 'x'.repeat(4001) }, 400, /^command/],
    [{ cwd: 'nowhere' }, 404, /nothing in the workspace/],
    [{ cwd: 'README.md' }, 404, /expected a folder/],
    [{ cwd: '../data' }, 400, /segment/],
    [{ cwd: '/etc' }, 400, /absolute/],
  ] as const) {
    const answer = await daemon.fetch('/system/terminals', json(body))
    t.equal(answer.status, status, JSON.stringify(body).slice(0, 40))
    t.match(((await answer.json()) as { message: string }).message, message)
  }
  t.same(await daemon.client.call('GET /system/terminals'), { sessions: [] })
  t.equal((await daemon.fetch('/system/terminals/a%20b', { method: 'DELETE' })).status, 400)
  t.same(await daemon.client.call('DELETE /system/terminals/{name}', { name: 'web-gone' }), { ok: true })
  t.equal((await daemon.fetch('/system/terminals/web-gone/scrollback')).status, 404)
})

t.test('a terminal is opened, returned again, attached to, announced, and ended', async t => {
  const daemon = await withTerminals(t, {}, ['system', 'activity'])
  mkdirSync(join(daemon.workspace, 'sub dir'))
  const events = await openEvents(t, daemon)
  await events.until('hello')
  const made = await daemon.client.call('POST /system/terminals', {
    name: 'web-a',
    label: 'mine "x" #{y} ü',
    cwd: 'sub dir',
    command: 'echo in-$(basename "$PWD")-"ok"',
    cols: 100,
    rows: 30,
  })
  t.match(made, {
    name: 'web-a',
    label: 'mine "x" #{y} ü',
    kind: 'shell',
    running: true,
    cols: 100,
    rows: 30,
    attached: 0,
  })
  await events.until(
    'runtimeChanged',
    ({ domains, keys }) => domains.includes('terminals') && keys?.includes('web-a') === true,
  )
  t.match(await daemon.client.call('POST /system/terminals', { name: 'web-a', label: 'other', cols: 50 }), {
    label: 'mine "x" #{y} ü',
    cols: 100,
  })
  const one = await attach(t, daemon, 'web-a', '&cols=100&rows=30')
  await one.shows(/in-sub dir-ok/)
  t.match(
    (await daemon.client.call('GET /system/terminals')).sessions,
    exactly({ name: 'web-a', attached: 1, cwd: 'sub dir' }),
  )
  one.say({ type: 'ping' })
  await one.until(({ type }) => type === 'pong')
  one.ws.close()
  await one.closed
  const again = await attach(t, daemon, 'web-a', '&cols=100&rows=30')
  await again.shows(/in-sub dir-ok/)
  again.type('exit 3\r')
  t.equal(await again.exit(), 3)
  t.equal((await again.closed).code, 1000)
  t.match(
    (await daemon.client.call('GET /system/terminals')).sessions,
    exactly({ running: false, exitCode: 3, attached: 0 }),
  )
  await daemon.client.call('DELETE /system/terminals/{name}', { name: 'web-a' })
  t.same(await daemon.client.call('GET /system/terminals'), { sessions: [] })
  const { events: entries } = await daemon.client.call('GET /activity', { type: 'terminal.*' })
  t.same(
    entries.map(({ type, extra, actor, audience }) => [type, extra?.name, actor, audience]).toReversed(),
    ['opened', 'attached', 'attached', 'killed'].map(what => [
      `terminal.${what}`,
      'web-a',
      'owner@sandbox.local',
      'maintainer',
    ]),
  )
})

t.test('the socket opens only existing terminals with a ticket, and refuses with a message', async t => {
  const daemon = await withTerminals(t)
  t.equal((await fetch(`${daemon.url}/system/terminal?session=web-a`)).status, 426)
  t.match(await turnedAway(t, `${daemon.url}/system/terminal?session=web-a`), { status: 401 })
  t.match(
    await turnedAway(t, `${daemon.url}/system/terminal?session=web-a`, {
      headers: { authorization: `Bearer ${daemon.session}` },
    }),
    { status: 401 },
    'a session is not accepted instead of a ticket',
  )
  t.match(await turnedAway(t, await socketOf(daemon, 'job-a')), { status: 404 })
  t.match(await turnedAway(t, await socketOf(daemon, 'keeper')), { status: 404 })
  t.match(await turnedAway(t, await socketOf(daemon, 'web-a', '&cols=5')), { status: 400 })
  t.match(await turnedAway(t, await socketOf(daemon, 'web-a', '&cwd=nowhere')), { status: 404 })
  t.match(await turnedAway(t, await socketOf(daemon, 'web-a'), { headers: { origin: 'https://evil.example' } }), {
    status: 403,
  })
  const own = await socketOf(daemon, 'web-a', '&cols=90&rows=20')
  const one = attached(await talkTo(t, own))
  t.match(await turnedAway(t, own), { status: 401 }, 'a ticket is valid once')
  t.match(
    (await daemon.client.call('GET /system/terminals')).sessions,
    exactly({ name: 'web-a', cols: 90, rows: 20, attached: 1 }),
  )
  one.ws.send('nonsense')
  t.equal((await one.closed).code, 1007)
  const two = await attach(t, daemon, 'web-a')
  two.type('echo still-"here"\r')
  await two.shows(/still-here/)
})

t.test('at most 32 sockets are open, and at most 32 shells run', { timeout: 90_000 }, async t => {
  const daemon = await withTerminals(t)
  const talks = await Promise.all(Array.from({ length: 32 }, async () => talkTo(t, await socketOf(daemon, 'web-a'))))
  t.match(await turnedAway(t, await socketOf(daemon, 'web-a')), { status: 429, body: { message: /32 sockets/ } })
  talks[0]!.ws.close()
  await talks[0]!.closed
  // The daemon notices the end a moment after the client.
  for (
    let found = await openSocket(t, await socketOf(daemon, 'web-a'));
    'status' in found;
    found = await openSocket(t, await socketOf(daemon, 'web-a'))
  )
    continue
  for (let n = 0; n < 31; n++) await daemon.client.call('POST /system/terminals', {})
  t.match(await (await daemon.fetch('/system/terminals', json({}))).json(), {
    reason: 'too-many',
    message: /32 shells/,
  })
  t.equal((await daemon.client.call('GET /system/terminals')).sessions.length, 32)
})

t.test('a socket is closed with 1008 when access ends, and the terminal is kept', async t => {
  const daemon = await withTerminals(t)
  const one = await attach(t, daemon, 'web-a')
  one.type('echo be-"fore"\r')
  await one.shows(/be-fore/)
  await daemon.fetch('/system/sessions/revoke', json({ current: true }))
  t.equal((await one.closed).code, 1008)
  const { sessions } = (await daemon.kernel.calls.answer('GET /system/terminals', {}, OWNER)) as { sessions: object[] }
  t.match(sessions, exactly({ name: 'web-a', running: true, attached: 0 }))
})

t.test(
  'a maintainer who becomes a viewer loses the terminal within a second, and calls above viewer at once',
  async t => {
    const daemon = await withTerminals(t)
    await daemon.client.call('POST /system/terminals', { name: 'web-m' })
    const { email, client } = await joined(daemon, 'Mia', 'maintainer')
    const one = await attach(t, { url: daemon.url, client }, 'web-m')
    const { ticket } = await client.call('POST /system/ws-ticket', { for: 'terminal', name: 'web-m' })
    const began = performance.now()
    await daemon.client.call('POST /members', { email, role: 'viewer' })
    t.match(await one.closed, { code: 1008 })
    t.ok(inTime(began, 1000))
    t.match(await client.call('GET /system/terminals').catch((error: unknown) => error), {
      status: 403,
      message: /found role viewer/,
    })
    t.match(
      await turnedAway(t, `${daemon.url}/system/terminal?session=web-m&ticket=${ticket}`),
      { status: 401 },
      'an earlier ticket is invalid',
    )
    t.match((await daemon.client.call('GET /system/terminals')).sessions, exactly({ name: 'web-m', running: true }))
  },
)

t.test('only the user can access the socket folder, and no process starts before the first terminal', async t => {
  const daemon = await withTerminals(t)
  const folder = join(daemon.data, 'system', 'terminals')
  await daemon.client.call('GET /system/terminals')
  t.throws(() => statSync(folder))
  await daemon.client.call('POST /system/terminals', { name: 'web-a' })
  t.equal(statSync(folder).mode & 0o777, 0o700)
  t.equal(statSync(join(folder, 'web-a')).mode & 0o077, 0)
})

t.test('terminals work the same with the group in its own process', async t => {
  const daemon = await withTerminals(t, { apart: ['system'] })
  const one = await attach(t, daemon, 'web-a')
  one.type('echo a-"part"; exit 4\r')
  await one.shows(/a-part/)
  t.equal(await one.exit(), 4)
  t.equal((await one.closed).code, 1000)
  for (
    let rows = (await daemon.client.call('GET /system/terminals')).sessions;
    rows[0]!.attached;
    rows = (await daemon.client.call('GET /system/terminals')).sessions
  )
    continue
})

const OWNER = {
  caller: { kind: 'session', actor: 'owner@sandbox.local', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const
