import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Permission, TurnIo, TurnRequest } from '../../../../plugins/agent/providers/adapter.js'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { scriptWith } from '../../../../plugins/agent/providers/script/adapter.js'
import { Peers } from '../../../../plugins/agent/providers/acp/peers.js'
import { acpOn } from '../../../../plugins/agent/providers/acp/turn.js'
import { exactly } from '../../../support/lists.js'
import { agent, failure, prose, toolServers, world } from './acp-support.js'

// Malicious programs -------------------------------------------------------------------------------------------------

const HOSTILE: [name: string, source: string, message: RegExp, patience?: object][] = [
  [
    'exits at once',
    'console.error("\\u001b[31mno key\\u001b[0m"); process.exit(7)',
    /^the program ended with exit code 7: no key$/,
  ],
  ['is killed', 'process.kill(process.pid, "SIGKILL")', /was ended by SIGKILL/],
  [
    'writes no JSON',
    'console.log("Welcome!"); setInterval(() => {}, 1000)',
    /not a message of the Agent Client Protocol: "Welcome!"/,
  ],
  ['writes a list', 'console.log("[1,2]"); setInterval(() => {}, 1000)', /not a message of the Agent/],
  ['writes null', 'console.log("null"); setInterval(() => {}, 1000)', /not a message of the Agent/],
  [
    'writes deep nesting',
    'console.log("[".repeat(4e6)); setInterval(() => {}, 1000)',
    /not a message of the Agent.*characters more/,
  ],
  [
    'writes bytes',
    'process.stdout.write(Buffer.alloc(1e6, 0xff)); console.log(); setInterval(() => {}, 1000)',
    /not a message of the Agent/,
  ],
  [
    'writes a line of 50 MiB',
    'process.stdout.write(Buffer.alloc(50 * 1024 * 1024, 97)); setInterval(() => {}, 1000)',
    /a line of more than 16777216 bytes/,
  ],
  [
    'sends an invalid answer',
    'console.log(\'{"jsonrpc":"2.0","id":3}\'); setInterval(() => {}, 1000)',
    /neither a request nor an answer/,
  ],
  [
    'never answers',
    'setInterval(() => {}, 1000)',
    /has not answered, and showed no sign of life for 0.4 s: it wrote nothing and used no/,
    { quietMs: 400 },
  ],
  [
    'closes its output',
    'import { closeSync } from "node:fs"; closeSync(1); setInterval(() => {}, 1000)',
    /closed its output/,
  ],
  ['speaks a later version', agent('').replace('protocolVersion: 1', 'protocolVersion: 9'), /speaks version 9.* not 1/],
  [
    'speaks the draft',
    agent('').replace('protocolVersion: 1', 'protocolVersion: 0'),
    /speaks version 0.* not 1: install/,
  ],
  [
    'has a text for a version',
    agent('').replace('protocolVersion: 1', "protocolVersion: '0.2.0'"),
    /speaks version 0.2.0 .* not 1/,
  ],
  [
    'opens no session',
    agent('').replace("method === 'session/new'", 'false'),
    /has not opened a session, and showed no sign of life for 1 s/,
    { quietMs: 1000 },
  ],
  [
    'opens a session of another shape',
    agent('').replace("result: { sessionId: 's-1' }", "result: { sessionId: '' }"),
    /without a name/,
  ],
  [
    'dies in the middle',
    agent(
      'say("so far"); process.exitCode = 3; console.error("x".repeat(5000) + "the end"); setTimeout(() => '
        + 'process.exit(), 50); await new Promise(() => {})',
    ),
    /exit code 3: x{1992}the end$/,
  ],
  ['falls silent', agent('await new Promise(() => {})'), /was silent for 0.5 s/, { silenceMs: 500 }],
  [
    'asks too much at once',
    agent(
      'for (let n = 0; n < 300; n++) void ask("session/request_permission", { toolCall: { toolCallId: "a" }, '
        + 'options: [] }); await new Promise(() => {})',
    ),
    /more than 256 requests at once/,
  ],
  [
    'asks twice under one id',
    agent(
      'for (let n = 0; n < 2; n++) send({ id: 5, method: "session/request_permission", params: { sessionId: '
        + '"s-1", toolCall: { toolCallId: "a" }, options: [] } }); await new Promise(() => {})',
    ),
    /two requests with the same id/,
  ],
  [
    'announces calls without end',
    agent(
      'for (let n = 0; n < 10002; n++) update({ sessionUpdate: "tool_call", toolCallId: "t" + n, title: "x" }); '
        + 'await new Promise(() => {})',
    ),
    /more than 10000 calls/,
  ],
]
for (const [name, source, message, patience] of HOSTILE) {
  t.test(`a program that ${name} ends its turn as crashed, and no process is left`, async t => {
    const permit = () => new Promise<Permission>(resolve => setTimeout(resolve, 5000, { allow: false }).unref())
    const { turn, peers } = world(t, source, { permit, ...(patience && { patience }) })
    const frames = await turn()
    t.match(failure(frames), { code: 'harness-crashed', message })
    t.equal(peers.size, 0)
  })
}

