import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fakeDaemon } from './cli-process.js'
import { json, type Answerer } from '../wire.js'
import { exactly } from '../../support/lists.js'

const MESSAGES = [
  {
    messageId: 'm-1',
    run: 'r-2',
    text: 'first\nwords',
    attachments: [],
    mentions: [],
    by: 'ada@example.org',
    at: Date.now() - 60_000,
    why: 'parked',
    options: {},
  },
  {
    messageId: 'm-2',
    run: 'r-3',
    text: 'second',
    attachments: [],
    mentions: [],
    by: 'ada@example.org',
    at: Date.now() - 60_000,
    why: 'brand-new',
    options: {},
  },
]
const RECORD = {
  total: 5,
  messages: [
    {
      index: 0,
      role: 'user',
      text: 'write it',
      by: 'ada@example.org',
      sentAt: Date.now() - 120_000,
      attachments: ['a.txt'],
    },
    {
      index: 1,
      role: 'assistant',
      text: 'Done.\n',
      tools: [{ id: 't', name: 'Write', category: 'edit', status: 'completed', target: 'b.txt' }],
    },
    {
      index: 2,
      role: 'user',
      text: 'now\u001b[2J undo',
      by: 'ada@example.org',
      sentAt: Date.now() - 60_000,
      checkpointId: 'branch:1',
    },
    { index: 3, role: 'user', text: 'faster', by: 'ada@example.org' },
    { index: 4, role: 'notice', text: 'It was stopped.' },
  ],
}

/** A fake daemon with two conversations, the newest first, that accepts every call. */
const answer: Answerer = ({ method, path, query, body }, response) => {
  const card = { id: 'c-2', status: 'idle', branch: 'agent/c-2', updatedAt: 2, title: body.title }
  if (path.includes('/nope') || (body.ids as string[] | undefined)?.includes('nope') || body.conversationId === 'nope')
    return json(response, 404, { reason: 'not-found', message: 'no such conversation' })
  if (path === '/agents') return { agents: [card, { id: 'c-1', status: 'idle', updatedAt: 1 }], rev: 1, held: [] }
  if (path === '/agents/archived')
    return { agents: [{ ...card, title: 'The parser', archivedAt: Date.now() - 60_000 }], rev: 1, held: [] }
  if (path === '/agents/archive' || path === '/agents/unarchive')
    return { moved: ((body.ids as string[] | undefined) ?? ['c-2', 'c-1']).map(id => ({ ...card, id })), rev: 1 }
  if (path.endsWith('/queue/order'))
    return {
      messages: (body.messageIds as string[]).map(id => MESSAGES.find(({ messageId }) => messageId === id)),
      paused: false,
      ...(body.start === true && { run: 'r-2' }),
    }
  if (method === 'DELETE') return { removed: MESSAGES[0], messages: [MESSAGES[1]] }
  if (path.endsWith('/queue')) return { messages: MESSAGES, paused: true }
  if (path.endsWith('/transcript')) {
    const until = RECORD.messages.slice(0, Number(query.get('before') ?? Infinity))
    return { ...RECORD, messages: until.slice(-Number(query.get('limit') ?? Infinity)) }
  }
  if (path === '/agent/rewind') return { snapshot: 'branch:1', dropped: 2 }
  if (path === '/agent')
    return { run: 'r-9', conversationId: body.conversationId, messageId: body.messageId, delivery: 'started' }
  return path.startsWith('/agents/') ? card : { ok: true }
}

const NEWEST = 'conversation c-2, the newest one\n'

t.test('each verb acts on the named conversation, otherwise on the newest one, and says which', async t => {
  const daemon = await fakeDaemon(t, answer)
  const cases: readonly (readonly [args: readonly string[], out: string, call: string, body: object])[] = [
    [['steer', 'use tabs'], 'said to c-2\n', 'POST /agent/steer', { conversationId: 'c-2', text: 'use tabs' }],
    [['rename', 'The parser'], 'c-2 is called The parser\n', 'POST /agents/c-2/rename', { title: 'The parser' }],
    [
      ['archive'],
      'archived c-2; sandbox archive --restore c-2 restores it\n',
      'POST /agents/archive',
      { ids: ['c-2'] },
    ],
    [['queue', '--remove', 'm-1'], 'removed m-1: first\nwords\n', 'DELETE /agents/c-2/queue/m-1', {}],
    [
      ['rewind', '--yes'],
      'back to before message 2: 2 messages dropped\nnext: sandbox run --conversation c-2 "…"\n',
      'POST /agent/rewind',
      { conversationId: 'c-2', index: 2 },
    ],
    [
      ['rewind', '-y', '--before', '0'],
      'back to before message 0: 2 messages dropped\nnext: sandbox run --conversation c-2 "…"\n',
      'POST /agent/rewind',
      { conversationId: 'c-2', index: 0 },
    ],
  ]
  for (const [nth, [args, out, call, body]] of cases.entries()) {
    const [verb = '', ...rest] = args
    const [newest, named, none, asJson] = await Promise.all([
      daemon.run(args),
      daemon.run([verb, 'c-1', ...rest]),
      daemon.run([verb, 'nope', ...rest, '--json']),
      daemon.run(nth % 2 ? ['--json', ...args] : [...args, '--json']),
    ])
    t.same(newest, { code: 0, out, err: NEWEST }, args.join(' '))
    t.same(named, { code: 0, out: out.replaceAll('c-2', 'c-1'), err: '' }, `${verb} of a named conversation`)
    const sent = daemon
      .calls()
      .filter(({ method, path }) => `${method} ${path}` === call)
      .map(each => JSON.stringify(each.body))
    t.ok(sent.includes(JSON.stringify(body)), `${call}: ${sent.join(' ')}`)
    t.same([none.code, none.out], [5, ''])
    t.match(JSON.parse(none.err), { reason: 'not-found', message: 'no such conversation' })
    t.type(JSON.parse(asJson.out), 'object')
    t.same(JSON.parse(asJson.err), { note: NEWEST.trim(), conversationId: 'c-2' }, 'notes are JSON as well')
  }
})

