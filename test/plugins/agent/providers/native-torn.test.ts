import t from 'tap'
import type { EndpointTarget, WireProtocol } from '../../../../plugins/endpoints/contract.js'
import { askModel } from '../../../../plugins/agent/providers/native/ask.js'
import { spokenIn } from '../../../../plugins/agent/providers/native/spoken.js'
import { modelWire } from '../../../../plugins/agent/providers/native/wire.js'
import { streamedAs } from '../../../support/servers/model-server.js'

const again = { times: 0, firstMs: 1, mostMs: 1, longestMs: 1 }

/** The frames and the result when the bytes of an answer arrive in these pieces. */
const answerTo = async (protocol: WireProtocol, pieces: readonly Uint8Array[]): Promise<string> => {
  const target: EndpointTarget = {
    id: 'e',
    label: 'E',
    protocol,
    baseUrl: 'http://model.test',
    headers: {},
    local: true,
    models: [],
    default: 'm',
  }
  const send: typeof fetch = async () =>
    new Response(
      new ReadableStream({
        start: controller => {
          for (const piece of pieces) controller.enqueue(piece)
          controller.close()
        },
      }),
    )
  const { model } = await modelWire(target, 'm', {}, undefined, send)
  const told: unknown[] = []
  const asking = askModel({
    model,
    call: { prompt: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] },
    io: { signal: new AbortController().signal, gap: async () => false },
    spoken: spokenIn([]),
    again,
  })
  for (;;) {
    const { value, done } = await asking.next()
    // Ids that a package generates differ between answers.
    if (done) return JSON.stringify([told, value]).replaceAll(/"id":"[\w-]{16}"/g, '"id":"made up"')
    told.push(value)
  }
}

for (const protocol of ['openai', 'anthropic', 'ollama'] as const) {
  void t.test(`${protocol}: an answer split at any byte gives the same frames and calls`, async t => {
    const bytes = Buffer.from(
      streamedAs(protocol, {
        thoughts: ['wo', 'zu'],
        text: ['Grüße ', '🌍 ', 'und "mehr"\n'],
        calls: [
          { name: 'Read', input: { path: 'ä.txt' } },
          { name: 'Shell', input: { command: 'echo "x"' } },
        ],
        usage: { input: 11, output: 7 },
      }).join(''),
    )
    const whole = await answerTo(protocol, [bytes])
    t.match(whole, /Grüße .*🌍 .*ä\.txt.*"input":11,"output":7/)
    const wrong: number[] = []
    for (let at = 1; at < bytes.length; at++) {
      if ((await answerTo(protocol, [bytes.subarray(0, at), bytes.subarray(at)])) !== whole) wrong.push(at)
    }
    t.strictSame(wrong, [], `${bytes.length} places`)
    t.equal(
      await answerTo(
        protocol,
        Array.from(bytes, byte => Uint8Array.of(byte)),
      ),
      whole,
      'byte by byte',
    )
  })

  void t.test(`${protocol}: an answer that ends before its end marker never counts as complete`, async t => {
    const pieces = streamedAs(protocol, { text: ['Some ', 'words'], usage: { input: 1, output: 1 } })
    const bytes = Buffer.from(pieces.join(''))
    // The end marker of an answer: its finish reason, its last event, its last line.
    const last = { openai: '"finish_reason":"stop"', anthropic: '"type":"message_stop"', ollama: '"done":true' }
    const end = bytes.lastIndexOf(last[protocol])
    t.ok(end > 0)
    const taken: number[] = []
    for (let at = 0; at < end; at++) {
      const answer = await answerTo(protocol, [bytes.subarray(0, at)]).catch(() => undefined)
      if (answer !== undefined) taken.push(at)
    }
    t.strictSame(taken, [])
  })
}
