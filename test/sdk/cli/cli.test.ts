import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fakeDaemon, note, sandbox } from './cli-process.js'
import { json, streaming, wire } from '../wire.js'

const VERBS = [
  'serve',
  'service',
  'login',
  'run',
  'attach',
  'answer',
  'steer',
  'queue',
  'stop',
  'agents',
  'transcript',
  'diff',
  'land',
  'discard',
  'rewind',
  'fork',
  'rename',
  'archive',
  'members',
  'sessions',
  'token',
  'terminal',
  'usage',
  'machine',
  'bundle',
  'call',
  'completion',
]

t.test('help lists every verb and each verb has its own', async t => {
  const help = await sandbox(['--help'])
  t.equal(help.code, 0)
  for (const verb of VERBS) t.match(help.out, new RegExp(`^  ${verb} `, 'm'))
  t.matchOnly(help.out, /^sandbox help exit-codes says what the exit codes mean\.$/m)
  const land = await sandbox(['land', '--help'])
  t.equal(
    land.out,
    `usage: sandbox land [CONVERSATION]

land the work in the workspace as uncommitted changes; default: the newest one

It lands what the conversation has changed when the command starts, and refuses what is changed after that. With
--expect, as sandbox diff prints it, it lands exactly what that diff showed.
New conversations start from the last commit: with --commit, what landed is committed at once, and nothing else.

  --expect [REPOSITORY=]TIP …  land only work with this tip, as a diff showed it
  --force       land even while the agent is writing
  --cumulative  also land work that was landed before and reverted since
  --merge       write conflict markers where the main line changed
  --commit MESSAGE  also commit the files that landed, with this message
  --url URL     the daemon to use (SANDBOX_URL)
  --data DIR    the data folder of the daemon to use (SANDBOX_DATA)
  --token-file FILE  a file with a control token, - for standard input (SANDBOX_TOKEN holds one itself)
  --json        print JSON, one value a line

examples:
  sandbox land
  sandbox land c-1 --merge
  sandbox land c-1 --expect 7a0c41d9be3f5d1c2b8e6f4a90d37c15e8b2f604
`.replace(/^  (--(?!expect)\S+(?: [A-Z]+)?) +/gm, (_, flag: string) => `  ${flag.padEnd(27)}  `),
  )
  t.match((await sandbox(['--version'])).out, /^\d+\.\d+\.\d+\n$/)
})

t.test('invalid arguments are one message and exit code 2', async t => {
  const cases: readonly (readonly string[])[] = [
    ['fly'],
    ['--nope', 'agents'],
    ['--url', 'x'],
    ['--url', 'x', 'agents'],
    ['run', 'x', '--mode', 'free'],
    ['run', 'x', '--thinking', 'deep'],
    ['run', 'x', '--fast', 'yes'],
    ['run', 'x', '--effort'],
    ['run', 'x', '--conversation=-c'],
    ['run', 'x', '--timeout', '5x'],
    ['agents', 'extra'],
    ['agents', '--nope'],
    ['diff', 'a', 'b'],
    ['run'],
    ['run', '  '],
    ['run', 'x', '--isolated', '--shared'],
    ['agents', '--url', 'ftp://x'],
    ['agents', '--url', 'nonsense'],
    ['call', 'agents'],
    ['call', 'TRACE /x'],
    ['call', 'GET /x', 'novalue'],
    ['call', 'GET /x', 'a:={'],
    ['call', 'GET /x', 'a=@/nowhere/file'],
    ['token', 'create'],
    ['token', 'create', '--label', 'a', '--scope', 'all'],
    ['token', 'create', '--label', 'a', '--scope', 'read', '--expires', 'yesterday'],
    ['token', 'drop', 'x'],
    ['members', 'add', 'a@b.c'],
    ['members', 'add', 'a@b.c', '--role', 'king'],
    ['members', 'invite'],
    ['members', 'invite', 'x', '--role', 'viewer'],
    ['members', 'remove'],
    ['members', 'invite', '--role', 'viewer', '--expires', 'never'],
    ['sessions', 'revoke'],
    ['sessions', 'revoke', 'x', '--all'],
    ['sessions', '--all'],
    ['serve', '--port'],
    ['serve', '--nope'],
    ['agents', '--token', 'sbc_x'],
  ]
  for (const args of cases) {
    const { code, out, err } = await sandbox(args)
    t.same([code, out], [2, ''], args.join(' '))
    t.match(err, /^sandbox: [^\n]+\n$/, err)
  }
})

