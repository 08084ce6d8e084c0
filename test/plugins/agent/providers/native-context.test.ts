import t from 'tap'
import { modelServer } from '../../../support/servers/model-server.js'
import { done, nativeRun } from './native-support.js'

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
