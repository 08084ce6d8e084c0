import t from 'tap'
import type { ScriptedReply, SeenRequest } from '../../../support/servers/model-server.js'
import { exactly } from '../../../support/lists.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { done, NativeWorld, usageOf } from './native-support.js'

/** The number of tool results in a request. */
const resultsIn = ({ body }: SeenRequest): number => body.messages?.filter(({ role }) => role === 'tool').length ?? 0

/** The answers by the number of results in the request, the same for repeated requests. */
const ANSWERS: readonly ScriptedReply[] = [
  {
    thoughts: ['think'],
    text: ['I read ', 'two.'],
    calls: [
      { name: 'Read', input: { path: 'a' }, id: 'r1' },
      { name: 'Search', input: { query: 'b' }, id: 'r2' },
      { name: 'Write', input: { path: 'a.txt', content: 'new' }, id: 'w1' },
    ],
    usage: { input: 100, output: 10 },
  },
  {
    text: ['Now I run it.'],
    calls: [
      { name: 'Shell', input: { command: 'make' }, id: 's1' },
      { name: 'Read', raw: '{', id: 'r3' },
    ],
    usage: { input: 200, output: 20 },
  },
  { text: ['All ', 'done.'], usage: { input: 300, output: 30 } },
]
const answerTo = (request: SeenRequest): ScriptedReply =>
  ANSWERS[resultsIn(request) === 0 ? 0 : resultsIn(request) < 5 ? 1 : 2]!

const PROSE = 'I read two.\nNow I run it.\nAll done.\n'

void t.test('a turn killed at any moment continues: no text, call or token twice', async t => {
  const server = await modelServer(t, 'openai', answerTo)
  const whole = new NativeWorld({ target: server.target() })
  await whole.run()
  t.equal(whole.prose, PROSE)
  t.equal(whole.find('tool_call').length, 5)
  t.match(
    whole.find('usage'),
    [100, 200, 300].map(inputTokens => ({ inputTokens, outputTokens: inputTokens / 10, numTurns: 1 })),
    'each answer says what it used',
  )
  const wrong: string[] = []
  for (let dieAt = 1; dieAt <= whole.steps; dieAt++) {
    const world = new NativeWorld({ target: server.target() })
    world.dieAt = dieAt
    const asked = server.requests.length
    await world.run()
    // A turn that is not resumed is charged for what its frames say.
    const [usedAtKill, kept] = [usageOf(world).inputTokens, await world.keptTokens()]
    world.dieAt = Infinity
    await world.run(2)
    const shells = world.calls.filter(({ name }) => name === 'Shell').length
    const writes = world.calls.filter(({ name }) => name === 'Write').length
    const updates = world.find('tool_call_update').map(({ id }) => id)
    const problems = [
      world.prose === PROSE || `prose ${JSON.stringify(world.prose)}`,
      world.find('thinking').length === 1 || 'thought twice',
      world.find('session').length === 1 || 'session',
      // Between the note before a call and its first frame the outcome is unknown, and the model is told so.
      shells === 1
        || (shells === 0 && server.requests.at(-1)!.text.includes('interrupted by a restart'))
        || `${shells} shells`,
      writes === 1 || `${writes} writes`,
      world.files.get('a.txt') === 'new' || 'not written',
      new Set(updates).size === 5 || 'a call is missing',
      server.requests.length - asked <= 4 || `${server.requests.length - asked} requests`,
      world.find('usage').length === 3 || 'usage frames',
      usageOf(world).inputTokens === 600 || `tokens ${usageOf(world).inputTokens}`,
      kept <= usedAtKill || `${kept} tokens in the session of the killed turn, ${usedAtKill} in its frames`,
      world.find('error').length === 0 || world.find('error')[0]!.message,
    ]
    wrong.push(...problems.filter(problem => typeof problem === 'string').map(problem => `${dieAt}: ${problem}`))
  }
  t.strictSame(wrong, [])
})

void t.test('a command that a restart interrupted is not run again, and the model is informed', async t => {
  const server = await modelServer(t, 'openai', request =>
    resultsIn(request) === 0 ? { calls: [{ name: 'Shell', input: { command: 'deploy' } }] } : { text: ['I see.'] },
  )
  const world = new NativeWorld({
    target: server.target(),
    tool: () => {
      world.dieAt = world.steps + 1
      return done('deployed')
    },
  })
  await world.run()
  world.dieAt = Infinity
  await world.run(2)
  t.equal(world.calls.length, 1)
  t.match(server.requests.at(-1)!.text, /interrupted by a restart: it may have had its effect/)
  t.equal(world.prose, 'I see.\n')
})