t.test('a program that ignores a stop is ended, and one that follows it keeps running', async t => {
  for (const [source, left] of [
    ['await new Promise(() => {})', 0],
    ['await new Promise(resolve => (cancelled = resolve))', 1],
  ] as const) {
    const program = agent(`say("up"); ${source}`).replace(
      'const message = JSON.parse(line)',
      "$&\n  if (message.method === 'session/cancel') cancelled()",
    )
    const { turn, stop, peers } = world(t, `let cancelled = () => {}\n${program}`)
    const frames = await turn({}, ({ kind }) => kind === 'delta' && stop.abort())
    t.notOk(failure(frames), 'a stop is not a failure')
    t.equal(peers.size, left)
  }
})

t.test('a flood of text is read no faster than it is stored', async t => {
  const { turn } = world(
    t,
    agent(`
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'x'.repeat(60000) } }
    const message = { jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's-1', update } }
    for (let n = 0; n < 3000; n++)
      if (!process.stdout.write(JSON.stringify(message) + '\\n'))
        await new Promise(resolve => process.stdout.once('drain', resolve))`),
  )
  const before = process.memoryUsage().rss
  let most = 0
  const frames = await (async () => {
    const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20)
    try {
      return (await turn()).length
    } finally {
      clearInterval(timer)
    }
  })()
  t.ok(frames > 3000)
  t.ok(most - before < 1024 * 1024 * 1024, `${most - before} bytes more`)
})

t.test('messages outside the session and invalid ones are ignored', async t => {
  const { turn } = world(
    t,
    agent(`
    const foreign = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'foreign' } }
    send({ method: 'session/update', params: { sessionId: 'other', update: foreign } })
    send({ id: 77, result: {} })
    send({ method: 'nonsense/at_all', params: [] })
    for (const params of [undefined, null, 3, [], { sessionId: 's-1' }]) send({ method: 'session/update', params })
    update(null)
    update({ sessionUpdate: 'tool_call' })
    update({ sessionUpdate: 'plan', entries: [null, 3, {}] })
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 5 } })
    const unknown = await ask('sandbox/secrets', {})
    const invalid = await ask('fs/read_text_file', { path: 7 })
    say(unknown.error.code + ' ' + invalid.error.code)`),
  )
  const frames = await turn()
  t.equal(prose(frames), '-32601 -32602|')
  t.equal(failure(frames), undefined)
})

// What a program may do ----------------------------------------------------------------------------------------------

t.test('files are read and written inside the tree only, and every call passes the gate and is shown', async t => {
  const { turn, root, gated } = world(
    t,
    agent(`
    const root = process.env.PWD
    const write = (path, content) => ask('fs/write_text_file', { path, content })
    const read = params => ask('fs/read_text_file', params)
    const paths = ['/deep/a.txt', '/../outside.txt', '/.git/config', '/link/x'].map(path => root + path)
    paths.splice(2, 0, '/etc/passwd', 'a.txt')
    const found = []
    for (const path of paths) found.push((await write(path, 'one\\ntwo\\nthree\\n')).error?.code ?? 'ok')
    found.push((await read({ path: root + '/deep/a.txt', line: 2, limit: 1 })).result.content)
    for (const path of [root + '/none', '/etc/passwd']) found.push((await read({ path })).error.code)
    say(found.join(' '))`).replaceAll('process.env.PWD', 'process.cwd()'),
  )
  mkdirSync(join(root, '..', 'elsewhere'))
  await import('node:fs/promises').then(({ symlink }) => symlink('../elsewhere', join(root, 'link')))
  const frames = await turn()
  t.equal(prose(frames), 'ok -32602 -32602 -32602 -32603 -32002 two -32002 -32602|')
  t.equal(readFileSync(join(root, 'deep/a.txt'), 'utf8'), 'one\ntwo\nthree\n')
  t.notOk(existsSync(join(root, '..', 'outside.txt')) || existsSync(join(root, '..', 'elsewhere', 'x')))
  t.match(gated[0], { name: 'Write', category: 'edit', path: 'deep/a.txt' })
  t.match(
    frames.find(frame => frame.kind === 'tool_call'),
    { name: 'Write', category: 'edit', target: 'deep/a.txt' },
  )
  t.match(
    frames.find(frame => frame.kind === 'tool_call_update' && frame.status === 'completed'),
    { content: exactly({ type: 'diff', path: 'deep/a.txt', newText: 'one\ntwo\nthree\n' }) },
  )
})

