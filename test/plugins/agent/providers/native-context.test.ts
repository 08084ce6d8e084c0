import t from 'tap'
import type { UserMessage } from '../../../../plugins/agent/providers/adapter.js'
import { exactly } from '../../../support/lists.js'
import { modelServer, type SeenRequest } from '../../../support/servers/model-server.js'
import { DEAD, done, nativeRun, NativeWorld, type NativeSetup } from './native-support.js'

const WINDOW = 40_000
const NUMBERS = Array.from({ length: 60_000 }, (_, n) => `${n + 1}\n`).join('')

t.test('one large result leaves the request and what was decided before it in the conversation', async t => {
  const server = await modelServer(t, 'openai', (request, nth) => {
    // As such a server counts: digits are short tokens.
    const input = Math.ceil(request.text.length / 3)
    if (input > WINDOW) return { status: 400, body: '{"error":{"message":"maximum context length is 40000 tokens"}}' }
    if (/summary/i.test(JSON.stringify(request.body.messages?.at(-1)))) return { text: ['It counted.'] }
    const call = { name: 'Shell', input: { command: 'seq 1 60000' } }
    return nth < 2 ? { calls: [call], usage: { input, output: 10 } } : { text: ['done'], usage: { input, output: 10 } }
  })
  const world = await nativeRun(
    server.target({ models: [{ id: 'm', label: 'm', contextWindow: WINDOW, efforts: [], badges: [] }] }),
    { request: { prompt: 'Use tabs, never blanks. Count to 60000.' }, tool: () => done(NUMBERS) },
  )
  t.equal(world.prose, 'done\n')
  const last = server.requests.at(-1)!
  t.match(last.text, /Use tabs, never blanks\. Count to 60000\./)
  t.match(last.text, /59999/, 'the newest result is there in part')
})

t.test('a turn is made shorter in its middle when a person asks for it, and goes on with its task', async t => {
  const server = await modelServer(t, 'openai', (request, nth) => {
    const usage = { input: Math.ceil(request.text.length / 3.5), output: 10 }
    if (/Write a summary/.test(request.text)) return { text: ['Much was read.'], usage }
    return nth < 9 ? { calls: [{ name: 'Read', input: { path: `f${nth}` } }], usage } : { text: ['done'], usage }
  })
  const said: UserMessage[] = []
  const world = await nativeRun(
    server.target({ models: [{ id: 'm', label: 'm', contextWindow: 200_000, efforts: [], badges: [] }] }),
    {
      request: { prompt: 'Read all of it.', words: 'Read all of it.' },
      said,
      tool: ({ input }) => {
        const seventh = (input as { path?: string }).path === 'f6'
        if (seventh) said.push({ messageId: 'm-2', text: '/compact the names', attachments: [] })
        return done('it reads\n'.repeat(2_000))
      },
    },
  )
  t.match(world.find('compact'), exactly({ trigger: 'manual' }))
  t.equal(world.prose, 'done\n')
  const summing = server.requests.filter(({ text }) => /Write a summary/.test(text))
  t.match(summing, exactly({ text: /Above all, keep: the names/ }))
  const last = server.requests.at(-1)!.text
  for (const words of ['Read all of it.', 'Much was read.', '- f2']) t.match(last, words)
  t.notMatch(last, '/compact')
})

t.test('a kill at any step of making it shorter loses neither the task nor the result that is read next', async t => {
  const setup = async (): Promise<NativeSetup> => {
    const server = await modelServer(t, 'openai', (request, nth) => {
      const usage = { input: Math.ceil(request.text.length / 3), output: 10 }
      if (/Write a summary/.test(JSON.stringify(request.body.messages?.at(-1)))) return { text: ['It counted.'], usage }
      const counts = request.body.messages?.filter(({ role }) => role === 'tool').length ?? 0
      return nth === 0 || counts < 1
        ? { calls: [{ name: 'Shell', input: { command: 'seq 1 60000' } }], usage }
        : { text: ['done'], usage }
    })
    return {
      target: server.target({ models: [{ id: 'm', label: 'm', contextWindow: WINDOW, efforts: [], badges: [] }] }),
      request: { prompt: 'Use tabs, never blanks.', words: 'Use tabs, never blanks.' },
      tool: () => done(NUMBERS),
    }
  }
  const whole = await new NativeWorld(await setup()).run()
  t.equal(whole.find('compact').length, 1)
  for (let step = 1; step <= whole.steps; step += 2) {
    const world = new NativeWorld(await setup())
    world.dieAt = step
    await world.run()
    world.dieAt = Infinity
    await world.run(2)
    const entries = (await world.sessions.read('native-c-1')) ?? []
    t.match(JSON.stringify(entries), 'Use tabs, never blanks.', `step ${step}`)
    t.match(world.prose, /done\n$/, `step ${step}`)
  }
})

const COMPACT = { prompt: '/compact', words: '/compact' }
const IN = { models: [{ id: 'm', label: 'm', contextWindow: WINDOW, efforts: [], badges: [] }] }
const asksForSummary = ({ body: { messages = [] } }: SeenRequest): boolean =>
  /Write a summary/.test(JSON.stringify(messages.at(-1)))

