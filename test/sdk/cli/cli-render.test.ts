import { PassThrough } from 'node:stream'
import t from 'tap'
import type { AttachData, Card, Frame, QuestionCard } from '../../../plugins/agent/contract.js'
import { answerCommand, askPerson, firstChoice, replyFrom } from '../../../sdk/cli/follow/cards.js'
import { compare, hunks } from '../../../sdk/cli/follow/patch.js'
import { SELF } from '../../../sdk/cli/terminal/own-name.js'
import { createRender } from '../../../sdk/cli/follow/render.js'
import { columns, jsonLine, oneLine, plain, quoted, short, stylesOf } from '../../../sdk/cli/terminal/text.js'
import { exactly } from '../../support/lists.js'

const drawn = (frames: readonly unknown[], colour = false): string => {
  const render = createRender({ colour })
  return frames.map((event, at) => render({ kind: 'frame', seq: at + 1, event } as AttachData)).join('')
}

const service: Card = {
  kind: 'service_offer',
  requestId: 'o',
  offer: {
    slug: 't',
    name: 'Translate',
    publisher: 'Words',
    description: 'It translates.',
    creditsPerRun: 3,
    request: 'one page',
  },
}
const capability: Card = {
  kind: 'capability_offer',
  requestId: 'o',
  offer: { card: 'forge', name: 'The\nforge', why: 'for the issue' },
}
const payment: Card = {
  kind: 'payment_offer',
  requestId: 'o',
  offer: {
    url: 'https://shop.example',
    payTo: 'shop',
    network: 'chain',
    asset: 'usd',
    assetName: 'dollars',
    amountUsd: '1.50',
    spentTodayUsd: '0',
    dailyCapUsd: '5',
  },
}

