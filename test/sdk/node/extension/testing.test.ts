import t from 'tap'
import { hostFor } from '../../../../sdk/node/extension/testing.js'
import type { ExtensionHost } from '../../../../sdk/node/extension/host.js'

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
})

t.test('calls that the manifest does not name are refused as by the daemon', async t => {
  const { host } = hostFor(t, manifest)
  await t.rejects(host.call('GET /agents', {} as never), { code: 'denied', entry: 'GET /agents' })
  await t.rejects(host.files.read('README.md'), { code: 'denied', entry: 'fs:read:README.md' })
  await t.rejects(host.fetch('https://example.com/'), { code: 'denied', entry: 'net:example.com:443' })
  await t.rejects(host.secrets.ref('KEY'), { code: 'denied', entry: 'secret:KEY' })
})
