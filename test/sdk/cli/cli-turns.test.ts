import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { fakeDaemon, runOf } from './cli-process.js'
import { json, runBytes, streaming } from '../wire.js'

const QUESTION: Frame = {
  kind: 'question',
  requestId: 'q-1',
  questions: [
    {
      question: 'Which colour?',
      header: 'Colour',
      multiSelect: false,
      options: [
        { label: 'Deep blue', description: 'like the sea' },
        { label: 'Red', description: '' },
      ],
    },
  ],
}
const DEMO: readonly Frame[] = [
  { kind: 'worktree', branch: 'agent/c-1', base: '0123456789abcdef0123' },
  { kind: 'init', model: 'script', provider: 'script' },
  { kind: 'thinking', text: 'Let me see.' },
  { kind: 'delta', text: 'Hello ' },
  { kind: 'delta', text: 'there.' },
  { kind: 'text_end' },
  { kind: 'tool_call', id: 't-1', name: 'Write', category: 'edit', status: 'in_progress', target: 'a.txt' },
  {
    kind: 'tool_call_update',
    id: 't-1',
    status: 'completed',
    content: [{ type: 'diff', path: 'a.txt', newText: 'one\ntwo\n' }],
  },
  {
    kind: 'todos',
    items: [
      { content: 'write', status: 'completed' },
      { content: 'rest', status: 'pending' },
    ],
  },
  QUESTION,
  {
    kind: 'resolved',
    requestId: 'q-1',
    reply: { kind: 'question', requestId: 'q-1', answers: { 'Which colour?': 'Deep blue' } },
    by: 'owner@sandbox.local',
  },
  { kind: 'brand_new', shape: { of: 'frame' } } as unknown as Frame,
  { kind: 'done', reason: 'completed' },
]

const COPY = 'in a private copy on agent/c-1, from 0123456789ab\n'
const ended = (reason: 'completed' | 'failed' | 'stopped'): Frame[] => [
  { kind: 'delta', text: 'x' },
  { kind: 'done', reason },
]

t.test('run shows the turn in plain lines, answers with --answer, and suggests the next command', async t => {
  const daemon = await fakeDaemon(t, runOf(DEMO))
  const { code, out, err } = await daemon.run([
    'run',
    '/demo',
    '--conversation',
    'c-1',
    '--answer',
    '1',
    '--model',
    'script-fast',
  ])
  t.same([code, err], [0, ''])
  t.equal(
    out,
    `conversation c-1
in a private copy on agent/c-1, from 0123456789ab
model script of script
Let me see.
Hello there.
✓ Write a.txt
  a.txt (new)
  + one
  + two
[x] write
[ ] rest
The agent asks: Which colour?
  1. Deep blue  like the sea
  2. Red
answered: Deep blue (owner@sandbox.local)
brand_new: {"shape":{"of":"frame"}}
done
next: sandbox diff c-1  or  sandbox land c-1
`,
  )
  const [started, , reply] = daemon.calls()
  t.match(started!.body, {
    prompt: '/demo',
    conversationId: 'c-1',
    isolated: true,
    model: 'script-fast',
    messageId: /^m-/,
  })
  t.same(reply!.body, { kind: 'question', requestId: 'q-1', answers: { 'Which colour?': 'Deep blue' } })
})

t.test('without a terminal a card is printed with the command that answers it', async t => {
  const daemon = await fakeDaemon(t, runOf(DEMO))
  let answered: Promise<unknown> | undefined
  const { code, out } = await daemon.run(['run', 'x', '--timeout', '10m'], {
    watch: out => {
      const [, conversation] = /conversation (\S+)/.exec(out) ?? []
      if (out.includes('to answer: '))
        answered ??= daemon.run(['answer', '--conversation', conversation!, 'q-1', 'my own words'])
    },
  })
  t.equal(code, 0)
  t.match(out, "to answer: sandbox answer q-1 'Deep blue'\n")
  t.same(await answered, { code: 0, out: 'answered: my own words\n', err: '' })
})

