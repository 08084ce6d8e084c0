import t from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { headAndTail, shortText } from '../../../../plugins/agent/outputs/head-and-tail.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { modelServer, type SeenRequest } from '../../../support/servers/model-server.js'
import { framesOf } from '../../../support/turns.js'

const WINDOW = 40_000
const MODEL = { id: 'm', label: 'M', efforts: [], badges: [], contextWindow: WINDOW }
const COUNT = { name: 'Shell', input: { command: 'seq 1 60000' } }
const resultsIn = ({ body: { messages = [] } }: SeenRequest): string[] =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
const WHOLE = /All of it: Read (\S+\.txt) /

/** A model that counts twice, looks into what it did not see, and has the conversation made shorter when asked. */
const counting = (request: SeenRequest, path: { at?: string }) => {
  const messages = request.body.messages ?? []
  // Digits are short tokens.
  const usage = { input: Math.ceil(request.text.length / 2.6), output: 20 }
  if (usage.input > WINDOW)
    return { status: 400, body: `{"error":{"message":"maximum context length is ${WINDOW} tokens"}}` }
  const last = messages.at(-1)!
  if (/Write a summary/.test(JSON.stringify(last))) return { text: ['They had me count.'], usage }
  if (last.role === 'user') return { calls: [COUNT], usage }
  path.at ??= WHOLE.exec(resultsIn(request).join('\n'))?.[1]
  const results = resultsIn(request).join('\n')
  if (!/line 31000 of|\n31000\n/.test(results) && path.at)
    return {
      calls: [
        { name: 'Read', input: { path: path.at, offset: 31_000, limit: 2 } },
        { name: 'Search', input: { query: '^4199\\d$', dir: path.at } },
        { name: 'Search', input: { query: '59998', dir: path.at.replace(/\/[^/]+$/, '') } },
      ],
      usage,
    }
  return { text: ['Counted.'], usage }
}

t.test(
  'a large output leaves room: what the model does not see of it is in a file that Read and Search reach',
  async t => {
    const path: { at?: string } = {}
    const server = await modelServer(t, 'openai', request => counting(request, path))
    const { client } = await daemonWith(t, ['agent', 'agents', 'workspace'], {
      fakes: {
        'endpoints.choices': () => ({
          endpoints: [{ id: 'local', label: 'Local', models: [MODEL], default: 'm', ready: true }],
        }),
        'endpoints.target': () => server.target({ models: [MODEL] }),
      },
    })
    const turn = async (prompt: string): Promise<Frame[]> => {
      await client.call('POST /agent', { conversationId: 'c', agent: 'endpoint/local', prompt })
      return (await framesOf(client, 'c').all()).map(({ event }) => event)
    }
    await turn('Use tabs, never blanks.')
    const [first = ''] = resultsIn(server.requests[1]!)
    t.ok(Buffer.byteLength(first) < 30_300, `${first.length} bytes`)
    t.match(first, /^1\n2\n/)
    t.match(first, /\n60000\n$/)
    t.match(first, /\n\[left out: lines \d+ to \d+ of 60000, \d+ of 348894 bytes\. All of it: Read \//, 'whole lines')
    const seen = resultsIn(server.requests[2]!)
    t.match(seen.at(-3), /^31000\n31001$/)
    t.match(seen.at(-2), `${path.at}\n`)
    t.match(seen.at(-2), /41990: 41990[\s\S]*41999: 41999/)
    t.match(seen.at(-1), /59998: 59998/)
    await turn('Count again, then rename it to TALLY.')
    const frames = await turn('Once more.')
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    const told = server.requests.findLast(({ text }) => !/Write a summary/.test(text))!.text
    for (const words of ['Use tabs, never blanks.', 'rename it to TALLY', 'Once more.']) t.match(told, words)
    t.ok(
      server.requests.every(({ text }) => text.length / 2.6 < WINDOW),
      'each request fits',
    )

    t.match(await client.call('GET /agent/commands', { agent: 'endpoint/local' }), {
      commands: exactly({ name: 'compact' }),
    })
    const shorter = await turn('/compact the name TALLY')
    t.match(server.requests.at(-1)!.text, /Above all, keep: the name TALLY/)
    const compact = shorter.find(frame => frame.kind === 'compact')
    t.match(compact, { trigger: 'manual', detail: /earlier entries became a summary/ })
    const meter = shorter.findLast(frame => frame.kind === 'context_usage')
    t.ok(meter?.kind === 'context_usage' && meter.tokens < compact!.preTokens! && meter.contextWindow === WINDOW)
    t.match(
      shorter.find(({ kind }) => kind === 'delta'),
      { text: /made shorter/ },
    )
    await turn('Go on.')
    const next = server.requests.findLast(({ text }) => /Go on/.test(text))!.text
    for (const words of ['Use tabs, never blanks.', 'TALLY', 'They had me count.']) t.match(next, words)
    t.notMatch(next, '/compact')
  },
)

t.test('the beginning and the end of a text are whole lines where lines are short, and whole characters', async t => {
  const lines = Array.from({ length: 900 }, (_, n) => `line ${n + 1} ä\n`).join('')
  const { head, tail, from, to, lines: all } = headAndTail(lines, 1_000)!
  t.match(head, /^line 1 ä\n[\s\S]*ä\n$/)
  t.match(tail, /^line \d+ ä\n[\s\S]*line 900 ä\n$/)
  t.match(head, `line ${from - 1} ä\n`)
  t.match(tail, new RegExp(`^line ${to + 1} `))
  t.equal(all, 900)
  for (const text of ['ä'.repeat(5_000), `${'漢'.repeat(3_000)}\nend`, `${'x\n'.repeat(20)}${'😀'.repeat(900)}`]) {
    const short = shortText(text, 1_001.4)
    t.notMatch(short, /\ufffd|\d\.\d/)
    t.ok(Buffer.byteLength(short) < 1_100)
  }
  t.equal(headAndTail('short', 1_000), undefined)
})