t.test('every frame has its lines', async t => {
  const table: readonly [Frame | Frame[], string][] = [
    [{ kind: 'session', sessionId: 's' }, ''],
    [{ kind: 'checkpoint', id: 'k' }, ''],
    [{ kind: 'commands', items: [] }, ''],
    [
      { kind: 'worktree', branch: 'agent/s', base: 'b'.repeat(40), network: 'shared' },
      'in a private copy on agent/s, from bbbbbbbbbbbb\nin the network of the machine\n',
    ],
    [
      { kind: 'worktree', branch: 'agent/a', base: 'b'.repeat(40), network: 'own', unenforced: true },
      'in a private copy on agent/a, from bbbbbbbbbbbb\nwarning: this machine cannot wall the turn into its copy\n',
    ],
    [
      {
        kind: 'preamble',
        notes: [
          { title: 'Rules', text: 'x' },
          { title: 'Place', text: 'y' },
        ],
      },
      'context for the agent: Rules, Place\n',
    ],
    [{ kind: 'init', model: 'm' }, 'model m\n'],
    [
      { kind: 'tier', tier: 'fast', model: 'small', routed: true, score: 0.1, rules: ['judge'] },
      'judged easy (difficulty 0.10): runs on small\n',
    ],
    [
      { kind: 'tier', tier: 'standard', model: 'big', routed: false, score: 0.75, rules: ['long', 'judge'] },
      'judged not easy (difficulty 0.75)\n',
    ],
    [
      { kind: 'switched', provider: 'script', harness: 'native', model: 'script-fast', kept: 'record' },
      'continues with model script-fast of script, from the record\n',
    ],
    [{ kind: 'resumed', reason: 'restart', attempt: 2 }, 'resumed after a restart (attempt 2)\n'],
    [{ kind: 'resumed', reason: 'outage', attempt: 3, resumedFrom: 'r-1' }, 'resumed after an outage (attempt 3)\n'],
    [{ kind: 'mode', mode: 'plan' }, 'permission mode plan\n'],
    [{ kind: 'steer', text: 'faster', sentAt: 1, by: 'ada@example.org' }, '> faster (ada@example.org)\n'],
    [{ kind: 'plan', requestId: 'p', text: 'one\ntwo' }, 'The agent asks whether to follow this plan:\n  one\n  two\n'],
    [
      { kind: 'permission', requestId: 'p', toolName: 'Shell', title: 'Run rm', reason: 'it deletes' },
      'The agent asks for permission: Run rm\n  it deletes\n',
    ],
    [
      { kind: 'rate_limit_info', status: 'allowed_warning', utilization: 85, resetsAt: 0 },
      'limit: nearly used up, 85 % used, renews 1970-01-01T00:00:00.000Z\n',
    ],
    [{ kind: 'rate_limit_info', status: 'rejected' }, 'limit: used up\n'],
    [
      {
        kind: 'account_usage',
        windows: [
          { kind: 'day', label: 'a day', utilization: 10, measuredAt: 1 },
          { kind: 'week', utilization: 20, measuredAt: 1 },
        ],
      },
      'limits: a day 10 %, week 20 %\n',
    ],
    [{ kind: 'account_usage', windows: [] }, 'limits: none\n'],
    [{ kind: 'fast_mode', state: 'cooldown', reason: 'too many' }, 'fast mode cooldown: too many\n'],
    [{ kind: 'provider_retry', attempt: 2, maxAttempts: 8, status: 529 }, 'retrying the provider (attempt 2 of 8)\n'],
    [
      { kind: 'provider_retry', attempt: 1, message: 'the model server failed (500)' },
      'retrying the provider (attempt 1): the model server failed (500)\n',
    ],
    [{ kind: 'context_usage', tokens: 900, contextWindow: 1000 }, 'context: 900 of 1000 tokens\n'],
    [
      { kind: 'compact', trigger: 'auto', preTokens: 900, postTokens: 100 },
      'the context was compacted: 900 tokens before, 100 after\n',
    ],
    [{ kind: 'compact', trigger: 'auto' }, 'the context was compacted\n'],
    [service, 'The agent asks to run the service Translate of Words for 3 credits\n  It translates.\n  one page\n'],
    [{ kind: 'service_event', requestId: 'o', event: { event: 'status', text: 'half' } }, 'service: half\n'],
    [
      { kind: 'service_event', requestId: 'o', event: { event: 'result', data: { a: 1 } } },
      'service result: {"a":1}\n',
    ],
    [
      { kind: 'service_receipt', requestId: 'o', outcome: 'ok', credits: 3, simulated: true },
      'service: ok, 3 credits (simulated)\n',
    ],
    [capability, 'The agent asks to connect The\\nforge\n  for the issue\n'],
    [{ kind: 'capability_outcome', requestId: 'o', outcome: 'connected', id: 'forge' }, 'connected: forge\n'],
    [{ kind: 'capability_outcome', requestId: 'o', outcome: 'unfinished' }, 'not connected\n'],
    [payment, 'The agent asks to pay $1.50 to shop\n  https://shop.example\n  dollars on chain; today $0 of $5\n'],
    [{ kind: 'payment_receipt', requestId: 'o', outcome: 'paid', amountUsd: '1.50' }, 'payment of $1.50: paid\n'],
    [
      { kind: 'resolved', requestId: 'o', reply: { kind: 'payment_offer', requestId: 'o', approve: true } },
      'answered: yes\n',
    ],
    [
      { kind: 'resolved', requestId: 'o', reply: { kind: 'capability_offer', requestId: 'o', connect: false } },
      'answered: no\n',
    ],
    [{ kind: 'resolved', requestId: 'p' }, 'not answered\n'],
    [
      {
        kind: 'resolved',
        requestId: 'p',
        reply: { kind: 'permission', requestId: 'p', decision: 'deny', feedback: 'no' },
      },
      'answered: deny, no\n',
    ],
    [{ kind: 'queue', messages: [], paused: true }, '0 messages wait, paused\n'],
    [{ kind: 'notice', level: 'info', text: 'a' }, 'note: a\n'],
    [{ kind: 'notice', level: 'warning', text: 'a' }, 'warning: a\n'],
    [{ kind: 'error', message: 'no model' }, 'error: no model\n'],
    [
      {
        kind: 'error',
        message: 'gone',
        code: 'provider-outage',
        autoResume: 'scheduled',
        outage: { retryAt: 1, attempt: 1, maxAttempts: 6 },
      },
      'error: gone\nthe turn resumes by itself (attempt 1 of 6)\n',
    ],
    [{ kind: 'landed', landed: true }, 'landed: the work is in the workspace, as uncommitted changes\n'],
    [{ kind: 'landed', landed: false, held: true }, 'not landed: held back\n'],
    [
      { kind: 'landed', landed: false, conflicts: [{ repo: 'root', paths: [], clean: 0 }] },
      'not landed:\nroot: its main checkout does not exist\n',
    ],
    [
      {
        kind: 'todos',
        items: [
          { content: 'a', status: 'in_progress', activeForm: 'doing a' },
          { content: 'b', status: 'pending' },
        ],
      },
      '[~] doing a\n[ ] b\n',
    ],
    [{ kind: 'done', reason: 'interrupted' }, 'ended: interrupted\n'],
    [
      [
        { kind: 'thinking', text: 'hm' },
        { kind: 'delta', text: 'a' },
        { kind: 'delta', text: 'b' },
        { kind: 'done', reason: 'completed' },
      ],
      'hm\nab\ndone\n',
    ],
    [
      {
        kind: 'tool_call',
        id: 't',
        name: 'Shell',
        category: 'execute',
        status: 'failed',
        target: 'npm\ntest',
        content: [
          { type: 'text', text: 'boom\n' },
          { type: 'image', path: 'a.png' },
        ],
      },
      '✗ Shell npm test\n  boom\n  picture a.png\n',
    ],
    [{ kind: 'tool_call_update', id: 'unknown', status: 'completed' }, ''],
    [
      [
        { kind: 'tool_call', id: 't', name: 'Edit', category: 'edit', status: 'pending', parentToolUseId: 'h' },
        { kind: 'tool_call_update', id: 't', status: 'in_progress', content: [{ type: 'text', text: 'replaced' }] },
        {
          kind: 'tool_call_update',
          id: 't',
          status: 'completed',
          content: [{ type: 'diff', path: 'a', oldText: '1\n2\n', newText: '1\n3\n' }],
        },
      ],
      '  ✓ Edit\n    a\n    - 2\n    + 3\n',
    ],
  ]
  for (const [frames, lines] of table) t.equal(drawn([frames].flat()), lines, JSON.stringify(frames).slice(0, 60))
})