t.test(
  'without a terminal it does not wait forever: an unanswered card ends it with code 4, the turn continues',
  async t => {
    const daemon = await fakeDaemon(t, runOf(DEMO))
    const goesOn = 'the turn continues: sandbox attach c-1 follows it, sandbox stop c-1 stops it\n'
    const asked = await daemon.run(['run', 'x', '--conversation', 'c-1'])
    t.same([asked.code, asked.err], [4, goesOn])
    t.match(asked.out, /to answer: sandbox answer q-1 'Deep blue'\n$/)
    const attached = await daemon.run(['attach', 'c-1', '--no-input'])
    t.same([attached.code, attached.err], [4, goesOn])
    const asJson = await daemon.run(['run', 'x', '--conversation', 'c-1', '--json'])
    t.equal(asJson.code, 4)
    t.same(
      asJson.err
        .trim()
        .split('\n')
        .map(line => JSON.parse(line)),
      [
        { message: "to answer: sandbox answer q-1 'Deep blue'", reason: 'card', requestId: 'q-1' },
        { message: goesOn.trim(), reason: 'waits', conversationId: 'c-1' },
      ],
    )
    const began = performance.now()
    const late = await daemon.run(['run', 'x', '--conversation', 'c-1', '--timeout', '1s'])
    t.same([late.code, late.err], [4, goesOn])
    t.ok(performance.now() - began >= 1000)
    t.notOk(daemon.calls().some(({ path }) => path === '/agent/stop' || path === '/agent/reply'))
  },
)

t.test('--json prints the answer and then every event, one per line', async t => {
  const daemon = await fakeDaemon(t, runOf(ended('completed')))
  const { out } = await daemon.run(['run', 'x', '--json'])
  const lines = out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  t.match(lines[0], { run: 'r-1', delivery: 'started', conversationId: /^c-/ })
  t.same(
    lines.slice(1).map(({ kind }) => kind),
    ['attached', 'frame', 'frame', 'end'],
  )
})

t.test('a turn that did not complete is exit code 1', async t => {
  for (const reason of ['failed', 'stopped'] as const) {
    const daemon = await fakeDaemon(t, runOf(ended(reason)))
    const { code, out } = await daemon.run(['run', 'x'])
    t.equal(code, 1)
    t.match(out, `ended: ${reason}`)
  }
})

t.test('the prompt may come from standard input, and a shared turn requests no copy', async t => {
  const daemon = await fakeDaemon(t, runOf(ended('completed')))
  t.equal((await daemon.run(['run', '-', '--shared', '--detach'], { input: 'say hi\nsay ho\n' })).code, 0)
  t.equal(daemon.calls()[0]!.body.prompt, 'say hi\nsay ho\n')
  t.notOk('isolated' in daemon.calls()[0]!.body)
  t.equal(daemon.calls().length, 1)
})

t.test(
  'a turn works in a private copy if the workspace has a repository, and in the workspace itself if it ' + 'holds none',
  async t => {
    const daemon = await fakeDaemon(t, runOf(ended('completed')))
    const asked = async () => {
      t.equal((await daemon.run(['run', 'x', '--detach'])).code, 0)
      return daemon.calls().at(-1)!.body.isolated
    }
    await rm(join(daemon.workspace, '.git'), { recursive: true })
    t.equal(await asked(), undefined, 'no repository')
    await mkdir(join(daemon.workspace, 'node_modules/dep/.git'), { recursive: true })
    t.equal(await asked(), undefined, 'one from a package manager')
    await mkdir(join(daemon.workspace, 'services/app/.git'), { recursive: true })
    t.equal(await asked(), true, 'one in a folder')
  },
)

t.test('after a turn in the workspace itself only commands that work there are suggested', async t => {
  const daemon = await fakeDaemon(t, runOf(ended('completed')))
  t.match(
    (await daemon.run(['run', 'x', '--shared', '--conversation', 'c-1'])).out,
    /done\nnext: sandbox run --conversation c-1 "…"\n$/,
  )
})

t.test('a start without an answer is repeated with the same message id', async t => {
  let lost = 0
  const serve = runOf(ended('completed'))
  const daemon = await fakeDaemon(t, (seen, response) =>
    seen.path === '/agent' && lost++ === 0 ? void response.destroy() : serve(seen, response),
  )
  t.equal((await daemon.run(['run', 'x', '--detach'])).code, 0)
  const [first, second] = daemon.calls()
  t.equal(first!.body.messageId, second!.body.messageId)
  t.equal(first!.body.conversationId, second!.body.conversationId)
})

t.test('Ctrl-C stops watching, not the turn', async t => {
  const daemon = await fakeDaemon(t, runOf(DEMO))
  const { code, err } = await daemon.run(['run', 'x', '--conversation', 'c-1', '--timeout', '10m'], {
    watch: (out, kill) => {
      if (out.includes('to answer')) kill('SIGINT')
    },
  })
  t.equal(code, 130)
  t.match(err, 'the turn continues: sandbox attach c-1 follows it, sandbox stop c-1 stops it')
  t.notOk(daemon.calls().some(({ path }) => path === '/agent/stop'))
})

