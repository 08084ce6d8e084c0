import t from 'tap'
import type { UserMessage } from '../../../../plugins/agent/providers/adapter.js'
import { exactly } from '../../../support/lists.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { done, nativeRun, NativeWorld, type NativeSetup } from './native-support.js'

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
