import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { mountsLater } from '../../../../sdk/node/wall/later-mounts.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { joined } from '../../../support/joined.js'
import { framesOf } from '../../../support/turns.js'

/** A program with many sessions that does what the last line of a message says. */
const PROGRAM = `#!${process.execPath}
import { execSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
const me = randomUUID()
const sessions = new Map()
let last = 1000
const waiting = new Map()
const send = message => void process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const ask = (sessionId, method, params) => new Promise(resolve => {
  waiting.set(++last, resolve)
  send({ id: last, method, params: { sessionId, ...params } })
})
const say = (sessionId, text) => send({ method: 'session/update', params: { sessionId,
  update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
const attempt = work => { try { return work() } catch (error) { return error.code ?? error.message } }
const called = async ({ server: { url, headers } }, name, args) => {
  const given = Object.fromEntries(headers.map(({ name, value }) => [name, value]))
  const body = JSON.stringify({ jsonrpc: '2.0', id: ++last, method: 'tools/call', params: { name, arguments: args } })
  const accept = 'application/json, text/event-stream'
  const sent = { ...given, accept, 'content-type': 'application/json', 'mcp-protocol-version': '2025-06-18' }
  const text = await (await fetch(url, { method: 'POST', headers: sent, body })).text()
  return JSON.parse(/\\{.*\\}/.exec(text)[0]).result.content[0].text
}
const answerOf = ({ error }) => error ? error.message : 'done'
const deeds = {
  me: (id, { cwd }) => say(id, me + ' ' + cwd),
  write: (id, { cwd }, [name]) => writeFileSync(join(cwd, name), 'by itself'),
  git: (id, { cwd }) => say(id, execSync('git status --short && git log --format=%s', { cwd }).toString()),
  look: (id, { cwd }, [path]) => say(id, JSON.stringify({
    copies: readdirSync(dirname(dirname(cwd))),
    beside: attempt(() => writeFileSync(join(dirname(cwd), 'x'), 'x') ?? 'written'),
    above: attempt(() => writeFileSync(join(dirname(dirname(cwd)), 'x'), 'x') ?? 'written'),
    workspace: attempt(() => readdirSync(path)),
    checkouts: attempt(() => readdirSync(join(dirname(dirname(dirname(cwd))), 'agent'))),
  })),
  terminal: async (id, { cwd }) => {
    const command = 'pwd; git -C ' + cwd + ' status --short; ls ' + cwd
    const { result } = await ask(id, 'terminal/create', { command })
    await ask(id, 'terminal/wait_for_exit', result)
    say(id, (await ask(id, 'terminal/output', result)).result.output)
  },
  forge: async (id, { cwd }) => {
    const others = [...sessions.keys()].filter(other => other !== id)
    for (const other of [...others, 'made-up']) {
      const path = join(sessions.get(other)?.cwd ?? cwd, 'forged')
      say(id, answerOf(await ask(other, 'fs/write_text_file', { path, content: 'x' })) + '; ')
      say(other, 'not mine')
    }
  },
  wait: (id, session) => {
    say(id, session.loaded ? 'went on in ' + me : 'waits')
    return session.loaded ? undefined : new Promise(resolve => (session.cancel = () => resolve('cancelled')))
  },
  delegate: async (id, session, [...deeds]) => {
    const prompt = deeds.map(deed => 'do ' + deed).join('\\n')
    say(id, '(' + await called(session, 'Delegate', { description: 'beside', prompt }) + ') ')
  },
  meet: async (id, { cwd }, [name, other]) => {
    writeFileSync(join(cwd, 'met-' + name), '')
    while (!existsSync(join(cwd, 'met-' + other))) await new Promise(resolve => setTimeout(resolve, 20))
    say(id, me + ' met ' + other)
  },
  both: async (id, session) => {
    const prompts = ['do meet one other', 'do meet other one']
    const answers = prompts.map(prompt => called(session, 'Delegate', { description: 'beside', prompt }))
    say(id, '(' + (await Promise.all(answers)).join(') (') + ')')
  },
  hang: id => say(id, 'hangs') ?? new Promise(() => {}),
}
const prompt = async ({ sessionId, prompt }) => {
  const session = sessions.get(sessionId)
  const words = prompt.flatMap(({ text = '' }) => text.split('\\n').filter(line => line.startsWith('do ')))
  for (const [name, ...more] of words.map(line => line.slice(3).split(' '))) {
    const reason = await deeds[name](sessionId, session, more)
    if (reason) return { stopReason: reason }
  }
  return { stopReason: 'end_turn' }
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, ...rest } = JSON.parse(line)
  if (method === undefined) waiting.get(id)?.(rest)
  else if (method === 'initialize') send({ id, result: { protocolVersion: 1,
    agentCapabilities: { loadSession: process.env.LOADS !== 'no', mcpCapabilities: { http: true } } } })
  else if (method === 'session/new') {
    if (process.env.MOST === 'refuses' && sessions.size > 0)
      send({ id, error: { code: -32603, message: 'one session only' } })
    else {
      const sessionId = process.env.MOST === 'repeats' ? 'the-one' : randomUUID()
      sessions.set(sessionId, { cwd: params.cwd, server: params.mcpServers[0] })
      send({ id, result: { sessionId } })
    }
  } else if (method === 'session/load') {
    sessions.set(params.sessionId, { cwd: params.cwd, server: params.mcpServers[0], loaded: true })
    send({ id, result: {} })
  } else if (method === 'session/cancel') sessions.get(params.sessionId).cancel?.()
  else if (method === 'session/prompt') prompt(params).then(result => send({ id, result }),
    error => send({ id, error: { code: -32603, message: error.message } }))
}
`