t.test('the queue is a table, and can be reordered', async t => {
  const daemon = await fakeDaemon(t, answer)
  t.equal(
    (await daemon.run(['queue', 'c-1'])).out,
    `MESSAGE  BY               SENT       WAITS BECAUSE                 WORDS
m-1      ada@example.org  1 min ago  the turn waits for an answer  first words
m-2      ada@example.org  1 min ago  brand-new                     second
paused; sandbox queue c-1 --start resumes
`,
  )
  const { out } = await daemon.run(['queue', 'c-1', '--first', 'm-2', '--start'])
  t.same(daemon.calls().at(-1)!.body, { messageIds: ['m-2', 'm-1'], start: true })
  t.match(out, /^started run r-2; sandbox attach c-1 follows it\nMESSAGE .*\nm-2 .*\nm-1 /)
  t.same(await daemon.run(['queue', 'c-1', '--first', 'm-9']), {
    code: 5,
    out: '',
    err: 'sandbox: --first: no message m-9 waits in c-1; sandbox queue c-1 lists them\n',
  })
})

t.test('a new order is computed again if another message arrived meanwhile', async t => {
  let late = 0
  const daemon = await fakeDaemon(t, (seen, response) =>
    seen.path.endsWith('/order') && late++ === 0
      ? json(response, 409, { reason: 'conflict', message: 'read it again' })
      : answer(seen, response),
  )
  t.equal((await daemon.run(['queue', 'c-1', '--first', 'm-2'])).code, 0)
  t.equal(late, 2)
})

t.test('the transcript numbers its messages, and cannot control the terminal', async t => {
  const daemon = await fakeDaemon(t, answer)
  t.equal(
    (await daemon.run(['transcript', 'c-1'])).out,
    `0  ada@example.org, 2 min ago
   write it
   attached: a.txt
1  agent
   ✓ Write b.txt
   Done.
2  ada@example.org, 1 min ago
   now\\u001b[2J undo
3  ada@example.org
   faster
4  sandbox
   It was stopped.
`,
  )
  t.equal(
    (await daemon.run(['transcript', 'c-1', '--limit', '1'])).out,
    `… 4 earlier messages; sandbox transcript c-1 --before 4 --limit 1 shows them
4  sandbox
   It was stopped.
`,
  )
  t.equal(JSON.parse((await daemon.run(['--json', 'transcript'])).out).total, 5)
})

t.test('a rewind asks first, and requires --yes without a terminal', async t => {
  const daemon = await fakeDaemon(t, answer)
  t.same(await daemon.run(['rewind', 'c-1']), {
    code: 2,
    out: '',
    err:
      'sandbox: going back to before message 2 "now\\u001b[2J undo" of c-1 drops 3 messages and the work that '
      + 'came with them: go back? expected --yes, because there is no terminal to ask at\n',
  })
  t.notOk(daemon.calls().some(({ path }) => path === '/agent/rewind'))
})

t.test('a rewind in the shared tree asks before the whole workspace goes back', async t => {
  const daemon = await fakeDaemon(t, (request, response) =>
    request.path === '/agents/c-1' ? { id: 'c-1', status: 'idle', updatedAt: 1 } : answer(request, response),
  )
  t.match(await daemon.run(['rewind', 'c-1']), {
    code: 2,
    err: /drops 3 messages .* them, and takes back what anybody has changed in the workspace since: go back\?/,
  })
})