const delegated = (id: string, description: string, more: object = {}): object[] => [
  { kind: 'tool_call', id, name: 'Delegate', category: 'other', status: 'pending', target: description, ...more },
  { kind: 'subagent', id, subagentKind: 'subagent', description, ...('background' in more && { background: true }) },
]
const ended = (id: string, text: string, status = 'completed') => ({
  kind: 'tool_call_update',
  id,
  status,
  content: [{ type: 'text', text }],
})

t.test('the lines of a subagent follow the call that started it, indented once per level', async t => {
  t.equal(
    drawn([
      ...delegated('c1', 'look around'),
      { kind: 'thinking', text: 'hm', parentToolUseId: 'c1' },
      {
        kind: 'tool_call',
        id: 'c1:c1',
        name: 'Shell',
        category: 'execute',
        status: 'pending',
        target: 'ls',
        parentToolUseId: 'c1',
      },
      { kind: 'subagent_update', id: 'c1', toolUses: 1, lastTool: 'Shell' },
      ended('c1:c1', 'a\nb'),
      ...delegated('c1:c2', 'look deeper', { parentToolUseId: 'c1' }),
      { kind: 'delta', text: 'found\nnothing', parentToolUseId: 'c1:c2' },
      { kind: 'text_end', parentToolUseId: 'c1:c2' },
      { kind: 'subagent_update', id: 'c1:c2', status: 'completed', summary: 'found\nnothing' },
      ended('c1:c2', 'found\nnothing'),
      { kind: 'delta', text: 'done', parentToolUseId: 'c1' },
      { kind: 'text_end', parentToolUseId: 'c1' },
      { kind: 'usage', subagent: 'c1', inputTokens: 1 },
      { kind: 'subagent_update', id: 'c1', tokens: 2 },
      { kind: 'usage', subagent: 'c1', inputTokens: 1 },
      { kind: 'subagent_update', id: 'c1', status: 'completed', summary: 'done' },
      ended('c1', 'done'),
      { kind: 'delta', text: 'so it is' },
      { kind: 'text_end' },
      { kind: 'usage', inputTokens: 1 },
      { kind: 'done', reason: 'completed' },
    ]),
    `▸ Delegate look around
  hm
  ✓ Shell ls
    a
    b
  ▸ Delegate look deeper
    found
    nothing
  ✓ Delegate look deeper
    found
    nothing
  done
  usage: 2 tokens in
✓ Delegate look around
  done
so it is
usage: 1 tokens in
done
`,
  )
})

