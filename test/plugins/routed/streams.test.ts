import Anthropic from '@anthropic-ai/sdk'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { GROUPS, routedWorld } from './support.js'

/** A server of chat completions that says each piece when it is told to. */
const heldServer = async (t: Test) => {
  const open: ServerResponse[] = []
  let closed = 0
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    response.on('close', () => closed++)
    open.push(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked: (nth: number) => until(() => open.length === nth),
    closed: () => closed,
    say: (content: string) => {
      const choices = [{ index: 0, delta: { content }, finish_reason: null }]
      open
        .at(-1)!
        .write(
          `data: ${JSON.stringify({ id: 'a', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`,
        )
    },
  }
}

t.test('answers arrive as they are produced, and a client that leaves ends the request', async t => {
  const held = await heldServer(t)
  const it = await routedWorld(t, { providers: { acme: { baseUrl: held.url } } })
  await it.signIn('acme')
  let nth = 0
  for (const protocol of ['messages', 'chat'] as const) {
    const { baseUrl, bearer, model } = await it.access('acme', { protocol })
    const path = protocol === 'chat' ? '/v1/chat/completions' : '/v1/messages'
    const gone = new AbortController()
    const closedBefore = held.closed()
    const asked = fetch(baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}` },
      body: JSON.stringify({ model, max_tokens: 9, stream: true, messages: [{ role: 'user', content: 'x' }] }),
      signal: gone.signal,
    })
    await held.asked(++nth)
    await until(async () => (await it.call('GET /translator')).requests.inFlight === 1)
    held.say('first')
    const reader = (await asked).body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const has = async (word: string) => {
      while (!text.includes(word)) text += (await reader.read()).value ?? ''
    }
    await has('first')
    t.notMatch(text, /second/)
    held.say('second')
    await has('second')
    t.equal(held.closed(), closedBefore, 'nothing has ended')
    gone.abort()
    await until(() => held.closed() > closedBefore)
    await until(async () => (await it.call('GET /translator')).requests.inFlight === 0)
  }
})

t.test('what the shield masks leaves masked, and comes back restored', async t => {
  const model = await modelServer(t, 'openai', () => ({
    text: ['write to [[EMA', 'IL_1]] now'],
    calls: [{ name: 'mail', raw: '{"to":"[[EMAIL_1]]"}' }],
    usage: { input: 3, output: 2 },
  }))
  const reported: object[] = []
  const it = await routedWorld(t, {
    groups: GROUPS,
    providers: { acme: { baseUrl: `${model.address}/v1` } },
    fakes: {
      'shield.trustOf': () => ({ enabled: true, trust: 'shielded', why: 'default' }) as never,
      'shield.outbound': ({ texts }) => ({
        verdict: 'masked' as const,
        texts: texts.map(text => text.replaceAll('ada@example.org', '[[EMAIL_1]]')),
        tokens: [{ token: '[[EMAIL_1]]', value: 'ada@example.org' }],
      }),
      'shield.inbound': report => {
        reported.push(report)
        return { ok: true } as const
      },
    },
  })
  await it.signIn('acme')
  for (const protocol of ['chat', 'messages'] as const) {
    const { baseUrl, bearer, model: name } = await it.access('acme', { protocol })
    const client = new Anthropic({ baseURL: baseUrl, apiKey: bearer, maxRetries: 0 })
    const answer = await client.messages
      .stream({ model: name, max_tokens: 9, messages: [{ role: 'user', content: 'to ada@example.org' }] })
      .finalMessage()
    t.match(answer.content, exactly({ text: 'write to ada@example.org now' }, { input: { to: 'ada@example.org' } }))
    t.notMatch(model.told(-1), /ada@/)
    t.match(model.told(-1), /to \[\[EMAIL_1\]\]/)
  }
  await until(() => reported.length === 2)
  t.match(reported[0], { conversationId: 'one', restored: { '[[EMAIL_1]]': 2 } })
})

t.test('a request that the shield refuses is not sent', async t => {
  const model = await modelServer(t, 'openai', [{ text: ['x'] }])
  const it = await routedWorld(t, {
    providers: { acme: { baseUrl: `${model.address}/v1` } },
    fakes: {
      'shield.trustOf': () => ({ enabled: true, trust: 'blocked', why: 'default' }) as never,
      'shield.outbound': () => ({ verdict: 'refused' as const, message: 'the shield keeps this here' }),
    },
  })
  await it.signIn('acme')
  const { baseUrl, bearer, model: name } = await it.access('acme')
  const refused = await new Anthropic({ baseURL: baseUrl, apiKey: bearer, maxRetries: 0 }).messages
    .create({ model: name, max_tokens: 9, messages: [{ role: 'user', content: 'x' }] })
    .catch((error: unknown) => error)
  t.match(refused, { status: 403, message: /the shield keeps this here/ })
  t.same(model.requests, [])
})