t.test('a permission covers only the call it was requested for, even if the program changes it afterwards', async t => {
  const { turn, root, gated } = world(
    t,
    agent(`
    const root = process.cwd()
    const write = (name, content) => ask('fs/write_text_file', { path: root + '/' + name, content })
    const said = ({ error }) => error ? 'no' : 'ok'
    const locations = [{ path: root + '/a.txt' }]
    const toolCall = { toolCallId: 't1', title: 'Edit a.txt', kind: 'edit', status: 'pending', locations }
    update({ sessionUpdate: 'tool_call', ...toolCall })
    const options = [
      { optionId: 'y', name: 'Yes', kind: 'allow_once' },
      { optionId: 'n', name: 'No', kind: 'reject_once' },
    ]
    const answer = await ask('session/request_permission', { toolCall, options })
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', locations: [{ path: root + '/b.txt' }] })
    const a = await write('a.txt', 'a')
    const b = await write('b.txt', 'b')
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'completed' })
    const after = await write('a.txt', 'late')
    const run = { toolCallId: 't2', title: 'ls', kind: 'execute', rawInput: { command: 'echo shown' } }
    const granted = await ask('session/request_permission', { toolCall: run, options })
    const commands = []
    for (const command of ['echo other > made', 'echo shown', 'echo shown'])
      commands.push(said(await ask('terminal/create', { command })))
    const chosen = [answer, granted].map(({ result }) => result.outcome.optionId)
    say([chosen[0], said(a), said(b), said(after), chosen[1], ...commands].join(' '))`),
    { permit: async call => ({ allow: call.id === 't1' || call.id === 't2' }) },
  )
  const frames = await turn()
  t.equal(prose(frames), 'y ok no no y no ok no|')
  t.same(
    gated.map(({ id }) => id).filter(id => id.startsWith('t')),
    ['t1', 't2'],
  )
  t.match(
    gated.find(({ id }) => id === 't2'),
    { name: 'Shell', command: 'echo shown' },
    'a person sees the command, not the title',
  )
  t.notOk(existsSync(join(root, 'made')) || existsSync(join(root, 'b.txt')))
})

t.test("the gate's answer picks the protocol's option", async t => {
  const options =
    `[{ optionId: 'ao', name: '', kind: 'allow_once' }, { optionId: 'aa', name: '', kind: `
    + `'allow_always' }, { optionId: 'ro', name: '', kind: 'reject_once' }]`
  const source = agent(
    `say(JSON.stringify((await ask('session/request_permission', { toolCall: { toolCallId: 'p', title: 'Fetch a `
      + `page', kind: 'fetch' }, options: ${options} })).result.outcome))`,
  )
  for (const [permission, option] of [
    [{ allow: true }, 'ao'],
    [{ allow: true, always: true }, 'aa'],
    [{ allow: false }, 'ro'],
  ] as const) {
    const { turn, gated } = world(t, source, { permit: async () => permission })
    t.match(prose(await turn()), `"optionId":"${option}"`)
    t.match(gated, exactly({ name: 'Fetch', category: 'fetch', title: 'Fetch a page' }))
  }
})