t.test('the usage of all answers is printed once, before what ends the turn', async t => {
  t.equal(
    drawn([
      { kind: 'usage', inputTokens: 5, outputTokens: 6, costUsd: 0.01, durationMs: 1000 },
      { kind: 'delta', text: 'more' },
      { kind: 'text_end' },
      { kind: 'usage', inputTokens: 10, outputTokens: 1, costUsd: 0.02, durationMs: 500 },
      { kind: 'landed', landed: true, conflicts: [] },
      { kind: 'done', reason: 'completed' },
    ]).replace(/^landed.*$/m, 'landed'),
    'more\nusage: 15 tokens in, 7 out, $0.0300, 1.5 s\nlanded\ndone\n',
  )
})

t.test('a background subagent is named on its lines, and its end is printed', async t => {
  const begun = (id: string, description: string) => [
    ...delegated(id, description, { background: true }),
    ended(id, `subagent ${id} is at work`),
  ]
  t.equal(
    drawn([
      ...begun('c1', 'one'),
      ...begun('c2', 'two'),
      { kind: 'delta', text: 'I ' },
      { kind: 'delta', text: 'it', parentToolUseId: 'c1' },
      { kind: 'text_end', parentToolUseId: 'c2' },
      { kind: 'delta', text: '!', parentToolUseId: 'c1' },
      { kind: 'delta', text: 'go on' },
      { kind: 'subagent_update', id: 'c1', status: 'blocked' },
      { kind: 'subagent_update', id: 'c1', status: 'running' },
      { kind: 'subagent_update', id: 'c1', status: 'failed', error: 'it broke' },
      { kind: 'subagent_update', id: 'c2', status: 'killed' },
      { kind: 'subagent_update', id: 'c9', status: 'completed', summary: 'x\ny' },
    ]),
    `▸ Delegate one
✓ Delegate one
  subagent c1 is at work
▸ Delegate two
✓ Delegate two
  subagent c2 is at work
I 
  one: it!
go on
subagent one asks:
✗ subagent one: it broke
subagent two was stopped
✓ subagent c9: x y
`,
  )
})

const call = (id: string, status: string) => ({
  kind: 'tool_call',
  id,
  name: 'Shell',
  category: 'execute',
  status,
  target: 'x '.repeat(60),
})

t.test('a slow tool is printed before lines in between, and once when there are none', async t => {
  const over = (id: string) => ({ kind: 'tool_call_update', id, status: 'completed' })
  const head = short(`Shell ${'x '.repeat(60)}`, 200)
  t.equal(drawn([call('a', 'pending'), over('a')]), `✓ ${head}\n`)
  t.equal(
    drawn([call('a', 'pending'), call('b', 'pending'), over('a'), over('b')]),
    `▸ ${head}\n▸ ${head}\n✓ ${head}\n✓ ${head}\n`,
  )
  t.equal(drawn([call('a', 'pending'), { kind: 'done', reason: 'stopped' }]), `▸ ${head}\nended: stopped\n`)
})

t.test('on a terminal a tool is printed at once and overwritten by its outcome, in one row', async t => {
  const render = createRender({ columns: 40 })
  const at = (event: unknown) => render({ kind: 'frame', seq: 1, event } as AttachData)
  const head = short(`Shell ${'x '.repeat(60)}`, 35)
  t.equal(at(call('a', 'in_progress')), `▸ ${head}`)
  t.equal(at({ kind: 'tool_call_update', id: 'a', status: 'in_progress' }), '')
  t.equal(at({ kind: 'tool_call_update', id: 'a', status: 'failed' }), `\r\u001b[K✗ ${head}\n`)
  t.equal(at(call('b', 'in_progress')) + at({ kind: 'delta', text: 'hi' }), `▸ ${head}\nhi`)
})

t.test('a to-do list is printed by its own frame, and a private copy once', async t => {
  const copy = { kind: 'worktree', branch: 'agent/a', base: 'b' }
  t.equal(drawn([copy, copy]), 'in a private copy on agent/a, from b\n')
  t.equal(
    drawn([
      {
        kind: 'tool_call',
        id: 't',
        name: 'Todo',
        category: 'think',
        status: 'completed',
        content: [{ type: 'text', text: '[ ] a' }],
      },
    ]),
    '✓ Todo\n',
  )
})

