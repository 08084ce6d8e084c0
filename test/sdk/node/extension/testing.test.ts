import { createHmac } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hostFor } from '../../../../sdk/node/extension/testing.js'
import type { ExtensionHost, ExtensionModule } from '../../../../sdk/node/extension/host.js'

const manifest = {
  publisher: 'acme',
  name: 'notes',
  permissions: { daemon: ['GET /workspace/tree'], sandbox: ['fs:read:docs/**', 'net:example.org', 'event:presence'] },
  contributes: { tools: [{ name: 'count' }] },
}

const activate = (host: ExtensionHost): void => {
  host.routes.handle('POST /notes/{name}', {}, async ({ params, body }) => {
    await host.storage.set(params.name!, body)
    return { status: 201, body: { kept: params.name } }
  })
  host.routes.handle('GET /tree', {}, async () => ({ body: await host.call('GET /workspace/tree', {} as never) }))
  host.tools.handle('count', input => ({ text: String((input as { text: string }).text.length) }))
  host.events.on('presence', event => host.log.info('seen', event))
}

t.test('an extension is tested without a daemon', async t => {
  const tested = hostFor(t, manifest, {
    calls: { 'GET /workspace/tree': () => ({ entries: 2 }) },
    fetch: ({ url }) => ({ body: `from ${url}` }),
    files: { 'docs/a.md': 'text', 'README.md': 'closed' },
  })
  await tested.activate({ activate })
  t.match(await tested.request('POST /notes/one', { body: { a: 1 } }), { status: 201, body: { kept: 'one' } })
  t.same(tested.stored.get('one'), { a: 1 })
  t.match(await tested.request('GET /tree'), { status: 200, body: { entries: 2 } })
  t.equal(await tested.request('GET /none'), undefined)
  t.match(await tested.tool('count', { text: 'abc' }), { text: '3' })
  await tested.send('presence', { users: 1 })
  t.match(tested.logged[0], { level: 'info', message: 'seen', fields: { users: 1 } })
  const { host } = tested
  t.equal(await (await host.fetch('https://example.org/x')).text(), 'from https://example.org/x')
  t.equal(Buffer.from(await host.files.read('docs/a.md')).toString(), 'text')
  const off = host.routes.handle('GET /once', {}, () => ({ body: 'once' }))
  t.match(await tested.request('GET /once'), { body: 'once' })
  off()
  t.equal(await tested.request('GET /once'), undefined)
})

t.test('calls that the manifest does not name are refused as by the daemon', async t => {
  const { host } = hostFor(t, manifest)
  await t.rejects(host.call('GET /agents', {} as never), { code: 'denied', entry: 'GET /agents' })
  await t.rejects(host.files.read('README.md'), { code: 'denied', entry: 'fs:read:README.md' })
  await t.rejects(host.fetch('https://example.com/'), { code: 'denied', entry: 'net:example.com:443' })
  await t.rejects(host.secrets.ref('KEY'), { code: 'denied', entry: 'secret:KEY' })
})

t.test('files are those of a temporary folder, reached and watched within the entries', async t => {
  const permissions = { sandbox: ['fs:read:docs/**', 'fs:write:out/**'] }
  const seen: string[][] = []
  let folder = ''
  await t.test('while the test runs', async t => {
    const tested = hostFor(t, { ...manifest, permissions }, { files: { 'docs/a.md': 'text', 'README.md': 'closed' } })
    folder = tested.workspace
    const { files } = tested.host
    await files.write('out/deep/b.txt', 'written')
    await files.move('out/deep/b.txt', 'out/c.txt')
    t.equal(readFileSync(join(folder, 'out/c.txt'), 'utf8'), 'written')
    t.equal(Buffer.from(await files.read('out/c.txt', { offset: 2, limit: 3 })).toString(), 'itt')
    t.same(await files.list('docs'), [{ name: 'a.md', type: 'file' }])
    t.same(await files.list('.'), [
      { name: 'docs', type: 'dir' },
      { name: 'out', type: 'dir' },
    ])
    await t.rejects(files.move('out/c.txt', 'README.md'), { code: 'denied', entry: 'fs:write:README.md' })
    await t.rejects(files.list('src'), { code: 'denied', entry: 'fs:read:src' })
    await t.rejects(files.read('docs/none.md'), { code: 'not-found' })
    await files.remove('out/c.txt')
    t.equal(await files.stat('out/c.txt'), undefined)
    const off = files.watch('docs/*', paths => void seen.push(paths))
    await tested.send('workspaceChanged', { paths: ['docs/a.md', 'docs/deep/b.md', 'README.md'] })
    await tested.send('workspaceChanged', { paths: ['docs/a.md'], conversationId: 'private' })
    off()
    await tested.send('workspaceChanged', { paths: ['docs/a.md'] })
    t.same(seen, [['docs/a.md']])
  })
  t.notOk(existsSync(folder), 'the folder is gone with the test')
})

t.test('scheduled work runs in its order when the test moves the clock', async t => {
  const tested = hostFor(t, manifest)
  const { schedule } = tested.host
  const ran: string[] = []
  const ranSince = () => ran.splice(0)
  const off = schedule.every(1, () => void ran.push('every'))
  await schedule.at('late', Date.now() + 2_500, () => void ran.push('late'))
  await schedule.at('past', 0, () => void ran.push('past'))
  t.same(ranSince(), [], 'nothing by itself')
  await tested.tick(1_500)
  t.same(ranSince(), ['past', 'every'])
  await tested.tick(1_500)
  t.same(ranSince(), ['every', 'late', 'every'])
  off()
  await schedule.cron('minutely', '* * * * *', () => void ran.push('minutely'))
  await tested.tick(120_000)
  t.same(ranSince(), ['minutely', 'minutely'])
  await t.rejects(
    schedule.cron('wrong', '61 * * * *', () => {}),
    { code: 'invalid' },
  )
})