t.test('errors name the arguments that were typed', async t => {
  const cases = [
    [['run', 'x', '--mode', 'free'], '--mode: expected default, acceptEdits, plan or bypassPermissions, found free'],
    [
      ['run', 'x', '--conversation=-c'],
      '--conversation: expected at most 64 letters, digits, _ and -, the first a letter or digit, found -c',
    ],
    [['run', 'x', '--timeout', '0'], '--timeout: expected a time such as 90s, 10m or 2h, of at most 24 days, found 0'],
  ] as const
  for (const [args, sentence] of cases) t.equal((await sandbox(args)).err, `sandbox: ${sentence}\n`)
})

t.test('general options may come before the verb, and with --json errors are JSON', async t => {
  const daemon = await fakeDaemon(t, ({ path }, response) =>
    path === '/agents'
      ? { agents: [], rev: 1, held: [] }
      : json(response, 404, { reason: 'not-found', message: 'no such conversation' }),
  )
  for (const args of [
    ['--json', '--url', daemon.url, 'agents'],
    [`--url=${daemon.url}`, 'agents', '--json'],
  ]) {
    t.same(JSON.parse((await daemon.run(args)).out), { agents: [], rev: 1, held: [] })
  }
  const failures = [
    [['--json', 'diff', 'nope'], 5, 'not-found'],
    [['agents', '--json', '--nope'], 2, 'usage'],
    [['agents', '--json', '--url', 'http://127.0.0.1:1'], 3, 'no-daemon'],
  ] as const
  for (const [args, code, reason] of failures) {
    const ran = await daemon.run([...args])
    t.same([ran.code, ran.out], [code, ''])
    t.match(JSON.parse(ran.err), { reason, message: /./ }, args.join(' '))
  }
  t.match(JSON.parse((await sandbox(['--json', 'agents'])).err), { reason: 'no-daemon' })
})

t.test('without a daemon the program says so, exit code 3', async t => {
  for (const args of [['agents'], ['run', 'x'], ['login']]) {
    const { code, err } = await sandbox(args)
    t.equal(code, 3)
    t.match(err, /^sandbox: no daemon is running; start one with "sandbox serve"\n$/)
  }
  const { code, err } = await sandbox(['agents', '--url', 'http://127.0.0.1:1'], { env: { SANDBOX_TOKEN: 'sbc_x' } })
  t.equal(code, 3)
  t.match(err, /no answer from http:\/\/127\.0\.0\.1:1: /)
})

t.test('the daemon is that of the current folder, otherwise the only one, otherwise all are listed', async t => {
  const roster = () => ({ agents: [], rev: 1, held: [] })
  const here = await fakeDaemon(t, roster)
  const only = await here.run(['agents'])
  t.same([only.code, only.out], [0, 'no conversations yet; sandbox run "/demo" starts one\n'])
  note(here.state, 'aaaaaaaaaaaaaaaa', {
    url: here.url.replace('127.0.0.1', 'localhost'),
    pid: process.pid,
    socket: here.socket,
    workspace: '/elsewhere',
  })
  const several = await here.run(['agents'])
  t.equal(several.code, 3)
  t.match(several.err, /2 daemons are running and none serves this folder; choose one with --url:\n/)
  t.equal((await here.run(['agents'], { cwd: join(here.workspace, 'deep') })).code, 0)
  t.equal((await here.run(['agents', '--data', join(here.state, 'sandbox', '0123456789abcdef')])).code, 0)
  t.equal((await here.run(['agents', '--url', here.url])).code, 0)
})

t.test('notes of daemons that have ended, are broken or do not answer are skipped', async t => {
  const daemon = await fakeDaemon(t, () => ({ agents: [], rev: 1, held: [] }))
  note(daemon.state, 'a'.repeat(16), { url: daemon.url, pid: 2 ** 22 + 1, socket: daemon.socket, workspace: '/' })
  note(daemon.state, 'b'.repeat(16), {
    url: 'http://127.0.0.1:1',
    pid: process.pid,
    socket: daemon.socket,
    workspace: '/',
  })
  note(daemon.state, 'c'.repeat(16), '{"url":')
  note(daemon.state, 'd'.repeat(16), { url: 5, pid: 'x' })
  t.equal((await daemon.run(['agents'])).code, 0)
})

t.test("the owner's session is requested from the login socket and ended after use", async t => {
  const daemon = await fakeDaemon(t, () => ({ agents: [], rev: 1, held: [] }))
  await daemon.run(['agents'])
  t.equal(daemon.calls()[0]!.headers.authorization, 'Bearer sbs_cli')
  t.equal(daemon.seen.at(-1)!.path, '/system/sessions/revoke')
  t.same(daemon.seen.at(-1)!.body, { current: true })
})