t.test('the output of a tool cannot control the terminal', async t => {
  const daemon = await fakeDaemon(
    t,
    runOf([
      { kind: 'delta', text: 'a\u001b]0;x\u0007\u009b2Jb\u202ec\r' },
      { kind: 'done', reason: 'completed' },
    ]),
  )
  const { out } = await daemon.run(['run', 'x'])
  t.match(out, 'a\\u001b]0;x\\u0007\\u009b2Jb\\u202ec\\u000d\n')
})

t.test('attach follows the newest conversation and the run that comes after', async t => {
  const daemon = await fakeDaemon(t, ({ path, body }, response) => {
    if (path === '/agents')
      return {
        agents: [
          { id: 'c-9', status: 'idle', updatedAt: 1 },
          { id: 'c-1', status: 'running', startedAt: 1, updatedAt: 1 },
        ],
        rev: 1,
        held: [],
      }
    const frames: Frame[] = [
      DEMO[0]!,
      { kind: 'delta', text: String(body.run ?? 'first') },
      { kind: 'done', reason: 'completed' },
    ]
    const bytes = runBytes(body.run ? 'r-2' : 'r-1', frames)
    return void streaming(response).end(
      body.run ? bytes : bytes.replace('{"kind":"end"}', '{"kind":"end","next":"r-2"}'),
    )
  })
  const { code, out } = await daemon.run(['attach'])
  t.equal(code, 0)
  t.equal(
    out,
    `${COPY}first\ndone\nnext: run r-2 starts with a waiting message\n${COPY}r-2\ndone\nnext: sandbox diff c-1  `
      + `or  sandbox land c-1\n`,
  )
  t.same(
    daemon
      .calls()
      .slice(1)
      .map(({ body }) => body),
    [{ conversationId: 'c-1' }, { conversationId: 'c-1', run: 'r-2' }],
  )
})

t.test('answer finds the card by its id or its conversation, and refuses invalid answers', async t => {
  const plan: Frame = { kind: 'plan', requestId: 'p-1', text: 'first this' }
  const serve = runOf([plan, { kind: 'done', reason: 'completed' }])
  const card = { requestId: 'p-1', kind: 'plan', title: 'A plan', raisedAt: 1 }
  const daemon = await fakeDaemon(t, (seen, response) =>
    seen.path === '/agents'
      ? { agents: [{ id: 'c-1', status: 'awaiting', updatedAt: 1, cards: [card] }], rev: 1, held: [] }
      : serve(seen, response),
  )
  t.equal((await daemon.run(['answer', 'c-1', 'no', 'shorter', 'please'])).code, 0)
  t.same(daemon.calls().at(-1)!.body, { kind: 'plan', requestId: 'p-1', approve: false, feedback: 'shorter please' })
  t.same(await daemon.run(['answer', 'p-1', 'perhaps']), {
    code: 2,
    out: '',
    err: 'sandbox: expected yes, or no and what to change, found perhaps\n',
  })
  t.equal((await daemon.run(['answer', 'p-1'])).code, 2)
  t.equal((await daemon.run(['answer', 'p-1', '--cancel'])).code, 2)
  t.equal((await daemon.run(['answer', 'zzz', 'yes'])).code, 5)
})

t.test('the board is a table, with the open cards below it', async t => {
  const agents = [
    {
      id: 'c-1',
      status: 'ready',
      title: 'Fix the\nparser \u001b[2J',
      diff: { files: 2, insertions: 5, deletions: 1 },
      branch: 'agent/c-1',
      updatedAt: Date.now() - 120_000,
    },
    {
      id: 'c-2',
      status: 'awaiting',
      updatedAt: Date.now() + 60_000,
      cards: [{ requestId: 'q-1', kind: 'question', title: 'Which colour?', raisedAt: 1 }],
    },
  ]
  const daemon = await fakeDaemon(t, () => ({ agents, rev: 3, held: [] }))
  t.equal(
    (await daemon.run(['agents'])).out,
    `CONVERSATION  STATUS    CHANGES        UPDATED    TITLE
c-1           ready     2 files +5 -1  2 min ago  Fix the parser \\u001b[2J
c-2           awaiting  shared tree    now
c-2 asks: Which colour?  (sandbox answer q-1 …)
`,
  )
  t.equal(JSON.parse((await daemon.run(['agents', '--json'])).out).rev, 3)
})

const TIP = '7a0c41d9be3f5d1c2b8e6f4a90d37c15e8b2f604'
const CHANGES = {
  repos: [
    {
      repo: 'root',
      tip: TIP,
      modules: [],
      changes: [
        { path: 'a.txt', status: 'modified', additions: 1, deletions: 1, landed: false },
        { path: 'b.png', status: 'added', landed: true },
      ],
    },
  ],
}

