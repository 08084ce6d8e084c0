import { join } from 'node:path'
import t from 'tap'
import { walled } from '../../attack/support.js'
import { daemonWith, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { approvePending, daemonWithBackends, writeExtension } from '../extensions/support.js'
import { until } from '../workspace/projects-support.js'
import { show } from './support.js'

const server = (page: string, port = 'process.env.PORT'): string =>
  `require('node:http').createServer((_, r) => r.end('${page}')).listen(${port}, '127.0.0.1')\n`

t.test('two conversations show their own pages on port 3000', walled(), async t => {
  const daemon = await daemonWith(t, [], {
    files: { 'left.cjs': server('left', '3000'), 'right.cjs': server('right', '3000') },
  })
  const { client } = daemon
  const sides = ['left', 'right'] as const
  for (const side of sides)
    await client.call('POST /agent', { conversationId: side, isolated: true, prompt: `run node ${side}.cjs` })
  const rows = await until('both listen', async () => {
    const { ports } = await client.call('GET /ports')
    const found = ports.filter(({ port, conversationId }) => port === 3000 && conversationId !== undefined)
    return found.length === 2 && found
  })
  t.match(rows, exactly(...sides.map(side => ({ conversationId: side, origin: 'agent', kind: 'workspace', cwd: '.' }))))
  const addresses = new Map<string, string>()
  for (const conversationId of sides)
    addresses.set(conversationId, (await client.call('POST /ports/forward', { port: 3000, conversationId })).previewUrl)
  for (const side of sides) t.match(await show(addresses.get(side)!), { status: 200, text: side })
  await client.call('POST /agent/stop', { conversationId: 'left' })
  await until('its program has ended', async () => (await show(addresses.get('left')!)).status === 502)
  t.match(await show(addresses.get('right')!), { status: 200, text: 'right' })
  await client.call('POST /agent/stop', { conversationId: 'right' })
})

t.test('an app has one address, which waits for it and shows nothing else after its end', async t => {
  const { client, workspace } = await daemonWith(t, ['workspace', 'system', 'ports'])
  makeWorkspace(join(workspace, 'shop'), {
    'apps/web/package.json': JSON.stringify({ name: 'web', scripts: { dev: 'node server.cjs' } }),
    'apps/web/server.cjs': server('the app'),
  })
  const web = { repo: 'shop', app: 'web' }
  const { previewUrl } = await client.call('POST /workspace/repos/{repo}/apps/{app}/start', web)
  t.match(previewUrl, /^http:\/\/preview-shop--web-[a-z2-7]{16}\.localhost:\d+$/)
  await until('it is shown', async () => (await show(previewUrl!)).text === 'the app')
  const [listed] = (await client.call('GET /workspace/repos/{repo}/apps', { repo: 'shop' })).apps
  t.match(listed, { running: true, previewUrl })
  const row = (await client.call('GET /ports')).ports.find(({ session }) => session === 'panel-shop--web')
  t.match(row, { origin: 'panel', cwd: 'shop/apps/web', forwarded: false })
  await client.call('POST /workspace/repos/{repo}/apps/{app}/stop', web)
  t.equal((await show(previewUrl!)).status, 502)
  const again = await client.call('POST /workspace/repos/{repo}/apps/{app}/start', web)
  t.equal(again.previewUrl, previewUrl)
})

t.test('a program of an extension has an address where its manifest asks for one', async t => {
  const daemon = await daemonWithBackends(t, ['ports', 'activity', 'logs', 'system'])
  const { client } = daemon
  const id = 'ada.shown'
  const processes = [
    { name: 'web', command: 'node web.cjs', port: 'auto', preview: true },
    { name: 'hidden', command: 'node web.cjs', port: 'auto' },
  ]
  const manifest = { publisher: 'ada', name: 'shown', version: '1.0.0', contributes: { processes } }
  writeExtension(daemon, 'shown', manifest, { 'web.cjs': server('the extension') })
  await approvePending(daemon, id)
  for (const { name } of processes) await client.call('POST /extensions/{id}/processes/{name}/start', { id, name })
  const { previewUrl } = await until('its address', async () => {
    const status = await client.call('GET /extensions/{id}/processes/{name}', { id, name: 'web' })
    return status.previewUrl !== undefined && status
  })
  await until('it is shown', async () => (await show(previewUrl!)).text === 'the extension')
  const hidden = await client.call('GET /extensions/{id}/processes/{name}', { id, name: 'hidden' })
  t.match(hidden, { running: true, previewUrl: undefined })
  const row = (await client.call('GET /ports')).ports.find(({ session }) => session === 'proc-ada-shown-web')
  t.match(row, { origin: 'extension' })
})