t.test('a token in the environment is used instead, and an address of another machine needs one', async t => {
  const daemon = await fakeDaemon(t, () => ({ agents: [], rev: 1, held: [] }))
  await daemon.run(['agents'], { env: { ...daemon.env, SANDBOX_TOKEN: 'sbc_x' } })
  t.same(
    [daemon.calls()[0]!.headers['x-sandbox-control'], daemon.calls()[0]!.headers.authorization],
    ['sbc_x', undefined],
  )
  const { code, err } = await sandbox(['agents', '--url', daemon.url])
  t.equal(code, 5)
  t.match(err, /no credential for .* put a control token into SANDBOX_TOKEN/)
})

t.test('login prints a link with the code', async t => {
  const daemon = await fakeDaemon(t, () => ({}))
  t.same(await daemon.run(['login']), { code: 0, out: `${daemon.url}/#login=abc\n`, err: '' })
  t.same(JSON.parse((await daemon.run(['login', '--json'])).out), { url: `${daemon.url}/#login=abc` })
})

t.test('call makes any call: values, JSON, files, path parameters', async t => {
  const daemon = await fakeDaemon(t, ({ body }) => ({ ok: true, got: body }))
  writeFileSync(join(daemon.workspace, 'brief.txt'), 'from a file\n')
  const args = ['call', 'POST /agents/{id}/land', 'id=c-1', 'force=true', 'mode=check', 'text:="5"', 'brief=@brief.txt']
  const { code, out } = await daemon.run(args, { cwd: daemon.workspace })
  t.equal(code, 0)
  t.equal(daemon.calls()[0]!.path, '/agents/c-1/land')
  t.same(JSON.parse(out).got, { force: true, mode: 'check', text: '5', brief: 'from a file\n' })
  await daemon.run(['call', 'get', '/agents/c-1/transcript', 'limit=3'])
  t.same([daemon.calls()[1]!.method, daemon.calls()[1]!.query.get('limit')], ['GET', '3'])
})

t.test('call prints a stream line by line and bytes unchanged', async t => {
  const daemon = await fakeDaemon(t, ({ path }, response) => {
    if (path === '/page') return void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>ü</p>')
    return void streaming(response).end(
      wire('message', { n: 1 }) + wire('message', { text: '\u009b31m' }) + wire('done', {}),
    )
  })
  t.equal((await daemon.run(['call', 'GET /stream'])).out, '{"n":1}\n{"text":"\\u009b31m"}\n')
  t.equal((await daemon.run(['call', 'GET /page'])).out, '<p>ü</p>')
})

t.test('a refusal prints its message, exit code 1', async t => {
  const daemon = await fakeDaemon(t, (_, response) =>
    json(
      response,
      400,
      {
        reason: 'invalid',
        message: 'a: expected text',
        errors: [
          { path: 'a', expected: 'text' },
          { path: 'b', expected: 'a \u001b[31mnumber' },
        ],
      },
      { 'retry-after': '3' },
    ),
  )
  t.same(await daemon.run(['call', 'GET /x']), {
    code: 2,
    out: '',
    err: 'sandbox: a: expected text; b: expected a \\u001b[31mnumber (ask again in 3 s)\n',
  })
})

t.test('tokens are minted, listed and revoked', async t => {
  const daemon = await fakeDaemon(t, ({ method }) => {
    if (method === 'POST') return { id: 't1', token: 'sbc_t1.secret' }
    if (method === 'GET')
      return {
        tokens: [{ id: 't1', label: 'ci', scope: 'land', createdAt: 1, createdBy: 'me', expiresAt: 4_070_908_800_000 }],
      }
    return { ok: true }
  })
  t.same(await daemon.run(['token', 'create', '--label', 'ci', '--scope', 'land', '--expires', '2099-01-01']), {
    code: 0,
    out: 'sbc_t1.secret\n',
    err: '',
  })
  t.same(daemon.calls()[0]!.body, { label: 'ci', scope: 'land', expiresAt: 4_070_908_800_000 })
  t.match(
    (await daemon.run(['token', 'list'])).out,
    /^ID  SCOPE  UNTIL .*\nt1  land   20\d\d-\d\d-\d\d \d\d:\d\d  never  ci\n$/,
  )
  t.equal((await daemon.run(['token', 'revoke', 't1'])).out, 'revoked t1\n')
  t.same([daemon.calls()[2]!.method, daemon.calls()[2]!.path], ['DELETE', '/system/control/tokens/t1'])
})

