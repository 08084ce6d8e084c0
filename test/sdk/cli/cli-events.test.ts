import t from 'tap'
import type { SystemEvent } from '../../../plugins/system/contract.js'
import { createEventLines } from '../../../sdk/cli/verbs/events.js'
import { stylesOf } from '../../../sdk/cli/terminal/text.js'
import { cardOf } from '../../plugins/system/stream/events-support.js'
import { fakeDaemon } from './cli-process.js'
import { json, streaming, wire } from '../wire.js'

const hello = (resumed: boolean): SystemEvent => ({
  kind: 'hello',
  workspaceId: 'w',
  routes: [],
  shapes: {},
  build: 'b',
  boot: { ready: true, startedAt: 1, steps: [] },
  epoch: '0123abcd',
  seq: 3,
  resumed,
  versions: {},
  me: { actor: 'ada@example.org', kind: 'session', role: 'owner' },
})

const STATE: SystemEvent[] = [
  { kind: 'presence', users: [] },
  { kind: 'attention', cards: 0, approvals: 0, needs: 0, land: 0, ci: 0, issues: 0, offload: 0 },
]

t.test('events follows the stream and resumes it after an interruption', async t => {
  const daemon = await fakeDaemon(t, ({ headers, query }, response) => {
    if (query.get('roster') !== 'delta') return json(response, 400, { reason: 'invalid', message: 'roster' })
    streaming(response).write('retry: 1\n\n')
    if (headers['last-event-id'] === '0123abcd-4') {
      response.write([hello(true), ...STATE].map(event => wire('message', event, '0123abcd-4')).join(''))
      return void response.end(
        wire('message', { kind: 'agent', rev: 2, removed: 'c1' }, '0123abcd-5')
          + wire('done', { reason: 'stopping', retryMs: 1000 }),
      )
    }
    const first = [hello(false), { kind: 'agents', agents: [cardOf('c1')], rev: 1 }, ...STATE]
      .map(event => wire('message', event, '0123abcd-3'))
      .join('')
    const next = { kind: 'runtimeChanged', domains: ['sessions'], versions: { sessions: 1 } }
    const cut = 'id: 0123abcd-5\ndata: {"ki'
    response.write(first + wire('message', next, '0123abcd-4') + cut, () => setImmediate(() => response.destroy()))
  })
  const { code, out, err } = await daemon.run(['events'])
  t.same([code, err], [0, ''])
  t.same(out.split('\n'), [
    'watching as ada@example.org (owner)',
    '1 conversation: 1 idle',
    'changed: sessions',
    'c1 is gone',
    'the sandbox stopped',
    '',
  ])
  const lines = (await daemon.run(['events', '--json'])).out
    .trim()
    .split('\n')
    .map(line => (JSON.parse(line) as SystemEvent).kind)
  t.same(lines, [
    'hello',
    'agents',
    'presence',
    'attention',
    'runtimeChanged',
    'hello',
    'presence',
    'attention',
    'agent',
  ])
})

t.test('events ends with the message of the daemon when its credential ends, and at Ctrl-C', async t => {
  let revoked = true
  const daemon = await fakeDaemon(t, (_, response) => {
    streaming(response).write(wire('message', hello(false), '0123abcd-0'))
    if (revoked)
      response.end(wire('error', { status: 401, reason: 'unauthenticated', message: 'the token was revoked' }))
  })
  t.same(await daemon.run(['events']), {
    code: 5,
    out: 'watching as ada@example.org (owner)\n',
    err: 'sandbox: the token was revoked\n',
  })
  revoked = false
  const { code } = await daemon.run(['events'], { watch: (out, kill) => out.includes('watching') && kill('SIGINT') })
  t.equal(code, 130)
  t.equal((await daemon.run(['events', 'x'])).code, 2)
})

t.test('each kind of event is printed, unless nothing changed', t => {
  const lines = createEventLines(stylesOf(false))
  const said = (event: SystemEvent) => lines(event).split('\n').slice(0, -1)
  t.same(said(hello(false)), ['watching as ada@example.org (owner)'])
  t.same(STATE.flatMap(said), [], 'an empty state is not printed')
  t.same(said(hello(true)), [])
  t.same(said(hello(false)), ['restarted: events from the meantime are not shown'])
  t.same(said({ kind: 'heartbeat', at: 1, seq: 1 }), [])
  t.same(said({ kind: 'resync', reason: 'slow' }), [], 'the hello after it is printed')
  t.same(said({ kind: 'boot', ready: false, startedAt: 1, steps: [{ key: 'a', label: 'sweep', state: 'running' }] }), [
    'starting: sweep',
  ])
  t.same(said({ kind: 'runtimeChanged', domains: ['landings', 'sessions'], versions: {}, keys: ['c1'] }), [
    'changed: landings, sessions (c1)',
  ])
  t.same(
    said({
      kind: 'presence',
      users: [{ clientId: 'a', email: 'ada@example.org', role: 'owner', idle: true, view: 'board' }],
    }),
    ['here: ada@example.org in board, idle'],
  )
  t.same(said({ kind: 'presence', users: [] }), ['no one is here'])
  const waiting: SystemEvent = { kind: 'attention', cards: 1, approvals: 0, needs: 2, land: 0, ci: 0, issues: 0 }
  t.same([said(waiting), said(waiting)], [['waits for you: 1 card to answer, 2 needs'], []])
  t.same(
    said({
      kind: 'agent',
      rev: 1,
      agent: cardOf('c1', { status: 'running', title: 'Fix it', activity: { tool: 'Shell', target: 'npm test' } }),
    }),
    ['c1 running  Fix it  Shell npm test'],
  )
  t.same(said({ kind: 'agent', rev: 1, removed: 'c\u001b[31m' }), ['c\\u001b[31m is gone'])
  t.same(said({ kind: 'later', n: 1 } as never), ['{"kind":"later","n":1}'])
  t.same(said({ kind: 'agents', agents: 5 } as never), ['{"kind":"agents","agents":5}'])
  t.end()
})
