import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pty from '@lydell/node-pty'
import t, { type Test } from 'tap'
import { root } from '../../support/daemon.js'
import { fakeDaemon, runOf, sandbox } from './cli-process.js'
import { json, type Answerer } from '../wire.js'

/** Characters that control a terminal, reorder a line or are invisible: C0, DEL, C1, direction marks, and a style. */
const NASTY =
  'a\u0007\u001b]0;owned\u0007\u001b[2J\r\u007f\u0085\u009b31m\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028z'
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/
/** The program's own control sequences, and the line ends of a terminal. */
const OWN = /\u001b\[\d{1,2}m|\r\u001b\[K|\r(?=\n)/g

const card = {
  id: 'c-1',
  title: NASTY,
  status: 'idle',
  branch: NASTY,
  repo: NASTY,
  activityAt: 1,
  cards: [{ requestId: NASTY, kind: 'plan', title: NASTY }],
  failure: NASTY,
}
const token = { id: NASTY, scope: 'read', label: NASTY, createdAt: 1 }
const log = { name: NASTY, kind: 'daemon', sizeBytes: 1, modifiedAt: 1, live: false }
const answers: { readonly [path: string]: unknown } = {
  '/agents': { agents: [card], rev: 1, held: [] },
  '/agents/c-1/diff': {
    files: [{ repo: 'root', path: NASTY, status: 'modified', insertions: 1, deletions: 1 }],
    rev: 1,
  },
  '/agents/c-1/file-diff': { before: '', after: `${NASTY}\n` },
  '/system/control/tokens': { tokens: [token] },
  '/system/terminals': {
    sessions: [{ name: NASTY, running: true, attached: 1, activityAt: 1, command: NASTY, label: NASTY, cwd: NASTY }],
  },
  '/bundles': {
    exports: [{ name: NASTY, state: 'failed', createdAt: 1, sizeBytes: 1, secrets: false, detail: NASTY }],
  },
  '/logs': { files: [log] },
  '/logs/file': { text: `${NASTY}\n`, offset: 0 },
  '/activity': {
    events: [
      { at: 1, type: NASTY, actor: NASTY, title: NASTY, content: NASTY, error: NASTY, extra: { [NASTY]: NASTY } },
    ],
  },
  '/areas': {
    areas: [{ id: NASTY, access: 'work', folders: [NASTY], label: NASTY, holders: [{ email: NASTY }] }],
    limited: false,
    folders: [],
  },
  '/members': {
    members: [{ email: NASTY, role: 'owner', grantedBy: NASTY, grantedAt: 1, bound: true }],
    invitations: [],
  },
  '/system/browsers': {
    sessions: [
      {
        name: NASTY,
        running: true,
        activityAt: 1,
        conversationId: NASTY,
        pages: [{ id: NASTY, active: true, title: NASTY, url: NASTY }],
      },
    ],
  },
}

const answer: Answerer = (seen, response) => {
  if (seen.path === '/activity/export')
    return void response.writeHead(200, { 'content-type': 'application/x-ndjson' }).end(`${NASTY}\n`)
  if (seen.path === '/attachments/raw')
    return void response
      .writeHead(200, { 'content-type': 'application/octet-stream' })
      .end(Buffer.from([0xff, 0xfe, 0x1b, 0x9b]))
  if (seen.path === '/refused')
    return json(response, 409, {
      reason: 'conflict',
      message: NASTY,
      errors: [
        { path: NASTY, expected: NASTY },
        { path: NASTY, expected: NASTY },
      ],
    })
  if (seen.path === '/agent/attach') {
    return runOf([
      { kind: 'init', model: NASTY },
      { kind: 'delta', text: NASTY },
      { kind: 'tool_call', id: 't', title: NASTY, status: 'pending', tool: 'run' },
      { kind: 'notice', level: 'warning', text: NASTY },
      { kind: 'error', message: NASTY },
      { kind: 'done', reason: 'completed' },
    ] as never)(seen, response)
  }
  return answers[seen.path] ?? json(response, 404, { reason: 'not-found', message: NASTY })
}

/** Everything the program printed in a terminal, with its exit code. */
const atTerminal = (
  t: Test,
  args: readonly string[],
  env: { readonly [name: string]: string },
): Promise<{ code: number; text: string }> =>
  new Promise(resolve => {
    const { PATH = '', HOME = '' } = process.env
    const child = pty.spawn(process.execPath, [join(root, 'bundle/sdk/cli.js'), ...args], {
      name: 'xterm-256color',
      cols: 200,
      rows: 50,
      cwd: tmpdir(),
      env: { PATH, HOME, TERM: 'xterm-256color', ...env },
    })
    t.teardown(() => child.kill('SIGKILL'))
    let text = ''
    child.onData(said => {
      text += said
    })
    child.onExit(({ exitCode }) => resolve({ code: exitCode, text }))
  })

const VERBS: readonly (readonly string[])[] = [
  ['agents'],
  ['diff', 'c-1'],
  ['token'],
  ['terminal', 'list'],
  ['bundle', 'list'],
  ['logs'],
  ['logs', 'daemon.log'],
  ['activity'],
  ['areas'],
  ['members'],
  ['browser', 'list'],
  ['attach', 'c-1'],
  ['discard', NASTY],
  ['browser', NASTY],
]
const CALLS = [
  'GET /agents',
  'GET /activity',
  'GET /bundles',
  'GET /refused',
  'GET /activity/export',
  'GET /attachments/raw',
]

t.test('text from elsewhere cannot control the terminal, in the output of any verb', async t => {
  const daemon = await fakeDaemon(t, answer)
  const all = [
    ...VERBS,
    ...CALLS.map(call => ['call', call]),
    ['activity', '--json'],
    ['attach', 'c-1', '--json'],
    ['call', 'GET /agents', '--json'],
  ]
  for (const [args, { text }] of await Promise.all(
    all.map(async args => [args, await atTerminal(t, args, daemon.env)] as const),
  )) {
    t.ok(text, encodeURI(args.join(' ')))
    t.notMatch(text.replace(OWN, ''), CONTROL, encodeURI(args.join(' ')))
    t.notMatch(text, /\u001b\[2J|\u001b\]0|\u009b/)
  }
})

t.test('also not through a pipe, and bytes are passed unchanged', async t => {
  const daemon = await fakeDaemon(t, answer)
  const all = [...VERBS, ...CALLS.slice(0, 4).map(call => ['call', call])]
  for (const [args, { out, err }] of await Promise.all(
    all.map(async args => [args, await daemon.run(args)] as const),
  )) {
    t.notMatch(out + err, CONTROL, encodeURI(args.join(' ')))
  }
  t.equal((await daemon.run(['call', 'GET /activity/export'])).out, `${NASTY}\n`)
})

t.test('the JSON of a call is the same value in a terminal and in a pipe', async t => {
  const daemon = await fakeDaemon(t, answer)
  for (const flags of [[], ['--json']]) {
    for (const path of ['/agents', '/activity', '/bundles', '/system/terminals']) {
      const piped = await daemon.run(['call', `GET ${path}`, ...flags])
      const { text } = await atTerminal(t, ['call', `GET ${path}`, ...flags], daemon.env)
      t.same([JSON.parse(piped.out), JSON.parse(text)], [answers[path], answers[path]])
    }
  }
})

t.test('bytes that are not text are not shown in a terminal', async t => {
  const daemon = await fakeDaemon(t, answer)
  const { code, text } = await atTerminal(t, ['call', 'GET /attachments/raw'], daemon.env)
  t.equal(code, 1)
  t.match(text, /4 bytes that are not text: send them to a file with > FILE/)
})

t.test('a token comes from the environment, a file or standard input, and never from an argument', async t => {
  const daemon = await fakeDaemon(t, answer)
  const file = join(t.testdir(), 'token')
  writeFileSync(file, 'sbc_x\n')
  const args = ['token', '--url', daemon.url]
  for (const [more, options] of [
    [[], { env: { SANDBOX_TOKEN: 'sbc_x' } }],
    [['--token-file', file], {}],
    [['--token-file=-'], { input: 'sbc_x\n' }],
  ] as const) {
    t.match(await sandbox([...args, ...more], options), { code: 0, out: /^ID/ })
    t.match(daemon.calls().at(-1), { headers: { 'x-sandbox-control': 'sbc_x' } })
  }
  const before = daemon.seen.length
  for (const more of [['--token', 'sbc_x'], ['--token=sbc_x'], ['--token']]) {
    const { code, out, err } = await sandbox([...args, ...more])
    t.same([code, out], [2, ''])
    t.match(
      err,
      new RegExp(
        '^sandbox: token: other users of this machine can see arguments: put the token '
          + String.raw`into SANDBOX_TOKEN, or into a file for --token-file FILE \(- is standard input\)\n$`,
      ),
    )
    t.notMatch(err, 'sbc_x')
  }
  t.match(await sandbox([...args, '--token-file', '-']), {
    code: 2,
    err: /expected a control token, found nothing in -/,
  })
  t.match(await sandbox([...args, '--token-file', join(file, 'none')]), { code: 2, err: /cannot be read \(ENOTDIR\)/ })
  t.notOk(
    daemon.seen.slice(before).some(({ path }) => path !== '/health'),
    'no request was sent with it',
  )
  t.match(
    (
      await sandbox(['call', 'POST /system/session', '--url', daemon.url, 'claim=@-', 'x:=1'], {
        input: 'the code',
        env: { SANDBOX_TOKEN: 'sbc_x' },
      })
    ).code,
    5,
  )
  t.match(daemon.calls().at(-1)?.body, { claim: 'the code' })
})