t.test('members are listed, granted, invited and removed', async t => {
  const member = { email: 'ada@example.org', role: 'owner', grantedBy: 'ada@example.org', grantedAt: 1, bound: true }
  const bob = {
    email: 'bob@example.org',
    role: 'viewer',
    areas: ['docs', 'web'],
    grantedBy: 'ada@example.org',
    grantedAt: 1,
    bound: false,
  }
  const open = {
    id: 'i1',
    role: 'collaborator',
    note: 'for \u001b[31mEve',
    createdBy: 'ada@example.org',
    createdAt: 1,
    expiresAt: 4_070_908_800_000,
  }
  const nil = { ...bob, email: 'nil@example.org', areas: [] }
  const list = { members: [member, bob, nil], invitations: [open] }
  const made = { id: 'i1', code: 'secret', url: 'http://127.0.0.1:1/#invite=secret', expiresAt: 4_070_908_800_000 }
  const daemon = await fakeDaemon(t, ({ method, body }) =>
    method === 'POST' && !(body as { email?: string }).email ? { ...list, invitation: made } : list,
  )
  t.equal(
    (await daemon.run(['members'])).out.replace(/\d\d:\d\d/, '00:00'),
    [
      'WHO                                ROLE          AREAS      SEEN                      GRANTED BY',
      'ada@example.org                    owner         all        never                     ada@example.org',
      'bob@example.org                    viewer        docs, web  never                     ada@example.org',
      'nil@example.org                    viewer        none       never                     ada@example.org',
      'invitation i1 (for \\u001b[31mEve)  collaborator  all        expires 2099-01-01 00:00  ada@example.org',
      '',
    ].join('\n'),
  )
  t.equal(
    (await daemon.run(['members', 'add', 'Bob@example.org', '--role', 'viewer', '--areas', 'docs, web'])).out,
    'Bob@example.org is viewer, from the first sign-in on\n',
  )
  t.same(daemon.calls()[1]!.body, { email: 'Bob@example.org', role: 'viewer', areas: ['docs', 'web'] })
  t.same(
    await daemon.run(['members', 'invite', '--role', 'collaborator', '--note', 'for Eve', '--expires', '2099-01-01']),
    {
      code: 0,
      out: 'http://127.0.0.1:1/#invite=secret\n',
      err: 'invitation i1, valid once, until 2099-01-01\n',
    },
  )
  t.same(daemon.calls()[2]!.body, { role: 'collaborator', note: 'for Eve', expiresAt: 4_070_908_800_000 })
  t.equal((await daemon.run(['members', 'remove', 'bob@example.org'])).out, 'removed bob@example.org\n')
  await daemon.run(['members', 'remove', 'i1'])
  t.same(
    daemon
      .calls()
      .slice(3)
      .map(({ method, path, body }) => [method, path, body]),
    [
      ['DELETE', '/members', { email: 'bob@example.org' }],
      ['DELETE', '/members', { invitation: 'i1' }],
    ],
  )
})

t.test('sessions are listed and ended', async t => {
  const row = {
    id: 's1',
    email: 'ada@example.org',
    role: 'owner',
    via: 'oidc',
    device: 'a laptop',
    createdAt: 1,
    lastSeenAt: Date.now(),
    expiresAt: 4_070_908_800_000,
    address: '10.0.0.1',
    current: true,
  }
  const daemon = await fakeDaemon(t, ({ method }) =>
    method === 'GET' ? { sessions: [row] } : { ok: true, revoked: 1 },
  )
  t.match(
    (await daemon.run(['sessions'])).out,
    /^ID  WHO .*\ns1  ada@example\.org  owner  oidc  \S.*  20\d\d-\d\d-\d\d \S+  10\.0\.0\.1  a laptop  this one\n$/,
  )
  t.equal((await daemon.run(['sessions', 'revoke', 'ada@example.org'])).out, 'ended 1 session\n')
  await daemon.run(['sessions', 'revoke', 's1'])
  await daemon.run(['sessions', 'revoke', '--all'])
  const revokes = daemon.seen.filter(
    ({ method, path, body }) =>
      method === 'POST' && path === '/system/sessions/revoke' && !(body as { current?: true }).current,
  )
  t.same(
    revokes.map(({ body }) => body),
    [{ email: 'ada@example.org' }, { id: 's1' }, {}],
  )
})