t.test('commands run in the tree with their arguments, can be ended, and end with the turn', async t => {
  const { turn, root } = world(
    t,
    agent(`
    const told = []
    const create = async params => (await ask('terminal/create', params)).result?.terminalId
    const wait = async terminalId => (await ask('terminal/wait_for_exit', { terminalId })).result
    const one = await create({ command: 'echo', args: ['$HOME', 'a b'], env: [{ name: 'X', value: 'y' }] })
    told.push((await wait(one)).exitCode, (await ask('terminal/output', { terminalId: one })).result.output.trim())
    const two = await create({ command: 'echo $X; exit 4', env: [{ name: 'X', value: 'y' }] })
    told.push((await wait(two)).exitCode, (await ask('terminal/output', { terminalId: two })).result.output.trim())
    const long = await create({ command: 'sleep 600' })
    await ask('terminal/kill', { terminalId: long })
    told.push((await wait(long)).signal)
    told.push((await ask('terminal/release', { terminalId: long })).result ? 'released' : 'kept')
    told.push((await ask('terminal/output', { terminalId: long })).error.code)
    const much = await create({ command: 'head -c 3000000 /dev/zero | tr "\\\\0" x', outputByteLimit: 1000 })
    await wait(much)
    const { output, truncated } = (await ask('terminal/output', { terminalId: much })).result
    told.push(output.length, truncated, (await ask('terminal/create', { command: 'true', cwd: '/' })).error.code)
    await create({ command: 'echo $$ > left.pid; sleep 600' })
    while (!(await import('node:fs')).existsSync('left.pid')) await new Promise(resolve => setTimeout(resolve, 20))
    say(told.join(','))`),
  )
  const frames = await turn()
  t.equal(prose(frames), '0,$HOME a b,4,y,SIGTERM,released,-32002,1000,true,-32602|')
  const pid = Number(readFileSync(join(root, 'left.pid'), 'utf8'))
  t.throws(() => process.kill(pid, 0), 'the running command has ended')
  t.match(
    frames.filter(frame => frame.kind === 'tool_call').map(frame => frame.kind === 'tool_call' && frame.target),
    exactly('echo $HOME a b', 'echo $X; exit 4', 'sleep 600', /^head -c 3000000/, 'echo $$ > left.pid; sleep 600'),
  )
})

t.test('too many commands at once are refused', async t => {
  const { turn } = world(
    t,
    agent(`
    let [ok, no] = [0, 0]
    for (let n = 0; n < 34; n++) (await ask('terminal/create', { command: 'sleep 600' })).error ? no++ : ok++
    say(ok + ' ' + no)`),
  )
  t.equal(prose(await turn()), '32 2|')
})

t.test('updates of a program become frames', async t => {
  const { turn } = world(
    t,
    agent(`
    const root = process.cwd()
    update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'hm' } })
    update({ sessionUpdate: 'agent_message_chunk', messageId: 'm1', content: { type: 'text', text: 'one ' } })
    update({ sessionUpdate: 'agent_message_chunk', messageId: 'm1', content: { type: 'text', text: 'block' } })
    update({ sessionUpdate: 'agent_message_chunk', messageId: 'm2', content: { type: 'text', text: 'next' } })
    update({
      sessionUpdate: 'tool_call', toolCallId: 'x', title: 'Look around', kind: 'search', status: 'in_progress',
      locations: [{ path: root + '/src/a.ts', line: 3 }, { path: '/etc/passwd' }],
    })
    const link = { type: 'resource_link', name: 'p', uri: 'file://' + root + '/p.png', mimeType: 'image/png' }
    update({
      sessionUpdate: 'tool_call_update', toolCallId: 'x', status: 'completed',
      content: [
        { type: 'content', content: { type: 'text', text: 'found' } },
        { type: 'content', content: link },
        { type: 'diff', path: root + '/b', oldText: null, newText: 'n' },
      ],
    })
    update({ sessionUpdate: 'tool_call_update', toolCallId: 'x', status: 'pending' })
    update({ sessionUpdate: 'tool_call_update', toolCallId: 'late', title: 'Never announced', kind: 'wild' })
    update({ sessionUpdate: 'plan', entries: [{ content: 'do', priority: 'high', status: 'in_progress' }] })
    const availableCommands = [{ name: '/test', description: 'Runs tests', input: { hint: 'which' } }]
    update({ sessionUpdate: 'available_commands_update', availableCommands })
    update({ sessionUpdate: 'usage_update', used: 5, size: 100, cost: { amount: 0.25, currency: 'USD' } })`),
  )
  const frames = (await turn()).filter(({ kind }) => kind !== 'session' && kind !== 'init')
  t.match(
    frames,
    exactly(
      { kind: 'thinking', text: 'hm' },
      { kind: 'delta', text: 'one ' },
      { kind: 'delta', text: 'block' },
      { kind: 'text_end' },
      { kind: 'delta', text: 'next' },
      { kind: 'text_end' },
      {
        kind: 'tool_call',
        id: 'x',
        name: 'Search',
        category: 'search',
        status: 'in_progress',
        target: 'Look around',
        locations: exactly({ path: 'src/a.ts', line: 3 }),
      },
      {
        kind: 'tool_call_update',
        id: 'x',
        status: 'completed',
        content: exactly(
          { type: 'text', text: 'found' },
          { type: 'image', path: 'p.png' },
          { type: 'diff', path: 'b', newText: 'n' },
        ),
      },
      { kind: 'tool_call', id: 'late', name: 'Other', category: 'other', status: 'pending', target: 'Never announced' },
      { kind: 'todos', items: exactly({ content: 'do', status: 'in_progress' }) },
      { kind: 'commands', items: exactly({ name: 'test', description: 'Runs tests', hint: 'which' }) },
      { kind: 'context_usage', tokens: 5, contextWindow: 100 },
      { kind: 'usage', costUsd: 0.25, numTurns: 0 },
      { kind: 'usage', numTurns: 1 },
    ),
  )
})