t.test('unknown frames of a newer daemon are shown unchanged', async t => {
  t.equal(drawn([{ kind: 'hologram', depth: 3 }]), 'hologram: {"depth":3}\n')
  t.equal(
    drawn([
      {
        kind: 'tool_call',
        id: 't',
        name: 'X',
        category: 'zap',
        status: 'completed',
        content: [{ type: 'sound', hz: 440 }],
      },
    ]),
    '✓ X\n  {"type":"sound","hz":440}\n',
  )
  t.equal(createRender()({ kind: 'pulse', at: 1 } as unknown as AttachData), 'pulse: {"at":1}\n')
  t.equal(
    drawn([
      { kind: 'delta', text: 'a' },
      { kind: 'todos', entries: 3 },
    ]),
    'a\ntodos: {"entries":3}\n',
  )
  for (const frame of [{}, { kind: 'x'.repeat(9999) }, { kind: null }]) t.ok(drawn([frame]).length < 300)
})

t.test('long output is cut and counted', async t => {
  const text = Array.from({ length: 50 }, (_, i) => `line ${i}`).join('\n')
  const out = drawn([
    {
      kind: 'tool_call',
      id: 't',
      name: 'Shell',
      category: 'execute',
      status: 'completed',
      content: [{ type: 'text', text }],
    },
  ])
  t.equal(out.split('\n').length, 11)
  t.match(out, '… 42 more lines')
})

t.test('colour is on only if requested', async t => {
  t.notMatch(
    drawn([
      { kind: 'thinking', text: 'a' },
      { kind: 'done', reason: 'completed' },
    ]),
    '\u001b',
  )
  t.equal(drawn([{ kind: 'thinking', text: 'a' }], true), '\u001b[2ma\u001b[22m')
  t.equal(stylesOf(true).red('a\n\nb'), '\u001b[31ma\u001b[39m\n\n\u001b[31mb\u001b[39m')
})

t.test('control characters in text from elsewhere are escaped, words are quoted for a shell', async t => {
  t.equal(plain('a\u001b[2J\u0007\tb\r\nc\u202e'), 'a\\u001b[2J\\u0007\tb\nc\\u202e')
  t.equal(oneLine('a\nlanded: all'), 'a\\nlanded: all')
  t.notMatch(
    drawn([
      {
        kind: 'landed',
        landed: false,
        conflicts: [{ repo: 'root', clean: 0, paths: [{ path: 'a\nlanded: all', reason: 'workspace' }] }],
      },
    ]),
    /^landed/m,
  )
  t.equal(jsonLine({ a: '\u009b' }), '{"a":"\\u009b"}\n')
  t.same(JSON.parse(jsonLine({ a: '\u009b\u001b\u202e' })), { a: '\u009b\u001b\u202e' })
  t.same(['a-1', "it's", 'a b', '$(x)', ''].map(quoted), ['a-1', "'it'\\''s'", "'a b'", "'$(x)'", "''"])
  t.same(
    columns(
      [
        ['A', 'B'],
        ['long', ''],
      ],
      undefined,
    ),
    ['A     B', 'long'],
  )
})

const question: QuestionCard = {
  kind: 'question',
  requestId: 'q',
  questions: [
    {
      question: 'One?',
      header: 'One',
      multiSelect: false,
      options: [
        { label: 'Yes', description: '' },
        { label: 'No way', description: '' },
      ],
    },
    {
      question: 'Many?',
      header: 'Many',
      multiSelect: true,
      options: [
        { label: 'a', description: '' },
        { label: 'b', description: '' },
      ],
    },
  ],
}
const plan: Card = { kind: 'plan', requestId: 'p', text: '' }
const permission: Card = { kind: 'permission', requestId: 'x', toolName: 'Shell', alwaysLabel: 'always allow' }

t.test('the typed answer becomes the reply to a card', async t => {
  const replies: readonly [Card, string[], object][] = [
    [question, ['2', '1,b, other'], { answers: { 'One?': 'No way', 'Many?': ['a', 'b', 'other'] } }],
    [question, ['9'], { answers: { 'One?': '9' } }],
    [question, ['', 'a'], { answers: { 'Many?': ['a'] } }],
    [plan, ['yes'], { approve: true }],
    [plan, ['No', 'smaller', 'steps'], { approve: false, feedback: 'smaller steps' }],
    [permission, ['always'], { decision: 'always' }],
    [permission, ['y'], { decision: 'once' }],
    [permission, ['deny', 'not here'], { decision: 'deny', feedback: 'not here' }],
    [service, ['yes'], { approve: true }],
    [capability, ['Y'], { connect: true }],
    [payment, ['no'], { approve: false }],
  ]
  for (const [card, words, reply] of replies)
    t.same(replyFrom(card, words), { kind: card.kind, requestId: card.requestId, ...reply })
  for (const [card, words] of [
    [plan, ['maybe']],
    [plan, []],
    [permission, ['never']],
    [service, []],
    [payment, ['always']],
    [payment, ['yes', 'please']],
    [question, ['1', '2', '3']],
  ] as [Card, string[]][]) {
    t.throws(() => replyFrom(card, words), { code: 2 })
  }
  t.same(replyFrom(question, []), { kind: 'question', requestId: 'q' }, 'no answer at all skips every question')
})

