import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { mock } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pty from '@lydell/node-pty'
import t, { type Test } from 'tap'
import { wantsColour, widthOf } from '../../../sdk/cli/terminal/appearance.js'
import { StillWorking } from '../../../sdk/cli/terminal/still-working.js'
import { columns, wrapped } from '../../../sdk/cli/terminal/text.js'
import { fakeDaemon, PROGRAM } from './cli-process.js'
import { type Answerer, runBytes, streaming } from '../wire.js'

const { Terminal } = createRequire(import.meta.url)('@xterm/headless') as typeof import('@xterm/headless')

/** Runs the program in a terminal, and returns its output and the final screen. */
const atTerminal = (
  t: Test,
  args: readonly string[],
  env: { readonly [name: string]: string },
  cols = 80,
): Promise<{ code: number; text: string; screen: string[] }> =>
  new Promise(resolve => {
    const { PATH = '', HOME = '' } = process.env
    const child = pty.spawn(process.execPath, [PROGRAM, ...args], {
      name: 'xterm-256color',
      cols,
      rows: 40,
      cwd: tmpdir(),
      env: { PATH, HOME, TERM: 'xterm-256color', ...env },
    })
    t.teardown(() => child.kill('SIGKILL'))
    const screen = new Terminal({ cols, rows: 40, allowProposedApi: true })
    let text = ''
    child.onData(said => {
      text += said
    })
    child.onExit(({ exitCode: code }) =>
      screen.write(text, () => {
        const lines = Array.from(
          { length: 40 },
          (_, at) => screen.buffer.active.getLine(at)?.translateToString(true) ?? '',
        )
        resolve({ code, text, screen: lines.filter(Boolean) })
      }),
    )
  })

t.test('FORCE_COLOR and NO_COLOR decide about colour, otherwise the terminal does', t => {
  t.same([wantsColour({}, true), wantsColour({}, false), wantsColour({ TERM: 'dumb' }, true)], [true, false, false])
  t.same([wantsColour({ NO_COLOR: '1' }, true), wantsColour({ NO_COLOR: '' }, true)], [false, true])
  t.same(
    [wantsColour({ FORCE_COLOR: '1' }, false), wantsColour({ FORCE_COLOR: '3', NO_COLOR: '1', TERM: 'dumb' }, false)],
    [true, true],
  )
  t.same(
    [
      wantsColour({ FORCE_COLOR: '0' }, true),
      wantsColour({ FORCE_COLOR: 'false' }, true),
      wantsColour({ FORCE_COLOR: '' }, true),
    ],
    [false, false, true],
  )
  t.same(
    [
      widthOf({ COLUMNS: '40' }, 80),
      widthOf({}, 80),
      widthOf({}, undefined),
      widthOf({ COLUMNS: 'x' }, undefined),
      widthOf({ COLUMNS: '0' }, 80),
    ],
    [40, 80, undefined, undefined, 80],
  )
  t.end()
})

t.test('a table wraps its last column, and becomes paragraphs if that is too narrow', t => {
  const rows = [
    ['ID', 'STATE', 'WHAT'],
    ['c-1', 'ready', 'some words that are long'],
    ['a-long-identifier', '', ''],
  ]
  t.same(columns(rows, undefined), [
    'ID                 STATE  WHAT',
    'c-1                ready  some words that are long',
    'a-long-identifier',
  ])
  t.same(columns(rows, 42), [
    'ID                 STATE  WHAT',
    'c-1                ready  some words that',
    '                          are long',
    'a-long-identifier',
  ])
  t.same(columns(rows, 30), [
    'c-1',
    '  state  ready',
    '  what   some words that are',
    '         long',
    'a-long-identifier',
  ])
  t.same(wrapped('aaaa bb c', 4), ['aaaa', 'bb c'])
  t.same(wrapped('a-word-that-is-copied x', 8), ['a-word-that-is-copied', 'x'])
  t.end()
})