t.test('words that come while a command makes it shorter are worked on, whenever it is killed', async t => {
  const begun = async (): Promise<NativeWorld> => {
    const said: UserMessage[] = []
    const server = await modelServer(t, 'openai', request => {
      const usage = { input: Math.ceil(request.text.length / 3), output: 10 }
      if (asksForSummary(request)) {
        const words = { messageId: 'm-2', text: 'Now use blanks.', attachments: [] }
        said.push(words)
        world.log.push({ kind: 'steer', sentAt: 0, ...words })
        return { text: ['Much was read.'], usage }
      }
      if (/Now use blanks/.test(request.text)) return { text: ['blanks it is'], usage }
      const reads = request.body.messages?.filter(({ role }) => role === 'tool').length ?? 0
      return reads < 3 ? { calls: [{ name: 'Read', input: { path: 'a' } }], usage } : { text: ['tabs it is'], usage }
    })
    const world: NativeWorld = new NativeWorld({
      ...{ target: server.target(IN), said, tool: () => done('it reads\n'.repeat(900)) },
    })
    return world.run(1, { prompt: 'Use tabs.', words: 'Use tabs.' })
  }
  const whole = await begun()
  whole.steps = 0
  await whole.next(COMPACT)
  t.match(whole.find('compact'), exactly({ trigger: 'manual' }))
  t.match(whole.prose, /made shorter.*\nblanks it is\n$/)
  for (let step = 1; step <= whole.steps; step += 3) {
    const world = await begun()
    world.steps = 0
    world.dieAt = step
    await world.next(COMPACT)
    world.dieAt = Infinity
    await world.run(2, COMPACT)
    t.match(world.prose, /blanks it is\n$/, `step ${step}`)
  }
})

t.test('a command takes up nothing that a person stopped', async t => {
  const server = await modelServer(t, 'openai', request =>
    asksForSummary(request)
      ? { text: ['Nothing much.'] }
      : { calls: [{ name: 'Shell', input: { command: 'rm -r build' } }] },
  )
  const world: NativeWorld = new NativeWorld({
    target: server.target(IN),
    tool: async () => {
      world.stop.abort()
      throw DEAD
    },
  })
  await world.run()
  t.equal(world.calls.length, 1)
  const after = new NativeWorld({ target: server.target(IN) })
  await after.sessions.write('native-c-1', (await world.sessions.read('native-c-1')) ?? [])
  after.sessionId = 'native-c-1'
  await after.next(COMPACT)
  t.match(after.prose, /the conversation is short\.\n$/)
  t.equal(after.calls.length, 0)
})

t.test('a shortcut of the code that is said in the middle of a turn is its text', async t => {
  const said = [{ messageId: 'm-2', text: '/review a.ts', attachments: [] }]
  const server = await modelServer(t, 'openai', [{ text: ['ok'] }])
  const commands = [{ name: 'review', description: '', text: 'Review $1 well.', path: '.claude/commands/review.md' }]
  await nativeRun(server.target(), { said, request: { commands } })
  t.match(server.requests[0]!.text, /Review a\.ts well\./)
})

t.test('an account that is used up loses nothing, and a summary is written without refused pictures', async t => {
  const folder = t.testdir({ 'p.png': Buffer.from('89504e470d0a1a0a', 'hex') })
  const picture = { path: 'p.png', absolute: `${folder}/p.png`, mime: 'image/png', bytes: 8 }
  let [paid, sees] = [true, true]
  const server = await modelServer(t, 'openai', request => {
    const usage = { input: Math.ceil(request.text.length / 3), output: 10 }
    if (!paid) return { status: 402, body: '{"error":{"message":"no credit"}}' }
    if (!sees && /base64/.test(request.text))
      return { status: 400, body: '{"error":{"message":"this model takes no image input"}}' }
    if (asksForSummary(request)) return { text: ['Much was read.'], usage }
    const reads = request.body.messages?.filter(({ role }) => role === 'tool').length ?? 0
    return reads < 3 ? { calls: [{ name: 'Read', input: { path: 'a' } }], usage } : { text: ['ok'], usage }
  })
  const world = new NativeWorld({ target: server.target(IN), tool: () => done('it reads\n'.repeat(900)) })
  await world.run(1, { attachments: [picture] })
  const before = await world.sessions.read('native-c-1')
  paid = false
  await world.next(COMPACT)
  t.match(world.find('error'), exactly({ code: 'not-entitled' }))
  t.strictSame(await world.sessions.read('native-c-1'), before)
  ;[paid, sees] = [true, false]
  await world.next(COMPACT)
  t.match(world.find('notice'), exactly({ text: /no pictures/ }))
  t.match(JSON.stringify(await world.sessions.read('native-c-1')), 'Much was read.')
  await world.next({ prompt: 'Go on.', words: 'Go on.' })
  t.equal(world.prose, 'ok\n', 'a picture beside a summary is left out as well')
})