t.test('a card names the command that answers it, and has a default answer', async t => {
  t.equal(answerCommand(question), `${SELF} answer q Yes a`)
  t.equal(answerCommand(plan), `${SELF} answer p yes`)
  t.match(firstChoice(question), { answers: { 'One?': 'Yes', 'Many?': exactly('a') } })
  t.match(firstChoice(permission), { decision: 'once' })
  t.match(firstChoice(payment), { approve: false }, 'nothing is bought by default')
  t.equal(answerCommand(service), `${SELF} answer o no`)
})

/** A terminal in which a person types. */
const typing = () => {
  const [input, out] = [new PassThrough(), new PassThrough()]
  const shown = () => String(out.read() ?? '')
  return { terminal: { in: input as unknown as NodeJS.ReadStream, out }, input, shown }
}
const never = new AbortController().signal

t.test('a person is asked until the answer is valid', async t => {
  const { terminal, input, shown } = typing()
  const reply = askPerson(terminal, plan, never)
  input.write('perhaps\nno, smaller\nno smaller steps\n')
  t.match(await reply, { approve: false, feedback: 'smaller steps' })
  t.match(shown(), /expected yes, or no and what to change, found perhaps\n/)
})

t.test('a person is asked each question of a card', async t => {
  const { terminal, input, shown } = typing()
  const reply = askPerson(terminal, question, never)
  input.write('2\na, b\n')
  t.match(await reply, { answers: { 'One?': 'No way', 'Many?': exactly('a', 'b') } })
  t.match(shown(), /One: number or words > .*Many: number or words > /)
})

t.test('asking ends when another client answers, and when the input ends', async t => {
  const stop = new AbortController()
  const first = askPerson(typing().terminal, question, stop.signal)
  stop.abort()
  t.equal(await first, undefined)
  const { terminal, input } = typing()
  const second = askPerson(terminal, permission, never)
  input.end()
  t.equal(await second, undefined)
})

t.test('a comparison rebuilds any two texts', async t => {
  let seed = 3
  const random = (below: number) => (seed = (seed * 16807) % 2147483647) % below
  const text = () => Array.from({ length: random(14) }, () => `${'abcd'[random(4)]}\n`).join('')
  for (let round = 0; round < 500; round++) {
    const [before, after] = [text(), text()]
    const lines = compare(before, after)
    const side = (left: string) =>
      lines
        .filter(({ mark }) => mark !== left)
        .map(line => `${line.text}\n`)
        .join('')
    if (side('+') !== before || side('-') !== after) t.fail(JSON.stringify([before, after]))
  }
  t.same(compare('', 'a\n'), [{ mark: '+', text: 'a' }])
  t.same(compare('a', 'a'), [{ mark: ' ', text: 'a' }])
})

t.test('hunks have three lines around a change, and line numbers', async t => {
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => `${i + 1}\n`)
  const changed = numbers(20)
  changed[2] = 'x\n'
  changed.splice(14, 1)
  t.same(hunks(compare(numbers(20).join(''), changed.join(''))), [
    '@@ -1,6 +1,6 @@',
    ' 1',
    ' 2',
    '-3',
    '+x',
    ' 4',
    ' 5',
    ' 6',
    '@@ -12,7 +12,6 @@',
    ' 12',
    ' 13',
    ' 14',
    '-15',
    ' 16',
    ' 17',
    ' 18',
  ])
  t.same(hunks(compare('', 'a\n')), ['@@ -0,0 +1,1 @@', '+a'])
})

t.test('two large texts with nothing in common are compared quickly', async t => {
  const text = (word: string) => Array.from({ length: 20_000 }, (_, i) => `${word} ${i}\n`).join('')
  const started = process.cpuUsage().user
  t.equal(compare(text('a'), text('b')).length, 40_000)
  t.ok(process.cpuUsage().user - started < 2_000_000)
})