t.test("a name that the program gives is the conversation's, unless it is what the daemon told its model", async t => {
  const { turn, titles } = world(
    t,
    agent(`
    const name = title => update({ sessionUpdate: 'session_info_update', title })
    name('NOTE of the d…')
    name(words[0].text.slice(0, 40))
    for (const title of [null, 7, '  ', 'x'.repeat(400)]) name(title)
    name('Count the files')`),
  )
  await turn({ prompt: 'NOTE of the daemon\n\ngo' })
  t.same(titles, ['x'.repeat(300), 'Count the files'])
})

t.test('a session that takes long to open is announced, and an embedded file is shown', async t => {
  const waits = agent(`
    const resource = { uri: 'file:///a.txt', mimeType: 'text/plain', text: 'the file' }
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'resource', resource } })
    update({ sessionUpdate: 'tool_call', toolCallId: 'r', title: 'Read', kind: 'read' })
    update({
      sessionUpdate: 'tool_call_update', toolCallId: 'r', status: 'completed',
      content: [{ type: 'content', content: { type: 'resource', resource } }],
    })`).replace(
    "send({ id, result: { sessionId: 's-1' } })",
    "setTimeout(send, 300, { id, result: { sessionId: 's-1' } })",
  )
  const { turn } = world(t, waits, { patience: { slowMs: 50 } })
  const frames = await turn()
  t.match(
    frames.findLast(({ kind }) => kind === 'notice'),
    { text: /^the program is getting ready; it has not opened a session after/ },
  )
  t.equal(prose(frames), 'the file|')
  t.match(
    frames.find(frame => frame.kind === 'tool_call_update'),
    { content: exactly({ type: 'text', text: 'the file' }) },
  )
})

t.test('every stop reason has its end of the turn', async t => {
  const cases: [result: string, failure: object | undefined][] = [
    ['{ result: { stopReason: "end_turn" } }', undefined],
    ['{ result: { stopReason: "refusal" } }', { message: /refused to continue/ }],
    ['{ result: { stopReason: "max_tokens" } }', { message: /limit of tokens/ }],
    ['{ result: { stopReason: "max_turn_requests" } }', { message: /limit of requests/ }],
    ['{ result: { stopReason: "cancelled" } }', { message: /by itself/ }],
    ['{ error: { code: -32000, message: "sign in first" } }', { code: 'reauth', message: 'sign in first' }],
    ['{ error: { code: -32603, message: "the model is gone" } }', { code: undefined, message: 'the model is gone' }],
    ['{ error: { code: -32603, message: "x", data: { code: "rate_limit" } } }', { code: undefined }],
  ]
  for (const [result, expected] of cases) {
    const { turn } = world(t, agent(`return ${result}`))
    t.match(failure(await turn()) ?? 'none', expected ?? 'none', result)
  }
})

t.test('a program gets the notes, the message, the attachments and the earlier messages', async t => {
  const tell = agent('say(JSON.stringify(words))', '{ promptCapabilities: { image: true } }')
  const { turn, root } = world(t, tell)
  writeFileSync(join(root, 'p.png'), 'PNG')
  const attachments = [
    { path: 'p.png', absolute: join(root, 'p.png'), mime: 'image/png', bytes: 3 },
    { path: 'a b.txt', absolute: join(root, 'a b.txt'), mime: 'text/plain', bytes: 9 },
  ]
  const history = [
    { index: 0, role: 'user' as const, text: 'first words' },
    { index: 1, role: 'assistant' as const, text: 'first answer' },
  ]
  const blocks = JSON.parse(prose(await turn({ prompt: 'NOTE\n\ngo', attachments, history })).slice(0, -1)) as {
    [name: string]: unknown
  }[]
  t.match(
    blocks,
    exactly(
      { text: /private place/, annotations: { audience: exactly('assistant') } },
      { text: /Person: first words\n\nYou: first answer/ },
      { text: 'NOTE', annotations: { audience: exactly('assistant') } },
      { type: 'text', text: 'go', annotations: undefined },
      { type: 'image', mimeType: 'image/png', data: 'UE5H' },
      { type: 'resource_link', name: 'a b.txt', uri: /^file:.*\/a%20b\.txt$/, size: 9 },
    ),
  )
  const again = JSON.parse(prose(await turn({ sessionId: 's-1', history })).slice(0, -1)) as {
    [name: string]: unknown
  }[]
  t.match(again, exactly({ text: 'go' }), 'a continued session gets only the message')
  t.equal(again.length, 1)
})