t.test('secrets, connections and programs are those of the test, within the entries', async t => {
  const permissions = { sandbox: ['net:example.org', 'run:cat', 'secret:API_*'] }
  const settings = [
    { key: 'color', default: 'red' },
    { key: 'token', secret: true },
    { key: 'unset', secret: true },
  ]
  const sent: unknown[] = []
  const { host } = hostFor(
    t,
    { ...manifest, permissions, contributes: { settings } },
    {
      settings: { token: 'own' },
      secrets: { API_KEY: 'value', OTHER: 'closed' },
      connect: () => ({
        frames: (async function* () {
          yield 'welcome'
        })(),
        send: data => void sent.push(data),
        close: () => void sent.push('closed'),
      }),
      run: ({ program, args }) => ({ code: 3, stdout: [program, ...args].join(' ') }),
    },
  )
  const { settings: given, secrets, processes } = host
  t.same(await given.get(), { color: 'red', token: '{{secret:ext/acme.notes/token}}' })
  t.equal(await secrets.value('token'), 'own')
  await t.rejects(secrets.value('unset'), { code: 'not-found', message: /is stored/ })
  await t.rejects(secrets.value('color'), { code: 'not-found', message: /no secret setting color/ })
  const data = Buffer.from('data')
  const expected = createHmac('sha256', 'value').update(data).digest('hex')
  t.equal(Buffer.from(await secrets.hmac('API_KEY', 'sha256', data)).toString('hex'), expected)
  await t.rejects(secrets.hmac('OTHER', 'sha256', data), { code: 'denied', entry: 'secret:OTHER' })
  const socket = await host.connect({ host: 'example.org', port: 7 })
  await socket.send('hello')
  const frames: unknown[] = []
  for await (const frame of socket.frames) frames.push(frame)
  socket.close()
  await t.rejects(socket.send('late'), { code: 'not-found' })
  t.same([frames, sent], [['welcome'], ['hello', 'closed']])
  await t.rejects(host.connect({ url: 'wss://example.com/' }), { code: 'denied', entry: 'net:example.com:443' })
  const { code, stdout } = await processes.run('cat', ['a.md'])
  t.same([code, Buffer.from(stdout).toString()], [3, 'cat a.md'])
  await t.rejects(processes.run('sh', []), { code: 'denied', entry: 'run:sh' })
  await t.rejects(processes.start('web'), /hostFor does not do processes\.start: use a daemon/)
})

t.test('a listener is tested without a daemon', async t => {
  const listener = { provider: 'chat', events: [{ type: 'message' }] }
  const listening = { ...manifest, contributes: { listener, automationTemplates: [{ id: 'greet' }] } }
  const message = (type: string, provider = 'chat') => ({
    ...{ provider, type, id: '1', channelId: '#a', author: { id: 'u', name: 'Eve' }, content: 'hi', timestamp: 'now' },
  })
  const state = { automations: [], connections: [{ id: 'room', config: { token: '{{secret:room/token}}' } }] }
  const tested = hostFor(t, listening, {
    listener: {
      state,
      dispatch: ({ content }) => [{ matched: ['greeter'] }, { automationId: 'greeter', delta: content }],
    },
  })
  const { host } = tested
  const replies: object[] = []
  let changes = 0
  t.equal(await tested.listener.deliver({ channelId: '#a', text: 'early' }), false, 'it takes none yet')
  const backend: ExtensionModule = {
    activate: ({ listeners }) => {
      listeners.deliver(to => void replies.push(to))
      listeners.onState(() => changes++)
    },
  }
  await tested.activate(backend)
  t.same(await host.listeners.state(), state)
  t.same(await host.listeners.dispatch(message('message')), { matched: ['greeter'] })
  const { matched, frames } = await host.listeners.dispatch(message('message'), { stream: true })
  t.same(matched, ['greeter'])
  const said: object[] = []
  for await (const frame of frames!) said.push(frame)
  t.same(said, [{ automationId: 'greeter', delta: 'hi' }])
  t.equal(tested.listener.dispatched.length, 2)
  await t.rejects(host.listeners.dispatch(message('other')), {
    code: 'invalid',
    status: 400,
    message: /type: expected/,
  })
  await t.rejects(host.listeners.dispatch(message('message', 'mail')), { code: 'invalid', message: /expected chat/ })
  t.equal(await tested.listener.deliver({ channelId: '#a', text: 'hello' }), true)
  t.same(replies, [{ channelId: '#a', text: 'hello' }])
  await tested.listener.changed()
  t.equal(changes, 1)
  await host.listeners.failure('no route')
  await host.listeners.status({ connections: [] })
  t.same([tested.listener.failures, tested.listener.statuses], [['no route'], [{ connections: [] }]])
  const offer = { id: 'offered', title: 'Offered', prompt: 'say hello', trigger: { kind: 'event' as const } }
  await host.automations.offer(offer)
  t.same([...tested.listener.offered.values()], [offer])
  t.same(await host.automations.templates(), [
    { id: 'greet', offered: false, used: 0 },
    { id: 'offered', offered: true, used: 0 },
  ])
  await t.rejects(host.automations.offer({ ...offer, id: 'greet' }), { code: 'conflict' })
  await host.automations.withdraw('offered')
  t.equal(tested.listener.offered.size, 0)
  const other = hostFor(t, manifest)
  await t.rejects(other.host.listeners.state(), { code: 'denied', entry: 'contributes.listener' })
})
