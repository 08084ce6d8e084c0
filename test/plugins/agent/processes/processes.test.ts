import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { ScriptedReply, SeenRequest } from '../../../support/servers/model-server.js'
import { ConversationProcesses } from '../../../../plugins/agent/processes/conversation-processes.js'
import { processTools } from '../../../../plugins/agent/processes/process-tools.js'
import { Masker } from '../../../../sdk/node/access/masker.js'
import { exactly } from '../../../support/lists.js'
import { refusal } from '../support.js'
import { briefedWorld, saidIn } from '../briefing/world.js'

type Call = { readonly name: string; readonly input: object }

const shell = (command: string, more: object = {}): Call => ({ name: 'Shell', input: { command, ...more } })
const background = (command: string, more: object = {}): Call => shell(command, { background: true, ...more })
const look = (action: string, more: object = {}): Call => ({ name: 'Process', input: { action, ...more } })

/** The results of the calls since the last message of a person. */
const resultsIn = ({ body: { messages = [] } }: SeenRequest): string[] =>
  messages
    .slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => String(content))

/** A model that makes the calls that stand under the words it is asked with, one an answer. */
const calling =
  (plans: { readonly [words: string]: readonly Call[] }) =>
  (request: SeenRequest): ScriptedReply => {
    const { asked } = saidIn(request)
    const plan = Object.entries(plans).find(([words]) => asked.includes(words))?.[1] ?? []
    const next = plan[resultsIn(request).length]
    return next ? { calls: [next] } : { text: ['done'] }
  }

/** A file that grows while a command runs. */
const BEATS = 'while :; do echo x >> beats; sleep 0.1; done'
const appears = async (path: string): Promise<void> => {
  while (!existsSync(path)) await delay(50)
}
const isStill = async (path: string): Promise<boolean> => {
  const before = statSync(path).size
  await delay(500)
  return statSync(path).size === before
}

