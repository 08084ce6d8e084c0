import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { callTool, cuttingProxy, httpServer, realServer, resultOf, TURN } from './servers-support.js'
import { add, capabilitiesDaemon, inner, program } from './support.js'

const everything = (config: object = {}) =>
  ({
    id: 'every',
    kind: 'mcp',
    config: { transport: 'stdio', command: 'node', args: `${realServer('everything')}\nstdio`, ...config },
  }) as const

t.test('a program is connected, its tools are offered and called, and its process stays', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const frames = await add(daemon, everything())
  t.match(
    frames.map(frame => (frame.kind === 'log' ? frame.message : frame.kind)).join('\n'),
    /it has \d+ tools, of which \d+ are/,
  )
  t.match(frames.at(-1), { kind: 'result', status: { state: 'active' } })

  const { tools, problems } = await inner(daemon, 'mcp.tools', TURN)
  t.same(problems, [])
  t.match(
    tools.find(({ name }) => name === 'echo'),
    {
      server: 'every',
      agentName: 'every__echo',
      input: { type: 'object', properties: { message: { type: 'string' } } },
      approve: Boolean,
    },
  )
  t.match(await resultOf(daemon, { server: 'every', name: 'echo', input: { message: 'hello' } }), {
    ok: true,
    text: /hello/,
  })
  t.match(await resultOf(daemon, { server: 'every', name: 'get-tiny-image', input: {} }), {
    ok: true,
    pictures: exactly({ mime: 'image/png' }),
  })
  t.match(await resultOf(daemon, { server: 'every', name: 'get-structured-content', input: { location: 'Chicago' } }), {
    ok: true,
    structured: { temperature: Number },
  })
  t.match(await resultOf(daemon, { server: 'every', name: 'get-sum', input: { a: 'x' } }), { ok: false })
  const { capabilities } = await daemon.client.call('GET /capabilities')
  t.match(capabilities, exactly({ id: 'every', kind: 'mcp', status: { state: 'active' }, tools: tools.length }))
})

t.test('a call reports its progress, and can be cancelled', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  await add(daemon, everything())
  const long = { server: 'every', name: 'trigger-long-running-operation' }
  const events = await callTool(daemon, { ...long, input: { duration: 1, steps: 3 } })
  t.ok(events.filter(({ kind }) => kind === 'progress').length >= 2)
  t.match(events.at(-1), { kind: 'result', ok: true })
  const stop = new AbortController()
  const began = Date.now()
  const cut = await callTool(daemon, { ...long, input: { duration: 60, steps: 60 } }, () => stop.abort(), stop.signal)
  t.ok(Date.now() - began < 20_000)
  t.match(cut.at(-1), { kind: 'result', ok: false, text: /was cancelled/ })
})

t.test('a question of the server is asked and answered', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  await add(daemon, everything())
  const asked = { server: 'every', name: 'trigger-elicitation-request', input: {} }
  const events = await callTool(daemon, asked, event => {
    if (event.kind === 'elicit')
      void inner(daemon, 'mcp.answer', { id: event.id, action: 'accept', content: { name: 'Ada', check: true } })
  })
  t.match(
    events,
    exactly({ kind: 'elicit', message: String, schema: { properties: {} } }, { kind: 'result', ok: true, text: /Ada/ }),
  )
  const declined = await callTool(daemon, asked, event => {
    if (event.kind === 'elicit') void inner(daemon, 'mcp.answer', { id: event.id, action: 'decline' })
  })
  t.match(declined.at(-1), { kind: 'result', text: /decline/i })
  t.match(await refusalOf(() => inner(daemon, 'mcp.answer', { id: 'x', action: 'cancel' })), { status: 404 })
  const stop = new AbortController()
  let question = ''
  const cut = await callTool(
    daemon,
    asked,
    event => {
      if (event.kind === 'elicit') question = event.id
      stop.abort()
    },
    stop.signal,
  )
  t.match(cut.at(-1), { kind: 'result', ok: false, text: /was cancelled/ })
  t.match(await refusalOf(() => inner(daemon, 'mcp.answer', { id: question, action: 'cancel' })), { status: 404 })
})

t.test('a killed server fails its call, the next starts it again, and three crashes pause it', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  await add(daemon, everything())
  const pidNow = async () => (await daemon.client.call('GET /capabilities/{id}/tools', { id: 'every' })).info?.pid
  const [pids, killed] = [new Set<number>(), new Set<number>()]
  const echo = { server: 'every', name: 'echo', input: { message: 'still here' } }
  for (let crash = 0; crash < 3; crash++) {
    t.match(await resultOf(daemon, echo), { ok: true })
    const pid = (await pidNow())!
    pids.add(pid)
    const broken = await callTool(
      daemon,
      { server: 'every', name: 'trigger-long-running-operation', input: { duration: 60, steps: 60 } },
      () => {
        if (!killed.has(pid)) process.kill(pid, 'SIGKILL')
        killed.add(pid)
      },
    )
    t.match(broken.at(-1), { kind: 'result', ok: false, text: /the server every was ended by SIGKILL|ended/ })
  }
  t.equal(pids.size, 3)
  t.match(await resultOf(daemon, echo), { ok: false, text: /is not started again/ })
  t.match(
    (await daemon.client.call('GET /capabilities')).capabilities,
    exactly({ status: { state: 'error', code: 'crashed' } }),
  )
  t.match(await inner(daemon, 'mcp.tools', { ...TURN, run: 'r-2' }), {
    tools: exactly(),
    problems: exactly(/not started again/),
  })
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'every' }), { state: 'active' })
  t.match(await resultOf(daemon, echo), { ok: true })
})

