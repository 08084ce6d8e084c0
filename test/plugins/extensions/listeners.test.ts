import t from 'tap'
import type { AutomationCatalog } from '../../../plugins/automations/contract.js'
import { walled } from '../../attack/support.js'
import { automation, settled } from '../../support/automations.js'
import { exactly } from '../../support/lists.js'
import { approvePending, daemonWithBackends, listedUntil, recordNamed, writeExtension } from './support.js'

/** Makes the request of its caller as its extension. */
const PROGRAM = `
require('node:http').createServer(async (request, response) => {
  let body = ''
  for await (const piece of request) body += piece
  const { SANDBOX_DAEMON, SANDBOX_EXTENSION_TOKEN } = process.env
  const answer = await fetch(SANDBOX_DAEMON + request.url, {
    method: request.method,
    headers: { 'x-sandbox-extension': SANDBOX_EXTENSION_TOKEN, 'content-type': 'application/json' },
    ...(body && { body }),
  })
  response.writeHead(answer.status)
  for await (const piece of answer.body) response.write(piece)
  response.end()
}).listen(Number(process.env.PORT), '127.0.0.1')
`
const SERVER = `export const activate = host => {
  const delivered = []
  let states = 0
  let told = () => {}
  host.listeners.onState(() => states++)
  host.listeners.deliver(to => { delivered.push(to); told() })
  const served = (entry, answer) => host.routes.handle(entry, {}, async ({ body }) => ({ body: await answer(body) }))
  served('POST /dispatch', message => host.listeners.dispatch(message))
  served('POST /stream', async message => {
    const { matched, frames } = await host.listeners.dispatch(message, { stream: true })
    const all = []
    for await (const frame of frames) all.push(frame)
    return { matched, all }
  })
  served('POST /delivered', async () => {
    while (delivered.length === 0) await new Promise(resolve => (told = resolve))
    return { delivered, states, state: await host.listeners.state() }
  })
  served('POST /offer', template => host.automations.offer(template).then(() => host.automations.templates()))
  served('POST /withdraw', () => host.automations.withdraw('offered').then(() => host.automations.templates()))
}
`
const id = 'ada.chat'
const listener = {
  provider: 'chat',
  events: [{ type: 'message', label: 'A message' }],
  automation: { label: 'Chat', channel: { label: 'Channel', placeholder: '#help' }, starterPrompt: 'Answer it.' },
}
const template = { id: 'greet', title: 'Greet', prompt: 'say hello', trigger: { kind: 'listener', provider: 'chat' } }
const author = { id: 'u1', name: 'Eve' }
const message = (messageId: string, more: object = {}) => ({
  ...{ provider: 'chat', type: 'message', id: messageId, channelId: '#help', author, content: 'hi', timestamp: 'now' },
  ...more,
})