const hour = Date.now() + 3_600_000
const ada = 'ada.lovelace@example.org'
const USED = {
  turns: 12_000,
  inputTokens: 184_200_000,
  outputTokens: 9_310_000,
  cacheReadTokens: 91_000_000,
  cacheCreationTokens: 12_400_000,
  costUsd: 738.5,
  durationMs: 412_000,
  unpriced: 3,
}
const ANSWERS: { readonly [path: string]: unknown } = {
  '/agents': {
    rev: 1,
    held: [],
    agents: [
      {
        id: 'c-1234567890',
        status: 'ready',
        title: 'Fix the parser so that it reads numbers',
        diff: { files: 12, insertions: 500, deletions: 100 },
        branch: 'a',
        updatedAt: 1,
      },
      { id: 'notes', status: 'idle', updatedAt: 1 },
    ],
  },
  '/agents/archived': {
    agents: [{ id: 'c-1234567890', archivedAt: 1, title: 'Fix the parser so that it reads numbers' }],
  },
  '/agents/c-1/queue': {
    paused: false,
    messages: [{ messageId: 'm-1234567890', by: ada, at: 1, why: 'parked', text: 'and then do the rest of it' }],
  },
  '/system/control/tokens': {
    tokens: [{ id: 't-1', label: 'the build server of the team', scope: 'read', createdAt: 1, expiresAt: hour }],
  },
  '/system/sessions': {
    sessions: [
      {
        id: 's-1',
        email: ada,
        role: 'owner',
        via: 'oidc',
        device: 'a laptop of mine',
        createdAt: 1,
        lastSeenAt: 1,
        expiresAt: hour,
        address: '10.0.0.1',
        current: true,
      },
    ],
  },
  '/system/terminals': {
    sessions: [
      {
        name: 'web-1',
        running: true,
        attached: 1,
        activityAt: 1,
        command: 'bash',
        label: 'the first one there was',
        cwd: '/srv/code',
      },
    ],
  },
  '/system/browsers': {
    sessions: [
      {
        name: 'web-1',
        running: true,
        activityAt: 1,
        conversationId: 'c-1',
        pages: [{ id: 'p-1', active: true, title: 'A page', url: 'http://localhost:3000/a' }],
      },
    ],
  },
  '/bundles': {
    exports: [{ name: 'sandbox-2030.tar.gz', state: 'ready', createdAt: 1, sizeBytes: 1, secrets: false }],
  },
  '/logs': { files: [{ name: 'plugins/agent.log', kind: 'plugin', sizeBytes: 1, modifiedAt: 1, live: false }] },
  '/members': { members: [{ email: ada, role: 'owner', grantedBy: ada, grantedAt: 1, bound: true }], invitations: [] },
  '/areas': {
    areas: [
      {
        id: 'docs',
        access: 'work',
        folders: ['documents', 'pages'],
        label: 'The documents',
        holders: [{ email: ada }],
      },
    ],
    limited: false,
    folders: [],
  },
  '/areas/reach': { people: [{ email: ada, role: 'viewer', access: 'work', via: ['docs'] }] },
  '/usage/rollup': {
    rows: [{ day: '2026-11-23', model: 'a-model-with-a-long-name', ...USED }],
    total: USED,
  },
  '/system/usage': {
    machine: {
      cpus: 8,
      cpuPct: 12,
      load: [1, 2, 3],
      memory: { usedBytes: 2 ** 33, totalBytes: 2 ** 35 },
      disks: [{ label: 'workspace', totalBytes: 2 ** 40, freeBytes: 2 ** 38 }],
      daemon: { rssBytes: 2 ** 27, loopLagMs: 1, pid: 4_000_000 },
      recent: Array.from({ length: 60 }, () => ({ cpuPct: 50 })),
      processes: [
        { pid: 4_000_000, name: 'node', origin: 'turn', conversationId: 'c-1234567890', cpuPct: 99, rssBytes: 2 ** 30 },
      ],
    },
  },
}
const TABLES: readonly (readonly string[])[] = [
  ['agents'],
  ['archive', '--list'],
  ['queue', 'c-1'],
  ['token'],
  ['sessions'],
  ['terminal', 'list'],
  ['browser'],
  ['bundle', 'list'],
  ['logs'],
  ['members'],
  ['areas'],
  ['areas', 'reach', 'documents'],
  ['usage', '--by', 'day,model'],
  ['machine'],
]