const skip = (await mountsLater()) ? false : 'this machine has no bubblewrap'

/** A daemon with connected programs of this kind, by their variables. */
const world = async (t: Test, programs: { readonly [id: string]: { readonly [name: string]: string } }) => {
  const daemon = await daemonWith(t, ['agent', 'agents', 'areas', 'settings', 'system'], {
    files: {
      'src/a.txt': 'a',
      'private.txt': 'of the shared tree',
      'node_modules/dep/index.js': '1',
      '.gitignore': 'node_modules',
    },
    fakes: {
      'capabilities.records': () => ({
        capabilities: Object.keys(programs).map(id => ({ id, kind: 'agent', label: 'Many', config: {}, secrets: [] })),
      }),
      'capabilities.runtime': ({ id }) => ({ id, label: 'Many', command: [`many-${id}`], env: programs[id]! }),
    },
  })
  const { client, data } = daemon
  for (const id of Object.keys(programs)) {
    const folder = join(data, 'homes/programs', id, 'home/.local/bin')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `many-${id}`), PROGRAM, { mode: 0o755 })
  }
  const begin = async (conversationId: string, deeds: string, input: object = {}, as = client) => {
    const prompt = deeds
      .split('; ')
      .map(deed => `do ${deed}`)
      .join('\n')
    const agent = `agent/${Object.keys(programs)[0]}`
    const { run } = await as.call('POST /agent', { conversationId, agent, isolated: true, prompt, ...input })
    return framesOf(as, conversationId, { run })
  }
  const turn = async (...args: Parameters<typeof begin>): Promise<Frame[]> =>
    (await (await begin(...args)).all()).map(({ event }) => event)
  const said = async (...args: Parameters<typeof begin>): Promise<string> => saidIn(await turn(...args))
  /** The process that serves a conversation, as it names itself. */
  const processOf = async (...[id, input, as]: [string, object?, typeof client?]): Promise<string> =>
    (await said(id, 'me', input, as)).split(' ')[0]!
  return { ...daemon, begin, turn, said, processOf, copy: (id: string) => join(data, 'agent/checkouts', id) }
}

const saidIn = (frames: readonly Frame[]): string =>
  frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')

const says = (text: string) => (frame: Frame) => frame.kind === 'delta' && frame.text.includes(text)

const end = (frames: readonly Frame[]) => ({
  error: frames.find(frame => frame.kind === 'error')?.message,
  reason: frames.flatMap(frame => (frame.kind === 'done' ? [frame.reason] : []))[0],
})