t.test('diff shows the files with their hunks', async t => {
  const daemon = await fakeDaemon(t, ({ path, query }) => {
    if (path.endsWith('/diff')) return CHANGES
    return query.get('path') === 'b.png' ? { binary: true } : { before: '1\n2\n3\n', after: '1\n2!\n3\n' }
  })
  const hint = `land exactly this with sandbox land c-1 --expect ${TIP}\n`
  const whole = await daemon.run(['diff', 'c-1'])
  t.equal(whole.err, hint, 'beside the diff, which is a patch')
  t.equal(
    whole.out,
    `M a.txt  +1 -1
@@ -1,3 +1,3 @@
 1
-2
+2!
 3
A b.png  binary  landed
binary
`,
  )
  t.match(await daemon.run(['diff', 'c-1', '--stat']), {
    out: 'M a.txt  +1 -1\nA b.png  binary  landed\n',
    err: hint,
  })
})

t.test('land lists the files that are in the workspace now', async t => {
  const daemon = await fakeDaemon(t, ({ path }) => (path.endsWith('/diff') ? CHANGES : { landed: true }))
  t.same(await daemon.run(['land', 'c-1', '--force']), {
    code: 0,
    out: 'landed: 1 file is in the workspace as uncommitted changes\n',
    err: '',
  })
  t.same(daemon.calls().at(-1)!.body, { force: true, expect: { root: TIP } })
})

t.test('land --commit commits what landed in each repository, and nothing else', async t => {
  const uncommitted = [
    { repo: 'root', paths: ['a.txt', 'b.png'] },
    { repo: 'lib', paths: ['c.ts'] },
  ]
  let more: object = {}
  const daemon = await fakeDaemon(t, ({ path }) => {
    if (path.endsWith('/diff')) return CHANGES
    return path.endsWith('/land') ? { landed: true, uncommitted, ...more } : { committed: true, head: 'f'.repeat(40) }
  })
  const commits = () => daemon.calls().filter(({ path }) => path.endsWith('/commit'))
  t.match(await daemon.run(['land', 'c-1']), {
    code: 0,
    out: /git commit "MESSAGE" --paths a\.txt --paths b\.png --only\n$/,
  })
  t.same(commits(), [])
  t.match(await daemon.run(['land', 'c-1', '--commit', 'Both']), {
    code: 0,
    out: /\ncommitted: 2 files as f{12}\ncommitted: 1 file as f{12}\n$/,
  })
  t.same(
    commits().map(({ path, body }) => [path, body]),
    [
      ['/git/root/commit', { message: 'Both', paths: ['a.txt', 'b.png'], only: true }],
      ['/git/lib/commit', { message: 'Both', paths: ['c.ts'], only: true }],
    ],
  )
  more = { resolving: [{ repo: 'root', paths: ['a.txt'] }] }
  t.match(await daemon.run(['land', 'c-1', '--commit', 'Both']), { code: 5, err: /resolve the conflict markers first/ })
  more = { landed: false }
  t.match(
    await daemon.run(['land', 'c-1', '--commit', 'Both']),
    { code: 1, out: /^landed in the workspace, lib\nnot landed/ },
    'one repository refused, and others did not',
  )
  more = { landed: false, uncommitted: [] }
  t.match(await daemon.run(['land', 'c-1', '--commit', 'Both']), { code: 5, out: /^not landed/ })
  t.match(await daemon.run(['land', 'c-1', '--commit', ' ']), { code: 2 })
  t.equal(commits().length, 2)
})

t.test('a landing with conflicts lists them, exit code 5', async t => {
  const conflicts = [{ repo: 'root', mainBranch: 'main', clean: 2, paths: [{ path: 'a.txt', reason: 'workspace' }] }]
  const daemon = await fakeDaemon(t, ({ path }) => (path.endsWith('/diff') ? CHANGES : { landed: false, conflicts }))
  t.same(await daemon.run(['land', 'c-1']), {
    code: 5,
    out: 'not landed:\nroot: 1 of 3 paths conflict on main\n  a.txt: your uncommitted change is in the way\n',
    err: '',
  })
})

