import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { startModelServer, type ModelServerScript } from '../plugins/endpoints/model-lists.js'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'

const KILLS = 4
const MODELS = 2_000

t.test('killed while catalogues are written, the next daemon has a whole one', async t => {
  const script: ModelServerScript = { protocol: 'openai', models: [] }
  const { url } = await startModelServer(t, script)
  /** Each list of models has one name in common, so that a mixture of two would show. */
  const list = (name: string) => {
    script.models = Array.from({ length: MODELS }, (_, at) => ({ id: `${name}-${at}` }))
  }
  list('first')
  const folder = folderOf(t)
  const [workspace, data, given] = [join(folder, 'workspace'), join(folder, 'data'), join(folder, 'definitions')]
  makeWorkspace(workspace, { 'README.md': '# work\n' })
  mkdirSync(given)
  const definition = {
    ...{ id: 'acme', label: 'Acme', serving: 'native', protocol: 'openai', baseUrl: url },
    auth: { flows: ['key'], header: 'bearer' },
    models: { open: true, builtIn: [{ id: 'known', label: 'Known' }] },
  }
  writeFileSync(join(given, 'acme.json'), JSON.stringify(definition))
  const config = join(folder, 'config.json')
  writeFileSync(config, JSON.stringify({ models: { providers: given } }))
  const start = () => spawnDaemon(t, { workspace, data, args: ['--config', config] })
  const ask = ({ once }: Awaited<ReturnType<typeof start>>, force: boolean) =>
    once.call('GET /providers/{provider}/models', { provider: 'acme', ...(force && { force: '1' as const }) })
  const first = await start()
  await ask(first, true)
  await first.kill9()
  for (let kill = 0; kill < KILLS; kill++) {
    const daemon = await start()
    let going = true
    const asking = (async () => {
      for (let at = 0; going; at++) {
        list(`list${kill}x${at}`)
        await ask(daemon, true).catch(() => {})
      }
    })()
    await setTimeout(50 + ((kill + 0.5) / KILLS) * 250)
    await daemon.kill9()
    going = false
    await asking
    script.list = { status: 500, body: 'it is down' }
    const next = await start()
    const { source, models } = await ask(next, false)
    t.equal(models.length, MODELS)
    t.equal(source, 'stored')
    t.equal(new Set(models.map(({ id }) => id.split('-')[0])).size, 1, 'all of one list')
    await next.kill9()
    delete script.list
  }
})
