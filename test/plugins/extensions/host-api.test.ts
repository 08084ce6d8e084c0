import { createServer } from 'node:http'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { walled } from '../../attack/support.js'
import { modelServer, type ScriptedReply } from '../../support/servers/model-server.js'
import { framesOf } from '../../support/turns.js'
import { exactly } from '../../support/lists.js'
import { extensionDaemon } from '../../support/extensions/world.js'

/** A server on a port of this machine that answers with what it got. */
const recording = async (t: Test): Promise<{ url: string; port: number; seen: string[] }> => {
  const seen: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', piece => (body += piece))
    request.on('end', () => {
      seen.push(`${request.method} ${request.url} ${request.headers['x-key'] ?? ''} ${body}`)
      if (request.url === '/away') response.writeHead(302, { location: 'http://127.0.0.2/' }).end()
      else response.end(JSON.stringify({ key: request.headers['x-key'], body }))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}`, port, seen }
}

t.test('the host of a backend', walled(), async t => {
  const outside = await recording(t)
  const daemon = await extensionDaemon(t, {
    groups: [
      'workspace',
      'secrets',
      'settings',
      'activity',
      'agents',
      'agent',
      'git',
      'history',
      'areas',
      'system',
      'endpoints',
      'capabilities',
    ],
    files: { 'README.md': '# work\n', 'docs/a.md': 'a\n' },
  })
  await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await daemon.client.call('POST /secrets', { key: 'API_KEY', value: 'value-of-the-key-1234' })
  for (const [id, config] of [
    ['tracker', { provider: 'token', name: 'TRACKER', token: 'value-of-tracker-5678' }],
    ['forge', { provider: 'github', token: 'value-of-forge-5678' }],
  ] as const)
    for await (const _ of await daemon.client.call('POST /capabilities', { id, kind: 'cli', config }));
  daemon.world.settings.set('acme.all', { color: 'blue' })
  const status = await daemon.run('acme.all', {
    manifest: {
      contributes: {
        settings: [{ key: 'color', type: 'string', title: 'Color' }],
        tools: [
          {
            name: 'count-words',
            title: 'Count',
            description: 'Counts words.',
            input: { type: 'object' },
            readOnly: true,
          },
        ],
      },
      permissions: {
        daemon: ['GET /workspace/tree', 'GET /workspace/file'],
        sandbox: [
          `net:127.0.0.1:${outside.port}`,
          'secret:API_*',
          'connection:token',
          'fs:read:docs/**',
          'fs:write:out/**',
          'run:cat',
          'event:workspaceChanged',
          'serve:viewer:POST /echo',
          'event:ext.acme.all.note',
        ],
      },
    },
    server: `export const activate = host => {
      const route = (entry, answer) => host.routes.handle(entry, {}, async request => {
        try { return { body: { value: await answer(request) } } } catch (error) {
          return { status: 422, body: { message: error.message, code: error.code, entry: error.entry } }
        }
      })
      route('GET /storage', async () => {
        await host.storage.set('../a', { n: 1 })
        await host.storage.set('b', 'text')
        return [await host.storage.get('../a'), await host.storage.get('none') === undefined,
          (await host.storage.list()).keys,
          await host.storage.compareAndSet('b', 'other', 1), await host.storage.compareAndSet('b', 'text', 2),
          await host.storage.compareAndSet('new', undefined, 3), await host.storage.delete('../a'),
            await host.storage.delete('../a'),
          (await host.storage.list('', { limit: 1 }))]
      })
      route('GET /kept', () => host.storage.get('b'))
      route('GET /large', () => host.storage.set('large', 'x'.repeat(1024 * 1024)))
      route('GET /settings', () => host.settings.get())
      const changes = []
      host.settings.onChange(keys => changes.push(keys))
      route('GET /changes', () => changes)
      route('GET /dialled', async request => (await host.fetch('${outside.url}/dialled', {
        headers: { 'x-key': '{{secret:' + request.query.of + '/token}}' },
      })).status)
      route('GET /secret', async () => [await host.secrets.ref('API_KEY'), await host.secrets.has('API_KEY'),
        await host.secrets.has('API_NONE'),
        Buffer.from(await host.secrets.hmac('API_KEY', 'sha256', Buffer.from('data'))).toString('hex')])
      route('GET /fetch', async () => {
        const response = await host.fetch('${outside.url}/path', { method: 'POST', query: { q: 'a b' },
          headers: { 'x-key': await host.secrets.ref('API_KEY') },
            body: (async function* () { yield Buffer.from('one '); yield Buffer.from('two') })() })
        return [response.status, await response.json()]
      })
      route('GET /away', () => host.fetch('${outside.url}/away'))
      route('GET /connect', async () => {
        const socket = await host.connect({ host: '127.0.0.1', port: ${outside.port} })
        await socket.send('GET /raw HTTP/1.0\\r\\n\\r\\n')
        let text = ''
        for await (const piece of socket.frames) text += Buffer.from(piece)
        return text.split('\\r\\n')[0]
      })
      route('GET /call', async () => Object.keys(await host.call('GET /workspace/file',
        { path: 'docs/a.md' })).sort())
      route('GET /files', async () => {
        await host.files.write('out/deep/b.txt', 'written')
        await host.files.move('out/deep/b.txt', 'out/c.txt')
        await host.files.write('.sandbox/x/acme.all/own.txt', 'own')
        return [Buffer.from(await host.files.read('out/c.txt')).toString(),
          (await host.files.list('.')).map(entry => entry.name),
          (await host.files.stat('docs/a.md')).size, await host.files.stat('docs/none') === undefined,
          Buffer.from(await host.files.read('.sandbox/x/acme.all/own.txt')).toString()]
      })
      route('GET /run', async () => {
        const { code, stdout } = await host.processes.run('cat', ['a.md', '-'], { cwd: 'docs', input: 'in' })
        const none = await host.processes.run('cat', ['/workspace/README.md', '/etc/shadow', '/proc/net/tcp'])
        return [code, Buffer.from(stdout).toString(), none.code]
      })
      host.routes.handle('POST /echo', {}, request => ({ status: 201, headers: { etag: '"1"' }, body: request.body }))
      host.routes.handle('GET /stream', {}, () => ({ stream: (async function* () { yield { data: { n: 1 } };
        yield { event: 'done', data: {} } })() }))
      const notes = []
      host.events.on('ext.acme.all.note', event => notes.push(event))
      route('GET /publish', async () => {
        host.events.publish('note', { hello: 1 })
        while (notes.length === 0) await new Promise(done => setTimeout(done, 5))
        return notes
      })
      const seen = []
      host.events.on('workspaceChanged', event => seen.push(...event.paths))
      const watched = []
      host.files.watch('docs/*', paths => watched.push(...paths))
      route('GET /seen', () => [seen, watched])
      const due = []
      route('GET /schedule', async () => {
        await host.schedule.at('soon', Date.now() + 20, () => due.push('soon'))
        await host.schedule.cron('yearly', '0 0 1 1 *', () => due.push('yearly'))
        while (due.length === 0) await new Promise(done => setTimeout(done, 5))
        return due
      })
      host.tools.handle('count-words', async (input, context) => {
        context.progress('counting')
        if (input.text === 'throw') throw new Error('cannot count')
        if (input.text === 'exit') process.exit(7)
        return { text: String(input.text.split(' ').length), data: { counted: true } }
      })
    }`,
  })
  t.match(status, { state: 'running' })
  const value = async (path: string) => ((await daemon.ask('acme.all', path)).body as { value: unknown }).value

  await t.test('keeps values durably, under any key', async t => {
    t.same(await value('/storage'), [
      { n: 1 },
      true,
      ['../a', 'b'],
      false,
      true,
      true,
      true,
      false,
      { keys: ['b'], next: 'b' },
    ])
    t.match(await daemon.ask('acme.all', '/large'), {
      status: 422,
      body: { code: 'too-large', message: /at most 1048576 bytes/ },
    })
    await daemon.world.runtime!.start(daemon.world.runtime!.of('acme.all').extension)
    await daemon.until('acme.all', ({ state }) => state === 'running')
    t.equal(await value('/kept'), 2, 'after a restart of the backend')
  })

  await t.test('gives settings, and tells which changed', async t => {
    t.same(await value('/settings'), { color: 'blue' })
    daemon.world.runtime!.settingsChanged('acme.all', ['color'])
    t.same(await value('/changes'), [['color']])
  })

  await t.test('fills in the references of connections that an entry names the card of, and of no others', async t => {
    t.equal(await value('/dialled?of=tracker'), 200)
    t.match(outside.seen.at(-1), 'value-of-tracker-5678')
    const asked = outside.seen.length
    const refused = async (of: string) => (await daemon.fetch(`/x/acme.all/dialled?of=${of}`)).json()
    t.match(await refused('forge'), { message: /no entry connection:github/ })
    t.match(await refused('nobody'), { message: /no connection "nobody"/ })
    t.equal(outside.seen.length, asked)
  })

  await t.test('gives secrets by reference alone', async t => {
    t.match(await value('/secret'), exactly('{{secret:API_KEY}}', true, false, /^[0-9a-f]{64}$/))
  })

  await t.test('asks servers that an entry names, with values put in and masked in the answer', async t => {
    t.same(await value('/fetch'), [200, { key: '{{secret:API_KEY}}', body: 'one two' }])
    t.match(outside.seen, /POST \/path\?q=a\+b value-of-the-key-1234 one two/)
    t.match(await daemon.ask('acme.all', '/away'), { status: 422, body: { code: 'denied', entry: 'net:127.0.0.2:80' } })
    t.equal(await value('/connect'), 'HTTP/1.1 200 OK')
  })

  await t.test('makes calls that an entry names', async t => {
    t.ok(((await value('/call')) as string[]).length > 0)
    t.ok(daemon.world.used.includes('acme.all GET /workspace/file'))
  })

  await t.test('reads and writes files within the entries', async t => {
    t.same(await value('/files'), ['written', ['.sandbox', 'docs', 'out'], 2, true, 'own'])
    t.equal(readFileSync(join(daemon.workspace, 'out/c.txt'), 'utf8'), 'written')
  })

  await t.test('runs a program that sees the folders of the entries alone', async t => {
    t.same(await value('/run'), [0, 'a\nin', 1])
  })

  await t.test('receives events, and publishes its own', async t => {
    t.same(await value('/publish'), [{ name: 'note', data: { hello: 1 } }])
  })

  await t.test('does work at its time', async t => {
    t.same(await value('/schedule'), ['soon'])
  })

  await t.test('answers bodies, streams and refusals over HTTP', async t => {
    const echo = await daemon.ask('acme.all', '/echo', { method: 'POST', body: '{"a":[1]}' })
    t.match(echo, { status: 201, body: { a: exactly(1) } })
    t.equal(echo.headers.get('etag'), '"1"')
    t.equal((await daemon.ask('acme.all', '/echo', { method: 'POST', body: '{' })).status, 400)
    const large = 'x'.repeat(3 * 1024 * 1024)
    const bytes = await daemon.ask('acme.all', '/echo', {
      method: 'POST',
      body: large,
      headers: { 'content-type': 'text/plain' },
    })
    t.equal(bytes.body, large, 'bytes in pieces')
    t.match((await daemon.ask('acme.all', '/stream')).body, /event: message\ndata: \{"n":1\}\n\nevent: done/)
    t.equal((await daemon.ask('acme.all', '/none')).status, 404)
    t.equal((await daemon.ask('acme.none', '/x')).status, 404)
    daemon.world.off.add('acme.all')
    t.equal((await daemon.ask('acme.all', '/kept')).status, 409)
    daemon.world.off.delete('acme.all')
    const { token } = await daemon.token('read')
    const echoed = await daemon.fetch('/x/acme.all/echo', {
      method: 'POST',
      body: '{}',
      headers: { authorization: '', 'x-sandbox-control': token },
    })
    t.equal(echoed.status, 201, 'an entry serve: lowers the role')
  })

  await t.test('serves tools that a turn uses', async t => {
    const server = await modelServer(t, 'openai', ({ text }): ScriptedReply => {
      if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
      const { messages } = JSON.parse(text) as { messages: { role: string }[] }
      const used = messages.filter(({ role }) => role === 'tool').length
      const input = { text: ['one two three', 'throw', 'exit'][used] }
      return used === 3 ? { text: ['Done.'] } : { calls: [{ name: 'acme_all__count_words', input }] }
    })
    await daemon.client.call('POST /endpoints', {
      id: 'local',
      kind: 'server',
      protocol: 'openai',
      baseUrl: server.target().baseUrl,
    })
    await daemon.client.call('POST /agent', {
      conversationId: 'c',
      agent: 'endpoint/local',
      model: 'm',
      prompt: 'count',
    })
    const frames = (await framesOf(daemon.client, 'c').all()).map(({ event }) => event)
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    const updates = frames.filter(({ kind }) => kind === 'tool_call_update').map(frame => JSON.stringify(frame))
    const at = (text: string) => updates.findIndex(each => each.includes(text))
    t.ok(at('"text":"counting"') >= 0, 'its progress is shown')
    t.ok(at('"text":"3"') > at('"text":"counting"'))
    t.match(JSON.stringify(frames), /failed: Error: cannot count/)
    const last = updates.findLast(update => update.includes('"status":"failed"'))
    t.match(last, /count-words failed: the extension is not running: its process ended with 7/)
  })
})