t.test('without an id the newest conversation is used, and named', async t => {
  const agents = [
    { id: 'c-2', updatedAt: 2 },
    { id: 'c-1', updatedAt: 1 },
  ]
  const daemon = await fakeDaemon(t, ({ path }) =>
    path === '/agents'
      ? { agents, rev: 1, held: [] }
      : path.endsWith('/diff')
        ? { repos: [] }
        : { id: 'c-2', ok: true, landed: true, stopped: 'turn', ended: 0, running: 0 },
  )
  const said = 'conversation c-2, the newest one\n'
  for (const [args, out] of [
    [['diff'], 'nothing was changed\n'],
    [['land'], 'landed: nothing was outstanding, the workspace already has all changes\n'],
    [['stop'], 'stopped c-2\n'],
    [['discard'], 'discarded c-2\n'],
  ] as const)
    t.same(await daemon.run(args), { code: 0, out, err: said })
  const none = await fakeDaemon(t, () => ({ agents: [], rev: 1, held: [] }))
  t.same(await none.run(['diff']), {
    code: 5,
    out: '',
    err: 'sandbox: there is no conversation yet; start one with sandbox run "PROMPT"\n',
  })
})

t.test('work that has not landed is discarded only after confirmation', async t => {
  let card: object = { id: 'c-1', branch: 'agent/c-1' }
  const daemon = await fakeDaemon(t, ({ path }) =>
    path.endsWith('/diff') ? CHANGES : path.endsWith('/discard') ? { ok: true } : card,
  )
  const discards = () => daemon.calls().filter(({ path }) => path.endsWith('/discard')).length
  t.same(await daemon.run(['discard', 'c-1']), {
    code: 2,
    out: '',
    err:
      'sandbox: 1 file of c-1 is not in the workspace: discard it? expected --yes, because there is no terminal '
      + 'to ask at\n',
  })
  card = { ...card, startedAt: 1 }
  t.match(await daemon.run(['discard', 'c-1']), { code: 2, err: /c-1 is at work: discard it\? expected --yes/ })
  t.equal(discards(), 0)
  t.same(await daemon.run(['discard', 'c-1', '--yes']), { code: 0, out: 'discarded c-1\n', err: '' })
  card = { id: 'c-1' }
  t.same(
    await daemon.run(['discard', 'c-1']),
    { code: 0, out: 'discarded c-1\n', err: '' },
    'in the shared tree nothing is lost',
  )
  t.equal(discards(), 2)
})

t.test('stop and discard report the result, and pass a refusal on', async t => {
  const daemon = await fakeDaemon(t, ({ path, body }, response) =>
    body.conversationId === 'nope'
      ? json(response, 404, { reason: 'not-found', message: 'no such conversation' })
      : { ok: true, path, stopped: body.conversationId === 'c-3' ? 'nothing' : 'turn', ended: 1, running: 2 },
  )
  const left =
    'ended 1 command in the background\n2 commands go on in the background: sandbox agent processes c-1 shows them, '
    + 'sandbox stop c-1 --background ends them\n'
  t.same(await daemon.run(['stop', 'c-1']), { code: 0, out: `stopped c-1\n${left}`, err: '' })
  t.match(await daemon.run(['stop', 'c-3', '--background']), { code: 0, out: /^no turn of c-3 ran\n/ })
  t.same(daemon.calls().at(-1)!.body, { conversationId: 'c-3', background: true })
  t.same(await daemon.run(['discard', 'c-1']), { code: 0, out: 'discarded c-1\n', err: '' })
  t.same(
    daemon.calls().map(({ path }) => path),
    ['/agent/stop', '/agent/stop', '/agents/c-1', '/agents/c-1/discard'],
  )
  t.same(await daemon.run(['stop', 'nope']), { code: 5, out: '', err: 'sandbox: no such conversation\n' })
})

t.test('role, effort, thinking and the fast mode are sent as they are given', async t => {
  const daemon = await fakeDaemon(t, runOf(ended('completed')))
  const none = { runRole: undefined, effort: undefined, thinking: undefined, fast: undefined }
  const sent = async (...flags: string[]) => {
    const before = daemon.calls().length
    await daemon.run(['run', 'x', '--detach', ...flags])
    const { runRole, effort, thinking, fast } = daemon.calls()[before]!.body as { [field: string]: unknown }
    return { runRole, effort, thinking, fast }
  }
  const first = await sent('--effort', 'high', '--thinking', 'on', '--fast', 'off')
  t.same(first, { ...none, effort: 'high', thinking: true, fast: false })
  t.same(await sent('--thinking', 'off', '--fast', 'on'), { ...none, thinking: false, fast: true })
  t.same(await sent('--role', 'deployment-fix'), { ...none, runRole: 'deployment-fix' })
  t.same(await sent(), none)
  const wrong = await daemon.run(['run', 'x', '--role', 'cook'])
  t.match(wrong, { code: 2, err: /--role: expected maintenance-chore, .* or pipeline-fix, found cook/ })
})