t.test('every table fits 40 columns, set by COLUMNS or by the terminal', async t => {
  const daemon = await fakeDaemon(t, ({ path }) => ANSWERS[path])
  for (const args of TABLES) {
    const { code, out } = await daemon.run(args, { env: { ...daemon.env, COLUMNS: '40' } })
    t.equal(code, 0)
    t.same(
      out.split('\n').filter(line => line.length > 40),
      [],
      args.join(' '),
    )
  }
  const { screen } = await atTerminal(t, ['agents'], daemon.env, 40)
  t.same(screen.slice(0, 4), ['c-1234567890', '  status   ready', '  changes  12 files +500 -100', screen[3]])
})

t.test('FORCE_COLOR colours a pipe', async t => {
  const daemon = await fakeDaemon(t, () => ({
    repos: [{ repo: 'root', changes: [{ path: 'a', status: 'added', additions: 1, deletions: 0, landed: false }] }],
  }))
  t.match(
    (await daemon.run(['diff', 'c-1', '--stat'], { env: { ...daemon.env, FORCE_COLOR: '1' } })).out,
    '\u001b[1ma\u001b[22m',
  )
  t.notMatch((await daemon.run(['diff', 'c-1', '--stat'])).out, '\u001b')
  t.notMatch((await atTerminal(t, ['diff', 'c-1', '--stat'], { ...daemon.env, NO_COLOR: '1' })).text, '\u001b[1m')
})

const WORK = [
  { kind: 'tool_call', id: 't', name: 'Shell', category: 'run', status: 'in_progress', target: 'npm test' },
  { kind: 'tool_call_update', id: 't', status: 'completed' },
  { kind: 'done', reason: 'completed' },
] as const

/** A run with a slow tool. */
const slow: Answerer = async ({ path, body }, response) => {
  if (path === '/agent')
    return { run: 'r-1', conversationId: body.conversationId, messageId: body.messageId, delivery: 'started' }
  if (path !== '/agent/attach') return { ok: true }
  const [head = '', ...rest] = runBytes('r-1', WORK as never).split(/(?<="in_progress"[^\n]*\n\n)/)
  streaming(response).write(head)
  await delay(4600)
  return void response.end(rest.join(''))
}

t.test('in a terminal a silent turn shows an activity sign, which is removed afterwards', async t => {
  const daemon = await fakeDaemon(t, slow)
  const args = ['run', 'x', '--conversation', 'c-1']
  const [{ code, text, screen }, piped] = await Promise.all([
    atTerminal(t, args, { ...daemon.env, NO_COLOR: '1' }),
    daemon.run(args),
  ])
  t.equal(code, 0)
  t.match(text, /▸ Shell npm test {2}still working, 3 s.*\r\u001b\[K▸ Shell npm test {2}still working, 4 s/s)
  t.notMatch(text, /working, [0-2] s/)
  t.same(screen.slice(0, 3), ['conversation c-1', '✓ Shell npm test', 'done'])
  t.notMatch(screen.join('\n'), 'still working')
  t.notMatch(piped.out + piped.err, 'still working')
})

t.test('the activity sign is not shown on a full line or during a question', async t => {
  const clock = mock.timers
  clock.enable({ apis: ['setInterval', 'Date'] })
  t.teardown(() => clock.reset())
  const written: string[] = []
  const out = { write: (text: string) => written.push(text) } as unknown as NodeJS.WritableStream
  const sign = new StillWorking({ out, columns: 40, colour: false })
  const over = Promise.withResolvers<void>()
  const during = sign.during(() => over.promise)
  clock.tick(2900)
  t.same(written, [])
  clock.tick(200)
  t.same(written.splice(0), ['\r\u001b[Kstill working, 3 s'])
  t.equal(sign.before('word'), '\r\u001b[Kword')
  clock.tick(3000)
  t.same(written.splice(0), ['\r\u001b[Kword  still working, 3 s'])
  sign.pause()
  t.same(written.splice(0), ['\r\u001b[Kword'])
  clock.tick(10_000)
  t.same(written, [], 'a person thinks')
  sign.resume()
  t.equal(sign.before(` ${'x'.repeat(30)}`), ` ${'x'.repeat(30)}`)
  clock.tick(10_000)
  t.same(written, [], 'no space after the line')
  sign.before('\n')
  clock.tick(3000)
  t.same(written.splice(0), ['\r\u001b[Kstill working, 3 s'])
  over.resolve()
  await during
  t.same(written, ['\r\u001b[K'])
})