t.test('one process serves conversations at once, each in its own copy, and sees nothing else', { skip }, async t => {
  const daemon = await world(t, { many: {} })
  const { begin, said, turn, client, workspace, data, copy, processOf } = daemon
  const waits = await begin('a', 'me; write made.txt; wait')
  await waits.until(says('waits'))
  const first = saidIn(waits.seen.map(({ event }) => event))
  const second = await said('b', `me; look ${workspace}; git; terminal`)
  const [process, seenAt] = second.split('{', 1)[0]!.split(' ')
  t.equal(process, first.split(' ')[0], 'both are in the same process')
  t.equal(seenAt, join(data, 'copies/b/tree'))
  t.match(JSON.parse(/\{.*?\}/.exec(second)![0]), {
    copies: exactly('a', 'b'),
    beside: 'EROFS',
    above: 'EROFS',
    workspace: 'ENOENT',
    checkouts: 'ENOENT',
  })
  t.match(second, /\}first\n/, 'its git works')
  t.match(second, new RegExp(`${seenAt}\n.*node_modules\n.*src\n`, 's'), 'a command sees the copy at the same path')
  t.equal(readFileSync(join(copy('a'), 'made.txt'), 'utf8'), 'by itself')
  t.notOk(existsSync(join(copy('b'), 'made.txt')))
  t.match(
    (await daemon.kernel.events.collect('system.processes')).flat(),
    exactly({ conversationIds: exactly('a', 'b') }),
  )

  const other = async (input: object, as = client, id = 'o') => {
    const own = await processOf(id, input, as)
    t.match(own, /^[\w-]{36}$/)
    t.not(own, process)
  }
  await other({ isolated: false }, client, 'shared')
  await other({ allowedTools: ['Read'] })
  await other({ outsideWake: 'a letter' }, client, 'woken')
  await client.call('POST /areas', { id: 'src', label: 'Source', folders: ['src'] })
  const ada = await joined(daemon, 'ada', 'collaborator', ['src'])
  await other({ startIn: 'src' }, ada.client, 'limited')

  t.equal(await processOf('o'), process, 'the same conversation shares the process when its turn may')
  await client.call('POST /agent/stop', { conversationId: 'a' })
  t.match(end((await waits.all()).map(({ event }) => event)), { reason: 'stopped', error: undefined })
  t.equal(await processOf('b'), process, 'the process goes on after a stop that it follows')
  await client.call('POST /agents/{id}/land', { id: 'a', mode: 'check' })
  t.equal(readFileSync(join(workspace, 'made.txt'), 'utf8'), 'by itself')
  await client.call('POST /agents/{id}/discard', { id: 'a' })
  t.match(await said('b', `look ${workspace}`), /"copies":\["b","o"\]/, 'a discarded copy is gone from it')
  t.equal(end(await turn('b', 'write more.txt')).reason, 'completed')
})

t.test(
  'a process serves no conversation that lands no more by itself, nor one of another network',
  { skip },
  async t => {
    const { said, client, workspace, processOf } = await world(t, { many: {} })
    const process = await processOf('a')
    t.equal(await processOf('b'), process)
    t.match(await said('b', `look ${workspace}`), /"copies":\["a","b"\]/)
    const woken = { agent: 'script', prompt: 'run echo planted > planted', outsideWake: 'a letter' }
    const { run } = await client.call('POST /agent', { conversationId: 'a', ...woken })
    await framesOf(client, 'a', { run }).all()
    t.match(await said('b', `look ${workspace}`), /"copies":\["b"\]/, 'what the other writes now is not there')

    await client.call('POST /settings/patch', { set: { network: 'shared' } })
    const shared = await processOf('b')
    t.not(shared, process, "one in the machine's network")
    await client.call('POST /settings/patch', { set: { network: 'own' } })
    t.not(await processOf('b'), shared, 'serves none in a network of its own')
  },
)

t.test(
  'a program that does not stop is ended for all: others go on, each in a process of its own',
  { skip },
  async t => {
    const { begin, client, processOf, turn } = await world(t, { many: {} })
    const [hangs, goes] = [await begin('a', 'hang'), await begin('b', 'me; wait')]
    await Promise.all([hangs.until(says('hangs')), goes.until(says('waits'))])
    await client.call('POST /agent/stop', { conversationId: 'a' })
    const [stopped, frames] = [await hangs.all(), (await goes.all()).map(({ event }) => event)]
    t.match(end(stopped.map(({ event }) => event)), { reason: 'stopped' })
    t.match(end(frames), { reason: 'completed', error: undefined })
    const [, before, after] = /^([\w-]{36}) .*waits.*went on in ([\w-]{36})/s.exec(saidIn(frames)) ?? []
    t.ok(before)
    t.not(after, before)
    t.equal(await processOf('b'), after, 'its own process waits for the next turn')
    t.not(await processOf('c'), after, 'from now on each conversation has its own')
    t.equal(end(await turn('a', 'me')).reason, 'completed')
  },
)