t.test(
  'messages of a listener start real turns, whose words come back to its process and its backend',
  walled(),
  async t => {
    const groups = [
      'automations',
      'agent',
      'agents',
      'activity',
      'settings',
      'system',
      'usage',
      'secrets',
      'logs',
      'skills',
      'capabilities',
    ]
    const daemon = await daemonWithBackends(t, groups)
    const { client } = daemon
    writeExtension(
      daemon,
      'chat',
      {
        ...{ publisher: 'ada', name: 'chat', version: '1.0.0', server: 'server.mjs' },
        permissions: { sandbox: ['connection:token'] },
        contributes: {
          listener,
          automationTemplates: [template],
          processes: [{ name: 'web', command: 'node web.cjs', port: 'auto' }],
        },
      },
      { 'web.cjs': PROGRAM, 'server.mjs': SERVER },
    )
    await listedUntil(daemon, ({ pending }) => pending.length === 1)
    const before: AutomationCatalog = await client.call('GET /automations/catalog')
    t.match(before.sources, exactly({ provider: 'webchat' }))
    await approvePending(daemon, id)
    t.same((await recordNamed(daemon, id)).problems, [])
    const catalog = await client.call('GET /automations/catalog')
    t.match(catalog.sources, exactly({ provider: 'webchat' }, { provider: 'chat', extension: id, enabled: true }))
    t.match(catalog.templates, exactly({ id: 'greet', extension: id, trigger: { kind: 'listener' } }))
    const trigger = { kind: 'listener', provider: 'chat', eventType: 'message' } as const
    await client.call('POST /automations', automation('greeter', { trigger, prompt: 'say hello there' }))

    await client.call('POST /extensions/{id}/processes/{name}/start', { id, name: 'web' })
    const { port } = await client.call('GET /extensions/{id}/processes/{name}', { id, name: 'web' })
    const asked = async (method: string, path: string, body?: object) => {
      for (;;) {
        const sent = { method, ...(body && { body: JSON.stringify(body) }) }
        const answer = await fetch(`http://127.0.0.1:${port}${path}`, sent).catch(() => undefined)
        if (answer) return { status: answer.status, text: await answer.text() }
        await new Promise(resolve => setImmediate(resolve))
      }
    }
    const asBackend = async (path: string, body: object = {}) =>
      (await daemon.fetch(`/x/${id}${path}`, { method: 'POST', body: JSON.stringify(body) })).json() as Promise<{
        [field: string]: unknown
      }>

    await t.test('a process dispatches and streams', async t => {
      const state = await asked('GET', '/listeners/chat/state')
      t.match(JSON.parse(state.text), {
        automations: exactly({ id: 'greeter', enabled: true }),
        connections: exactly(),
      })
      const { status, text } = await asked('POST', '/listeners/chat/dispatch?stream=1', message('1'))
      t.equal(status, 200)
      const frames = text.split('\n\n').flatMap(event => /^event: message\ndata: (.*)$/m.exec(event)?.[1] ?? [])
      const parsed = frames.map(frame => JSON.parse(frame) as { delta?: string })
      t.same(parsed[0], { matched: ['greeter'] })
      t.equal(
        parsed
          .map(({ delta = '' }) => delta)
          .join('')
          .trim(),
        'hello there',
      )
      t.match(parsed.at(-1), { automationId: 'greeter', end: true })
      const { runs } = await settled(daemon, 'greeter', 1)
      t.match(runs, exactly({ outcome: 'completed', cause: 'listener' }))
      t.same(JSON.parse((await asked('POST', '/listeners/chat/dispatch', message('1'))).text), {
        matched: ['greeter'],
      })
      t.equal((await settled(daemon, 'greeter', 1)).runs.length, 1, 'the same message does nothing again')
    })

    await t.test('what is not its own, and who is not it, is refused', async t => {
      t.equal((await asked('POST', '/listeners/other/dispatch', message('2'))).status, 403)
      t.equal((await asked('GET', '/listeners/chat/nothing')).status, 403)
      t.equal((await asked('POST', '/listeners/chat/dispatch', message('2', { provider: 'other' }))).status, 400)
      t.equal((await asked('POST', '/listeners/chat/dispatch', message('2', { type: 'other' }))).status, 400)
      t.match(await asked('POST', '/listeners/chat/dispatch', { provider: 'chat' }), { status: 400, text: /type/ })
      t.equal((await daemon.fetch('/listeners/chat/state')).status, 403)
      t.equal((await fetch(`${daemon.url}/listeners/chat/state`)).status, 401)
    })

    await t.test('a status shows for a while, a failure is recorded', async t => {
      const connection = { capabilityId: 'c', provider: 'chat', gateway: 'ready' }
      t.equal((await asked('POST', '/listeners/chat/status', { connections: [connection] })).status, 200)
      t.match((await client.call('GET /activity/status')).connections, exactly(connection))
      t.equal((await asked('POST', '/listeners/chat/failure', { detail: 'no route' })).status, 200)
      const { events } = await client.call('GET /activity', { type: 'listener.failed' })
      t.match(events, exactly({ error: 'no route', actor: `extension:${id}` }))
    })

    await t.test('a backend dispatches, streams, and takes the replies', async t => {
      const streamed = await asBackend('/stream', message('3', { channelId: '#two' }))
      t.same(streamed.matched, ['greeter'])
      t.match((streamed.all as { delta?: string }[]).map(({ delta = '' }) => delta).join(''), /hello there/)
      t.same(await asBackend('/dispatch', message('4', { channelId: '#three' })), { matched: ['greeter'] })
      await client.call('POST /automations/{id}/enabled', { id: 'greeter', enabled: true })
      const { delivered, states, state } = await asBackend('/delivered')
      t.match(delivered, exactly({ channelId: '#three', text: 'hello there' }))
      t.ok((states as number) > 0)
      t.match(state, { automations: exactly({ id: 'greeter' }) })
    })

    await t.test(
      'the connections of the cards that its manifest names come with references, and each change',
      async t => {
        await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
        const statesBefore = (await asBackend('/delivered')).states as number
        for (const [of, config] of [
          ['room', { provider: 'token', name: 'ROOM', token: 'value-of-the-room-5678' }],
          ['forge', { provider: 'github', token: 'value-of-the-forge-5678' }],
        ] as const)
          for await (const _ of await client.call('POST /capabilities', { id: of, kind: 'cli', config }));
        const connection = { id: 'room', config: { provider: 'token', name: 'ROOM', token: '{{secret:room/token}}' } }
        const { states, state } = await asBackend('/delivered')
        t.same((state as { connections: object[] }).connections, [connection])
        t.ok((states as number) > statesBefore, 'the backend is told')
        const asProcess = await asked('GET', '/listeners/chat/state')
        t.same((JSON.parse(asProcess.text) as { connections: object[] }).connections, [connection])
        await client.call('DELETE /capabilities/{id}', { id: 'room' })
        t.same(((await asBackend('/delivered')).state as { connections: object[] }).connections, [])
      },
    )

    await t.test('offered automations are in the catalog until they are withdrawn', async t => {
      const offered = { id: 'offered', title: 'Offered', prompt: 'say hello there', trigger: { kind: 'event' } }
      t.match(
        await asBackend('/offer', offered),
        exactly({ id: 'greet', offered: false, used: 0 }, { id: 'offered', offered: true, used: 1 }),
      )
      t.equal((await client.call('GET /automations/catalog')).templates.length, 2)
      t.match(await asBackend('/withdraw'), exactly({ id: 'greet' }))
    })

    await t.test('switched off, nothing of it can be used, and the automation says so', async t => {
      t.same((await client.call('GET /extensions/{id}/removal', { id })).automations, ['greeter'])
      await client.call('POST /extensions/{id}/enabled', { id, enabled: false })
      t.match((await client.call('GET /automations/catalog')).sources, exactly({ provider: 'webchat' }))
      t.match((await client.call('GET /automations')).automations, exactly({ problem: /expected .*found/ }))
    })
  },
)