t.test('a tool that is denied is not offered, and the server sees no call of it', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  await add(daemon, {
    id: 'files',
    kind: 'mcp',
    config: {
      transport: 'stdio',
      command: `node ${realServer('filesystem')} ${daemon.workspace}`,
      denyTools: 'write_*\nmove_file',
    },
  })
  const { tools } = await inner(daemon, 'mcp.tools', TURN)
  t.ok(tools.some(({ name }) => name === 'read_text_file'))
  t.notOk(tools.some(({ name }) => name === 'write_file'))
  const path = join(daemon.workspace, 'made')
  t.match(await resultOf(daemon, { server: 'files', name: 'write_file', input: { path, content: 'x' } }), {
    ok: false,
    text: /no such tool/,
  })
  t.throws(() => readFileSync(path))
  writeFileSync(path, 'from outside')
  t.match(await resultOf(daemon, { server: 'files', name: 'read_text_file', input: { path } }), {
    ok: true,
    text: 'from outside',
  })
  const shown = await daemon.client.call('GET /capabilities/{id}/tools', { id: 'files' })
  t.match(
    shown.tools.find(({ name }) => name === 'write_file'),
    { offered: false, withheld: /denyTools/, approve: true },
  )
  t.match(
    shown.tools.find(({ name }) => name === 'read_text_file'),
    { offered: true, readOnly: true, approve: false },
  )
})

t.test('the servers of a conversation are its own, and end with it', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  await add(daemon, {
    id: 'memory',
    kind: 'mcp',
    config: {
      transport: 'stdio',
      command: `node ${realServer('memory')}`,
      env: `MEMORY_FILE_PATH=${daemon.workspace}/memory.json`,
    },
  })
  t.match(await resultOf(daemon, { server: 'memory', name: 'read_graph', input: {} }), { ok: true })
  const pid = (await daemon.client.call('GET /capabilities/{id}/tools', { id: 'memory' })).info!.pid!
  t.match(await resultOf(daemon, { conversationId: 'd', server: 'memory', name: 'read_graph', input: {} }), {
    ok: true,
  })
  const other = (await daemon.client.call('GET /capabilities/{id}/tools', { id: 'memory' })).info!.pid!
  t.not(pid, other)
  await inner(daemon, 'mcp.release', { conversationId: 'c' })
  t.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  t.doesNotThrow(() => process.kill(other, 0))
  await daemon.client.call('DELETE /capabilities/{id}', { id: 'memory' })
  t.throws(() => process.kill(other, 0), { code: 'ESRCH' })
})

t.test('a server over HTTP is connected, called, and reached again after it was started anew', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const server = await httpServer(t)
  t.match((await add(daemon, { id: 'every', kind: 'mcp', config: { url: server.url } })).at(-1), { kind: 'result' })
  const echo = { server: 'every', name: 'echo', input: { message: 'over http' } }
  t.match(await resultOf(daemon, echo), { ok: true, text: /over http/ })
  t.match(await daemon.client.call('GET /capabilities/{id}/tools', { id: 'every' }), { info: { transport: 'http' } })
  await server.end()
  t.match(await resultOf(daemon, echo), { ok: false, text: /the server every failed/ })
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'every' }), {
    state: 'error',
    code: 'unreachable',
  })
  const again = await httpServer(t, 'streamableHttp', server.port)
  t.match(await resultOf(daemon, echo), { ok: true, text: /over http/ })
  await again.end()
  await httpServer(t, 'streamableHttp', server.port)
  t.match(await resultOf(daemon, echo), { ok: true, text: /over http/ })
})

t.test('a server writes in the workspace after a yes, and says what it may not do before', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const config = { transport: 'stdio', command: `node ${realServer('filesystem')} ${daemon.workspace}` } as const
  await add(daemon, { id: 'files', kind: 'mcp', config })
  const path = join(daemon.workspace, 'made')
  const args = { path, content: 'after a yes' }
  const order = { capability: 'files', key: 'files.write_file', args, idempotencyKey: 'once' }
  t.match(await inner(daemon, 'capabilities.carryOut', order), { outcome: 'done' })
  t.equal(readFileSync(path, 'utf8'), 'after a yes')

  const script = program(daemon, 'notes.mjs', "import { writeFileSync } from 'node:fs'\nwriteFileSync('notes', '')\n")
  const notes = { transport: 'stdio', command: `node ${script}` } as const
  t.match(await refusalOf(() => add(daemon, { id: 'notes', kind: 'mcp', config: notes })), {
    message: /the workspace is read-only for it here: let it write in its home folder/,
  })
})

t.test('a server that knows the older transport only is connected with that', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const server = await httpServer(t, 'sse')
  t.match((await add(daemon, { id: 'old', kind: 'mcp', config: { url: server.url } })).at(-1), { kind: 'result' })
  t.match(await daemon.client.call('GET /capabilities/{id}/tools', { id: 'old' }), {
    info: { transport: 'event-stream' },
  })
  t.match(await resultOf(daemon, { server: 'old', name: 'echo', input: { message: 'as before' } }), {
    ok: true,
    text: /as before/,
  })
})

t.test('an answer whose event stream is cut goes on where it was', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const proxy = await cuttingProxy(t, (await httpServer(t)).url)
  await add(daemon, { id: 'every', kind: 'mcp', config: { url: proxy.url } })
  const long = { server: 'every', name: 'trigger-long-running-operation', input: { duration: 1, steps: 4 } }
  t.match((await callTool(daemon, long)).at(-1), { kind: 'result', ok: true, text: /completed/ })
  t.equal(proxy.resumed.length, 1, 'one event stream was resumed after its last event')
})