void t.test('a file that was written before a restart is not written again', async t => {
  const server = await modelServer(t, 'openai', request =>
    resultsIn(request) === 0
      ? { calls: [{ name: 'Write', input: { path: 'a', content: 'x' } }] }
      : { text: ['Written.'] },
  )
  const world = new NativeWorld({
    target: server.target(),
    tool: () => {
      world.dieAt = world.steps + 1
      return done('wrote')
    },
  })
  await world.run()
  world.dieAt = Infinity
  await world.run(2)
  t.equal(world.calls.length, 1)
  t.match(server.requests.at(-1)!.text, /made before a restart/)
})

void t.test('messages taken before a kill are delivered once', async t => {
  const server = await modelServer(t, 'openai', request =>
    resultsIn(request) === 0 ? { calls: [{ name: 'Read', input: { path: 'a' } }] } : { text: ['ok'] },
  )
  const whole = new NativeWorld({ target: server.target() })
  await whole.run()
  for (let dieAt = 8; dieAt <= whole.steps + 4; dieAt++) {
    const said: { messageId: string; text: string; attachments: string[] }[] = []
    const world = new NativeWorld({
      target: server.target(),
      said,
      tool: () => {
        world.log.push({ kind: 'steer', text: 'wait a bit', sentAt: 1, messageId: 'm-1' })
        said.push({ messageId: 'm-1', text: 'wait a bit', attachments: [] })
        return done('read')
      },
    })
    world.dieAt = dieAt
    await world.run()
    world.dieAt = Infinity
    await world.run(2)
    const heard = server.requests.at(-1)!.text.split('wait a bit').length - 1
    t.equal(heard, 1, `killed at step ${dieAt}`)
  }
})

void t.test('after an outage another run continues the session, without counting the old tokens again', async t => {
  let away = true
  const server = await modelServer(t, 'openai', request => {
    if (resultsIn(request) === 0)
      return { calls: [{ name: 'Read', input: { path: 'a' } }], usage: { input: 100, output: 10 } }
    return away ? { status: 503 } : { text: ['Back.'], usage: { input: 7, output: 3 } }
  })
  const world = new NativeWorld({
    target: server.target(),
    deps: { again: { times: 1, firstMs: 1, mostMs: 1, longestMs: 1 } },
  })
  await world.run()
  t.match(world.find('error'), exactly({ code: 'provider-outage' }))
  t.match(world.find('usage'), exactly({ inputTokens: 100 }))
  away = false
  const { state } = world
  world.log.length = 0
  await world.run(2, { run: 'r-9', state, since: [], resume: { reason: 'outage' } })
  t.equal(world.prose, 'Back.\n')
  t.match(world.find('usage'), exactly({ inputTokens: 7, outputTokens: 3, numTurns: 1 }))
  t.equal(world.calls.length, 1)
})

void t.test('a turn that comes from another provider continues from its frames', async t => {
  const server = await modelServer(t, 'anthropic', [{ text: ['Going on.'] }])
  const world = new NativeWorld({ target: server.target() })
  world.log.push(
    { kind: 'session', sessionId: 'script-c-1' },
    { kind: 'init', model: 'script' },
    { kind: 'delta', text: 'I began.' },
    { kind: 'text_end' },
    { kind: 'tool_call', id: 'c1', name: 'Shell', category: 'execute', status: 'completed', target: 'make' },
    { kind: 'switched', provider: 'endpoint/e-1', harness: 'native', kept: 'record' },
  )
  await world.run(2, { resume: { reason: 'switched' } })
  t.match(server.told(0), /do it.*I began\..*\[Shell make: completed\].*You were interrupted/)
  t.equal(world.find('session').at(-1)!.sessionId, 'native-c-1')
  t.match(world.prose, /Going on/)
})

void t.test('a turn that switches to another provider ends without more text', async t => {
  const server = await modelServer(t, 'openai', [
    { calls: [{ name: 'Read', input: { path: 'a' } }], usage: { input: 70, output: 7 } },
  ])
  const world = new NativeWorld({
    target: server.target(),
    tool: () => {
      world.moves = true
      return done('read')
    },
  })
  await world.run()
  t.equal(world.kinds.at(-1), 'tool_call_update')
  t.equal(server.requests.length, 1)
  t.match(world.find('usage'), exactly({ inputTokens: 70, outputTokens: 7, numTurns: 1 }), 'what it used is not lost')
})