t.test('a session that cannot be loaded ends with its process, and so do all when it is killed', { skip }, async t => {
  const { begin, client } = await world(t, { many: { LOADS: 'no' }, other: {} })
  const [hangs, goes] = [await begin('a', 'hang'), await begin('b', 'wait')]
  await Promise.all([hangs.until(says('hangs')), goes.until(says('waits'))])
  await client.call('POST /agent/stop', { conversationId: 'a' })
  const crashed = (await goes.all()).map(({ event }) => event)
  t.match(
    crashed.find(({ kind }) => kind === 'error'),
    { code: 'harness-crashed', message: /did not stop when it was asked to, in the turn of another conversation/ },
  )
  const agent = { agent: 'agent/other' }
  const both = [await begin('c', 'wait', agent), await begin('d', 'wait', agent)]
  await Promise.all(both.map(each => each.until(says('waits'))))
  const killed = readdirSync('/proc').filter(pid => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1]?.endsWith('/many-other')
    } catch {
      return false
    }
  })
  t.equal(killed.length, 1)
  process.kill(Number(killed[0]), 'SIGKILL')
  for (const each of both) {
    const frames = (await each.all()).map(({ event }) => event)
    t.match(
      frames.find(({ kind }) => kind === 'error'),
      { code: 'harness-crashed' },
    )
  }
})

t.test(
  'requests for a session without a turn are refused, and those for another turn pass its gate',
  { skip },
  async t => {
    const { begin, said, copy, client } = await world(t, { many: {} })
    await said('idle', 'me')
    const busy = await begin('busy', 'wait', { permissionMode: 'default' })
    await busy.until(says('waits'))
    const forger = await begin('forger', 'forge')
    const card = await busy.until(({ kind }) => kind === 'permission')
    await client.call('POST /agent/reply', { kind: 'permission', requestId: card.requestId, decision: 'deny' })
    const refused = 'made a request while no turn of it was running; '
    t.equal(saidIn((await forger.all()).map(({ event }) => event)), `${refused}a person said no; ${refused}`)
    for (const id of ['idle', 'busy', 'forger']) t.notOk(existsSync(join(copy(id), 'forged')))
    await client.call('POST /agent/stop', { conversationId: 'busy' })
    t.match(
      saidIn((await busy.all()).map(({ event }) => event)),
      /^waits.*not mine/s,
      'what it says there is shown there',
    )
    t.equal(await said('idle', 'write x'), '', 'and nowhere when there is no turn')
  },
)

for (const [name, isolated] of [
  ['shares its process with other conversations', true],
  ['has a process of its own', false],
] as const) {
  t.test(`an agent that ${name} outlives its subagents on the same program`, { skip }, async t => {
    const { begin, kernel, client, processOf } = await world(t, { many: {} })
    const waits = await begin('a', 'me; delegate me; delegate me; me; write made.txt; wait', { isolated })
    await waits.until(says('waits'))
    const said = saidIn(waits.seen.map(({ event }) => event))
    // What a subagent says is heard while it runs, and in its answer.
    const [parent, one, , other, , after] = said.match(/[0-9a-f]{8}-[0-9a-f-]{27}/g) ?? []
    t.equal(after, parent, 'the agent goes on in its process')
    t.equal(new Set([parent, one, other]).size, 3, 'each subagent has a process of its own')
    t.equal((await kernel.events.collect('system.processes')).flat().length, 1, 'which ends with it')
    await client.call('POST /agent/stop', { conversationId: 'a' })
    t.match(end((await waits.all()).map(({ event }) => event)), { reason: 'stopped', error: undefined })
    t.equal(await processOf('a', { isolated }), parent, 'and its process serves the next turn')
  })
}

t.test('two subagents run at once on the program of their agent', { skip }, async t => {
  const { said } = await world(t, { many: {} })
  const answers = (await said('a', 'both', { isolated: true })).match(/[0-9a-f]{8}-[0-9a-f-]{27} met (?:one|other)/g)
  t.equal(new Set(answers?.map(answer => answer.split(' ')[0])).size, 2, 'in a process each')
  t.same(new Set(answers?.map(answer => answer.split(' ')[2])), new Set(['one', 'other']), 'each met the other')
})

for (const most of ['refuses', 'repeats'] as const) {
  t.test(`a program that ${most} a second session gets a process for each conversation`, { skip }, async t => {
    const { begin, said, processOf, client } = await world(t, { many: { MOST: most } })
    const waits = await begin('a', 'me; wait')
    await waits.until(says('waits'))
    const own = await processOf('b')
    const [first] = saidIn(waits.seen.map(({ event }) => event)).split(' ')
    t.match(own, /^[\w-]{36}$/)
    t.not(own, first)
    t.match(await said('c', 'me'), /\/copies\/c\/tree$/)
    await client.call('POST /agent/stop', { conversationId: 'a' })
    t.match(end((await waits.all()).map(({ event }) => event)), { reason: 'stopped' })
  })
}