t.test('a session is loaded if the program supports it, otherwise a new one is created', async t => {
  const loads = world(t, agent('say(String(words.length))', '{ loadSession: true }'))
  t.match(
    (await loads.turn({ sessionId: 'kept' })).find(({ kind }) => kind === 'session'),
    { sessionId: 'kept' },
  )
  const cannot = world(t, agent('say(String(words.length))'))
  t.match(
    (await cannot.turn({ sessionId: 'kept' })).find(({ kind }) => kind === 'session'),
    { sessionId: 's-1' },
  )
})

t.test('a session that the program does not load is said, with its reason', async t => {
  const refuses = agent('say(String(words.length))', '{ loadSession: true }').replace(
    "else if (method === 'session/new'",
    "else if (method === 'session/load') send({ id, error: { code: -32603, message: 'Internal error', data: "
      + "{ details: 'it is gone' } } })\nelse if (method === 'session/new'",
  )
  const frames = await world(t, refuses).turn({ sessionId: 'kept' })
  t.match(
    frames.find(({ kind }) => kind === 'notice'),
    { text: 'the program could not load its session, so it gets the record: it is gone' },
  )
  t.match(
    frames.find(({ kind }) => kind === 'session'),
    { sessionId: 's-1' },
  )
})

t.test('an unattended turn asks for no plan', async t => {
  const { turn, raised } = world(t, agent('say("the plan")'))
  t.equal(prose(await turn({ permissionMode: 'plan', attended: false })), 'the plan|')
  t.same(raised, [])
})

t.test('a few programs wait for the next turn, and of more the one that has waited longest ends', async t => {
  const { turn, peers } = world(t, agent('say(String(process.pid))'), { waiting: { keptMs: 600_000, most: 2 } })
  const pids = new Map<string, number>()
  const run = async (conversationId: string, sessionId?: string): Promise<void> => {
    const frames = await turn({ conversationId, ...(sessionId !== undefined && { sessionId }) })
    pids.set(conversationId, Number(prose(frames).replace('|', '')))
  }
  const waiting = () => peers.processes.map(({ conversationId }) => conversationId).sort()
  const isOver = async (pid: number): Promise<void> => {
    for (const end = Date.now() + 20_000; existsSync(`/proc/${pid}`);)
      if (Date.now() > end) throw new Error(`${pid} still runs`)
      else await new Promise(resolve => setTimeout(resolve, 10))
  }
  await run('a')
  await run('b')
  const first = pids.get('a')!
  await run('a', 's-1')
  t.equal(pids.get('a'), first, 'a waiting program is used again')
  await run('c')
  t.same(waiting(), ['a', 'c'], 'b has waited longest')
  await isOver(pids.get('b')!)
  await Promise.all([run('d'), run('e')])
  t.same(waiting(), ['d', 'e'])
  await Promise.all([first, pids.get('c')!].map(isOver))
})

t.test('the error for a missing program says how to install it', async t => {
  const missing = {
    label: 'the other agent',
    command: ['no-such-agent-program'] as const,
    install: 'npm install -g it',
  }
  const peers = new Peers()
  const provider = scriptWith(missing, acpOn(peers, toolServers()))
  await t.rejects(provider.preflight!('vendor-code'), {
    reason: 'missing-program',
    message: /expected the program no-such-agent-program .*npm install -g it/,
  })
  await t.resolves(provider.preflight!('native'))
  const frames: Frame[] = []
  for await (const frame of acpOn(peers, toolServers())('script', missing, {} as TurnRequest, {} as TurnIo))
    frames.push(frame)
  t.match(frames, exactly({ kind: 'error', code: 'harness-missing', message: /no-such-agent-program/ }))
})