t.test(
  'a command in the background outlives its turn: it is read, written to and ended by its conversation',
  async t => {
    const echo = 'echo ready; while read -r line; do echo "got $line"; done; echo over'
    const world = await briefedWorld(
      t,
      calling({
        first: [
          background(echo),
          look('input', { id: 'sh-1', text: 'one\n' }),
          look('output', { id: 'sh-1', waitMs: 20_000 }),
          background('echo no >&2; exit 3'),
          look('output', { id: 'sh-2', since: 0, waitMs: 20_000 }),
          background(BEATS),
          look('list'),
        ],
        second: [
          look('input', { id: 'sh-1', text: 'two\n' }),
          look('output', { id: 'sh-1', waitMs: 20_000 }),
          look('output', { id: 'sh-1', since: 0 }),
          look('input', { id: 'sh-1', text: '' }),
          look('output', { id: 'sh-1', waitMs: 20_000 }),
          look('input', { id: 'sh-1', text: 'three\n' }),
          look('output', { id: 'sh-9' }),
          look('kill', { id: 'sh-3' }),
          look('kill', { id: 'sh-3' }),
        ],
        third: [background(BEATS)],
      }),
    )
    const told = (): string[] => resultsIn(world.server.requests.at(-1)!)
    await world.turn('c', { prompt: 'first' })
    const [started, wrote, got, , failed, , list] = told()
    t.match(started, /^(?:ready\n)?\[sh-1 runs;/)
    t.equal(wrote, 'wrote 4 bytes to sh-1')
    t.match(got, /^(?:ready\n)?got one\n\[sh-1 runs;|^ready\n\[sh-1 runs;/)
    t.match(failed, /^no\n\[sh-2 ended with exit code 3;/)
    t.match(list, /^sh-1 runs, started \d+ s ago: echo ready.*\nsh-2 ended with exit code 3.*\nsh-3 runs/)

    const beats = join(world.workspace, 'beats')
    await appears(beats)
    await world.turn('c', { prompt: 'second' })
    const { asked } = saidIn(world.server.requests.at(-1)!)
    t.match(asked, /\[Commands in the background\]\nsh-1 runs: echo ready.*\nsh-3 runs: while/)
    t.notMatch(asked, 'sh-2', 'its end was told')
    const [, two, all, , over, refused, unknown, killed, again] = told()
    t.match(two, /got two\n\[sh-1 runs;/)
    t.match(all, /^ready\ngot one\ngot two\n\[sh-1 runs; this is its output from 0 to \d+\]$/)
    t.match(over, /over\n\[sh-1 ended with exit code 0;/)
    t.match(refused, /nothing was written: sh-1 ended with exit code 0/)
    t.match(unknown, 'this conversation has no command sh-9 in the background')
    t.equal(killed, 'ended sh-3')
    t.match(again, /sh-3 was ended by a call of Process before/)

    t.ok(await isStill(beats), 'the killed one writes no more')
    await world.turn('c', { prompt: 'third' })
    t.notOk(await isStill(beats), 'it runs on after the turn')
    await world.client.call('POST /agents/archive', { ids: ['c'] })
    t.ok(await isStill(beats), 'it ends with the conversation')
  },
)

t.test('a stop ends what the turn started in the background, and nothing of earlier turns', async t => {
  const world = await briefedWorld(
    t,
    calling({
      first: [background(BEATS)],
      second: [background(BEATS.replaceAll('beats', 'later')), shell('touch now; sleep 600')],
    }),
  )
  const at = (name: string): string => join(world.workspace, name)
  await world.turn('c', { prompt: 'first' })
  const turn = world.turn('c', { prompt: 'second' })
  await Promise.all([appears(at('later')), appears(at('now'))])
  const stopped = await world.client.call('POST /agent/stop', { conversationId: 'c' })
  t.same(stopped, { ok: true, stopped: 'turn', ended: 1, running: 1 })
  await turn
  t.ok(await isStill(at('later')))
  t.notOk(await isStill(at('beats')))
  const { agents } = await world.client.call('GET /agents')
  t.same(agents[0]!.processes, { running: 1, total: 2 })

  const nothing = await world.client.call('POST /agent/stop', { conversationId: 'c' })
  t.same(nothing, { ok: true, stopped: 'nothing', ended: 0, running: 1 })
  const all = await world.client.call('POST /agent/stop', { conversationId: 'c', background: true })
  t.same(all, { ok: true, stopped: 'nothing', ended: 1, running: 0 })
  t.ok(await isStill(at('beats')))
})

t.test('people list, read and end the commands in the background, as far as they reach their conversation', async t => {
  const world = await briefedWorld(
    t,
    calling({ first: [background('echo one; read -r x; echo two'), background('exit 4'), background(BEATS)] }),
  )
  const { client } = world
  await world.turn('c', { prompt: 'first' })
  const { processes } = await client.call('GET /agent/processes', { conversationId: 'c' })
  t.same(
    processes.map(({ id, running, ended, exitCode }) => [id, running, ended, exitCode]),
    [
      ['sh-1', true, undefined, undefined],
      ['sh-2', false, 'ended with exit code 4', 4],
      ['sh-3', true, undefined, undefined],
    ],
  )
  t.same((await client.call('GET /agent/processes', {})).processes, processes)
  const output = { conversationId: 'c', id: 'sh-1' }
  t.match(await client.call('GET /agent/processes/{conversationId}/{id}', output), { text: 'one\n', from: 0, to: 4 })
  t.match(await client.call('GET /agent/processes/{conversationId}/{id}', { ...output, since: 2 }), { text: 'e\n' })
  t.match(await client.call('GET /agent/processes/{conversationId}/{id}', { ...output, since: 99 }), {
    text: '',
    to: 4,
  })

  const [editor, reader] = [await world.token('editor'), await world.token('read')]
  t.same(await editor.client.call('GET /agent/processes', {}), { processes: [] })
  for (const call of ['GET', 'DELETE'] as const)
    t.match(await refusal(editor.client.call(`${call} /agent/processes/{conversationId}/{id}`, output)), {
      status: 403,
    })
  t.match(await reader.client.call('GET /agent/processes/{conversationId}/{id}', output), { text: 'one\n' })
  t.match(await refusal(reader.client.call('DELETE /agent/processes/{conversationId}/{id}', output)), { status: 403 })
  t.match(await refusal(client.call('GET /agent/processes', { conversationId: 'none' })), { status: 404 })
  t.match(await refusal(client.call('DELETE /agent/processes/{conversationId}/{id}', { ...output, id: 'sh-9' })), {
    status: 404,
  })
  t.same(await client.call('DELETE /agent/processes/{conversationId}/{id}', { ...output, id: 'sh-3' }), { ok: true })
  t.same(await client.call('DELETE /agent/processes/{conversationId}/{id}', { ...output, id: 'sh-3' }), { ok: true })
  t.ok(await isStill(join(world.workspace, 'beats')))
  const { processes: after } = await client.call('GET /agent/processes', { conversationId: 'c' })
  t.match(after.at(-1), { id: 'sh-3', running: false, ended: 'was ended by a person' })
})

t.test('after a restart the conversation is told which commands ended with the sandbox', async t => {
  const script = calling({ first: [background(BEATS)], second: [look('output', { id: 'sh-1' }), background('true')] })
  const before = await briefedWorld(t, script)
  await before.turn('c', { prompt: 'first' })
  await before.stop()
  t.ok(await isStill(join(before.workspace, 'beats')))
  const { workspace, data } = before
  const world = await briefedWorld(t, script, { workspace, data })
  await world.turn('c', { prompt: 'second' })
  const request = world.server.requests.at(-1)!
  t.match(saidIn(request).asked, /\[Commands in the background\]\nsh-1 ended when the sandbox restarted: while/)
  const [gone, next] = resultsIn(request)
  t.match(gone, 'sh-1 ended when the sandbox restarted, and its output is gone: start it again')
  t.match(next, /sh-2 ended with exit code 0/)
})

t.test('a flood keeps the end of its output, and a time limit ends a command', async t => {
  const world = await briefedWorld(
    t,
    calling({
      flood: [
        background('yes flood', { timeoutMs: 2_500 }),
        look('output', { id: 'sh-1', waitMs: 20_000 }),
        shell('sleep 3'),
        look('output', { id: 'sh-1', since: 0 }),
      ],
    }),
  )
  await world.turn('c', { prompt: 'flood' })
  const whole = resultsIn(world.server.requests.at(-1)!).at(-1)!
  t.match(whole, /^(?:\[the output from 0 to \d+ is no longer kept\]\n)?[flod]*\nflood\n/)
  t.match(whole, /\[sh-1 was ended after 2500 ms;/)
})

/** The commands of conversations, without a daemon, and how one starts. */
const alone = (t: Test, masker: () => Masker = () => new Masker([])) => {
  const processes = new ConversationProcesses({
    store: { all: async () => [], set: async () => {}, delete: async () => true } as never,
    log: { warn: () => {} },
    masker,
    changed: () => {},
  })
  // A daemon does not end while output waits for its turn.
  const awake = setInterval(() => {}, 60_000)
  t.teardown(() => {
    clearInterval(awake)
    return processes.close()
  })
  const start = (command: string, { conversation = 'c', run = 'r' } = {}) => {
    const args = ['-c', command]
    const walled = { program: 'sh', args, env: { PATH: '/usr/bin:/bin' }, cwd: '/', enforced: false }
    const access = { trust: 'lands', reach: '' } as const
    return processes.start(conversation, { walled, shown: command, run, access })
  }
  return { processes, start }
}

t.test('a conversation runs at most sixteen commands in the background, and lists the last that ended', async t => {
  const { processes, start: begin } = alone(t)
  const start = (run = 'r') => begin('sleep 600', { run })
  for (let n = 0; n < 16; n++) start(n < 12 ? 'early' : 'late')
  t.throws(() => start(), { message: 'expected at most 16 commands in the background, found 16: end one first' })
  await processes.end('c', 'here', ({ run }) => run === 'early')
  t.equal(processes.all('c').length, 12, 'four run, eight have ended')
  t.equal(start().facts.id, 'sh-17')
  await processes.forget('c')
  t.same(processes.all('c'), [])
})

t.test('the output of a command is shown while it runs, without values, and seldom enough', async t => {
  const world = await briefedWorld(
    t,
    calling({
      watch: [shell('for n in 1 2 3 4 5 6 7 8; do echo "step $n"; sleep 0.3; done')],
      flood: [shell('timeout 3 yes')],
    }),
  )
  const updatesOf = async (prompt: string) =>
    (await world.turn('c', { prompt })).filter(frame => frame.kind === 'tool_call_update')
  const seen = await updatesOf('watch')
  const [first] = seen.filter(({ content, status }) => content && !status)
  t.match(first?.content?.[0], { type: 'text', text: /^step 1\nstep 2\n/ })
  t.match(seen.at(-1), { status: 'completed', content: exactly({ text: /step 8/ }) })
  const flood = await updatesOf('flood')
  t.ok(flood.length < 8, `${flood.length} updates`)
  for (const { content, status } of flood) if (!status) t.ok(JSON.stringify(content).length < 9_000)
})

t.test('the wall is around a command in the background, its values are masked, and limits count it', async t => {
  const value = 'tok-0123456789-abcdefghij'
  const bomb = 'b() { [ $1 = 0 ] || { b $(($1-1)) & b $(($1-1)) & }; sleep 60; }; b 9'
  const file = join(t.testdir({ beside: 'outside' }), 'beside')
  const world = await briefedWorld(
    t,
    calling({
      wall: [
        background(`cat ${file}; printf tok-%s 0123456789; sleep 1; echo -abcdefghij`),
        look('output', { id: 'sh-1', since: 0, waitMs: 20_000 }),
        shell('sleep 2'),
        look('output', { id: 'sh-1', since: 0 }),
        shell('printf tok-%s 0123456789; sleep 2; echo -abcdefghij'),
      ],
      bomb: [background(bomb), shell('sleep 30')],
    }),
    {
      deployment: { wall: { limits: { processes: 200 } } } as never,
      fakes: { 'secrets.values': () => ({ values: [{ name: 'API', value }], revision: 1 }) },
    },
  )
  const frames = JSON.stringify(await world.turn('c', { prompt: 'wall' }))
  const text = frames + world.server.requests.map(request => request.text).join('\n')
  t.match(
    resultsIn(world.server.requests.at(-1)!)[3],
    /No such file[^]*\{\{secret:API\}\}\n\[sh-1 ended with exit code 0/,
  )
  t.notMatch(text, /tok-0123/, 'neither whole nor in part')
  const bombed = await world.turn('c', { prompt: 'bomb' })
  t.match(
    bombed.find(({ kind }) => kind === 'error'),
    { message: /^expected at most 200 processes and threads in a turn/ },
  )
})

t.test('a turn with other rights neither reads nor keeps what an earlier one started', async t => {
  const world = await briefedWorld(
    t,
    calling({ first: [background(BEATS)], second: [look('list'), look('output', { id: 'sh-1' })] }),
  )
  await world.turn('c', { prompt: 'first' })
  await world.turn('c', { prompt: 'second', outsideWake: 'a mail' })
  const request = world.server.requests.at(-1)!
  t.ok(await isStill(join(world.workspace, 'beats')))
  t.match(saidIn(request).asked, /\[Commands in the background\]\nsh-1 has ended/)
  const [list, output] = resultsIn(request)
  t.match(list, /^sh-1 was ended because the next turn has other rights, .*: \[by a turn with other access\]$/)
  t.match(output, 'sh-1 was started by a turn with other access')
})

t.test('words of somebody who may not land end what would run them with the rights of work that lands', async t => {
  const world = await briefedWorld(
    t,
    calling({
      first: [background(BEATS), shell('touch now; until [ -e go ]; do sleep 0.1; done')],
      'change what': [look('output', { id: 'sh-1' })],
    }),
  )
  const at = (name: string): string => join(world.workspace, name)
  const turn = world.turn('c', { prompt: 'first' })
  await Promise.all([appears(at('beats')), appears(at('now'))])
  t.notOk(await isStill(at('beats')))
  const other = (await world.token('drive')).client
  await other.call('POST /agent/steer', { conversationId: 'c', text: 'change what it runs' })
  t.ok(await isStill(at('beats')), 'before the model has read them')
  writeFileSync(at('go'), '')
  await turn
  t.match(resultsIn(world.server.requests.at(-1)!).at(-1), /sh-1 was started by a turn with other access/)
})

t.test('a turn that reaches less ends what would run its files with the reach of an earlier one', async t => {
  const powers = { files: 'write', shell: true, code: true, web: true, delegate: true } as const
  const lists = { connectors: [], devices: [], mcp: [], extensions: [] }
  const world = await briefedWorld(t, calling({ first: [background(BEATS)], second: [look('list')] }), {
    fakes: {
      'personas.forTurn': ({ actsAs: id }) =>
        ({ ...{ id, known: true, capabilities: [], notes: [], models: [] }, powers: { ...powers, ...lists } }) as never,
    },
  })
  await world.turn('c', { prompt: 'first' })
  await appears(join(world.workspace, 'beats'))
  await world.turn('c', { prompt: 'second', actsAs: 'helper' })
  t.ok(await isStill(join(world.workspace, 'beats')))
  const [list] = resultsIn(world.server.requests.at(-1)!)
  t.match(list, /^sh-1 was ended because the next turn has other rights/)
})

t.test('a command does not begin when its turn was stopped, or has other rights, before its wall stood', async t => {
  const { processes } = alone(t)
  const folder = t.testdir({ w: {}, d: {} })
  const [workspace, data] = [join(folder, 'w'), join(folder, 'd')]
  const tools = (signal: AbortSignal, trusts: readonly ('lands' | 'waits')[]) => {
    const left = [...trusts]
    return processTools(
      processes,
      { conversationId: 'c', run: 'r', signal },
      { root: workspace, cwd: workspace },
      {
        wall: { workspace, data },
        programs: { begun: () => () => {}, onStart: () => {} },
        access: () => ({ trust: left.shift() ?? 'waits', reach: '' }),
      },
    )
  }
  const start = (of: ReturnType<typeof tools>) => of.start('sleep 600', workspace, { shown: 'sleep 600' })
  await t.rejects(start(tools(AbortSignal.abort(), ['waits'])), { name: 'AbortError' })
  await t.rejects(start(tools(new AbortController().signal, ['lands', 'waits'])), {
    message: 'the rights of this turn have changed: start it again',
  })
  t.same(processes.all('c'), [])
})

t.test('a value that is stored while a command runs is masked in all that it writes from then on', async t => {
  let values: { name: string; value: string }[] = []
  const { start } = alone(t, () => new Masker(values))
  const process = start('read -r line; printf %s tok-0123456789; sleep 0.5; printf %s -abcdefghij')
  values = [{ name: 'NEW', value: 'tok-0123456789-abcdefghij' }]
  process.write('go\n')
  await process.over
  t.equal(process.kept, '{{secret:NEW}}')
})

t.test('outputs of ended commands are forgotten when many others have ended, and say so', async t => {
  const { start } = alone(t)
  const first = start('echo first', { conversation: 'early' })
  await first.over
  t.equal(first.output(0).text, 'first\n')
  for (let n = 0; n < 64; n++) await start('true', { conversation: `c-${n % 8}` }).over
  t.same(first.output(0), { text: '', from: 6, to: 6 })
})

t.test('floods of many commands together are read at the pace of one', async t => {
  const { start } = alone(t)
  const all = Array.from({ length: 8 }, () => start('timeout 1.5 yes'))
  await Promise.all(all.map(({ over }) => over))
  const read = all.reduce((sum, process) => sum + process.output(0).to, 0)
  t.ok(read < 36 * 1024 * 1024, `${read} characters`)
})