t.test('a fork begins with the chosen messages, and with their files if they were saved', async t => {
  const daemon = await fakeDaemon(t, answer)
  const cases: readonly (readonly [args: readonly string[], forkOf: object, said: string])[] = [
    [
      ['fork', 'try B', '--detach'],
      { conversationId: 'c-2', keep: 5, files: 'now' },
      `${NEWEST}begins with 5 messages of c-2 and the files as they are now\n`,
    ],
    [
      ['fork', 'c-1', 'try B', '--before', '2', '--detach'],
      { conversationId: 'c-1', keep: 2, files: 'then' },
      'begins with 2 messages of c-1 and the files of then\n',
    ],
    [
      ['fork', 'c-1', 'try B', '--before', '0', '--files', 'now', '--as', 'b', '--detach'],
      { conversationId: 'c-1', keep: 0, files: 'now' },
      'begins with 0 messages of c-1 and the files as they are now\n',
    ],
  ]
  for (const [args, forkOf, said] of cases) {
    const { code, err } = await daemon.run(args)
    t.same([code, err], [0, said])
    t.match(daemon.calls().at(-1)!.body, {
      prompt: 'try B',
      isolated: true,
      forkOf,
      conversationId: args.includes('b') ? 'b' : /^c-[0-9a-f]{10}$/,
    })
  }
})

t.test('files, harness and model are sent with the message', async t => {
  const daemon = await fakeDaemon(t, answer)
  writeFileSync(join(daemon.workspace, 'deep', 'a b.txt'), '')
  writeFileSync(join(daemon.state, 'elsewhere.txt'), '')
  const run = (args: readonly string[]) =>
    daemon.run([...args, '--attach', 'a b.txt', '--attach', '../deep/a b.txt'], { cwd: join(daemon.workspace, 'deep') })
  t.equal((await run(['run', 'look', '--detach', '--harness', 'vendor-code', '--model', 'script-fast'])).code, 0)
  t.match(daemon.calls().at(-1)!.body, {
    prompt: 'look',
    attachments: exactly('deep/a b.txt', 'deep/a b.txt'),
    harness: 'vendor-code',
    model: 'script-fast',
  })
  t.equal((await run(['run', '--detach'])).code, 0, 'a message can have only files')
  t.equal((await run(['steer', 'c-1', 'look'])).code, 0)
  t.same(daemon.calls().at(-1)!.body, {
    conversationId: 'c-1',
    text: 'look',
    attachments: ['deep/a b.txt', 'deep/a b.txt'],
  })
  const refused = [
    [['--attach', 'none.txt'], /^sandbox: --attach: none\.txt cannot be read \(ENOENT\)\n$/],
    [['--attach', '../deep'], /^sandbox: --attach: expected a file, found a folder or a device at \.\.\/deep\n$/],
    [
      ['--attach', '../../elsewhere.txt'],
      new RegExp(
        '^sandbox: --attach: expected a file inside the workspace .+, '
          + String.raw`found \.\./\.\./elsewhere\.txt; copy it there first\n$`,
      ),
    ],
    [['--harness', 'own'], /^sandbox: --harness: expected native or vendor-code, found own\n$/],
  ] as const
  const before = daemon.calls().length
  for (const [args, err] of refused)
    t.match(await daemon.run(['run', 'x', ...args], { cwd: join(daemon.workspace, 'deep') }), { code: 2, out: '', err })
  t.equal(daemon.calls().length, before)
})

t.test('text without quotes is never treated as a conversation, and incompatible options are refused', async t => {
  const daemon = await fakeDaemon(t, answer)
  for (const [args, err] of [
    [
      ['steer', 'use', 'tabs', 'now'],
      'expected sandbox steer [CONVERSATION] "TEXT", found 3 words; put the text in quotes',
    ],
    [
      ['fork', 'c-1', 'x', '--files', 'then'],
      '--files then: expected --before N as well, the message whose files to take',
    ],
    [['queue', '--remove', 'm-1', '--start'], 'expected --remove alone, or --first and --start'],
    [
      ['archive', '--list', '--restore'],
      'expected one of --finished, --list and --restore, found --list and --restore',
    ],
    [['archive', '--restore'], 'expected a conversation to restore, found none; sandbox archive --list shows them'],
    [['rewind', '--before', 'x'], '--before: expected the number of a message, as transcript shows it, found x'],
    [['transcript', '--limit', '-1'], undefined],
  ] as const) {
    const ran = await daemon.run([...args])
    t.same([ran.code, ran.out], [2, ''], args.join(' '))
    if (err) t.equal(ran.err, `sandbox: ${err}\n`)
  }
  t.equal(daemon.calls().length, 0)
})

t.test('a refusal names options and commands, not fields and calls', async t => {
  const daemon = await fakeDaemon(t, ({ path }, response) =>
    path === '/agent/steer'
      ? json(response, 409, { reason: 'conflict', message: 'no turn is running: start one with POST /agent' })
      : json(response, 422, { reason: 'unprocessable', message: 'attachments: expected a file at a, found a folder' }),
  )
  t.equal(
    (await daemon.run(['steer', 'c-1', 'x'])).err,
    'sandbox: no turn is running: start one with sandbox run --conversation c-1 "…"\n',
  )
  t.equal((await daemon.run(['run', 'x'])).err, 'sandbox: --attach: expected a file at a, found a folder\n')
})
