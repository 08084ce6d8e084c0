// Measures extensions: `node dist/test/bench/extensions.js`. Start of a process, memory while idle, calls through the
// pipe, and twenty at once.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExtensionBackend } from '../../plugins/extensions/backend/backend.js'
import { BACKEND_LIMITS } from '../../plugins/extensions/backend/process/limits.js'
import { operateWith } from '../../plugins/extensions/backend/operations.js'
import { median, mib, ms, print, quick, timed, verdict } from './measure.js'

const SERVER = `export const activate = host => {
  host.routes.handle('GET /one', {}, () => ({ body: { one: 1 } }))
  host.routes.handle('GET /many', {}, async () => {
    const began = performance.now()
    let done = 0
    const ask = async () => { for (let n = 0; n < 500; n++) { await host.settings.get(); done++ } }
    await Promise.all(Array.from({ length: 16 }, ask))
    return { body: { perSecond: (done * 1000) / (performance.now() - began) } }
  })
}`

const folder = mkdtempSync(join(tmpdir(), 'bench-extensions-'))
const data = join(folder, 'data')
mkdirSync(data)

const begun = async (id: string): Promise<ExtensionBackend> => {
  const [dir, dataDir] = [join(folder, 'code', id), join(folder, 'own', id)]
  mkdirSync(dir, { recursive: true })
  mkdirSync(dataDir, { recursive: true })
  writeFileSync(join(dir, 'server.js'), SERVER)
  const backend = new ExtensionBackend(
    { id, version: '1.0.0', source: 'workspace', dir, dataDir, revision: '1', manifest: { server: 'server.js' } },
    {
      place: { data },
      limits: BACKEND_LIMITS,
      parts: own => ({
        operate: operateWith({
          'settings.get': () => ({ settings: { color: 'blue' } }),
          'routes.handle': route => {
            own.routes.add(route)
            return {}
          },
        }),
        end: () => {},
      }),
      printed: (_, line) => console.error(line),
      failed: (_, error) => console.error(error),
      changed: () => {},
      crashed: (_, why) => console.error(why),
    },
  )
  backend.start()
  await backend.running()
  return backend
}

const asked = async (backend: ExtensionBackend, path: string): Promise<unknown> => {
  const { number } = backend.routes.find('GET', [path])!
  const process = await backend.running()
  const answer = await process.link.request('route', {
    route: number,
    method: 'GET',
    path: `/${path}`,
    params: {},
    query: {},
    headers: {},
    caller: { kind: 'person', actor: 'bench', role: 'owner' },
  })
  return answer.json
}

const rest = (time: number) => new Promise(resolve => setTimeout(resolve, time))

try {
  const starts: number[] = []
  const held: ExtensionBackend[] = []
  for (let round = 0; round < (quick ? 2 : 10); round++) {
    let backend: ExtensionBackend | undefined
    starts.push(await timed(async () => (backend = await begun(`bench.start-${round}`))))
    await backend!.stop('over')
  }
  verdict('extensions: from start to the end of activate', median(starts), { most: 500, as: ms })
  const one = await begun('bench.one')
  await rest(1_500)
  verdict('extensions: resident memory of an idle one', one.resident, { most: 80 * 1024 * 1024, as: mib })
  for (let n = 0; n < 200; n++) await asked(one, 'one')
  const trips: number[] = []
  for (let n = 0; n < (quick ? 50 : 2_000); n++) trips.push(await timed(() => asked(one, 'one')))
  verdict('extensions: a request to a route and back', median(trips), { most: 1, as: ms })
  const { perSecond } = (await asked(one, 'many')) as { perSecond: number }
  verdict('extensions: calls a second through the pipe', perSecond, { least: 5_000, as: n => n.toFixed(0) })
  await one.stop('over')
  const delay = monitorEventLoopDelay({ resolution: 5 })
  const before = process.memoryUsage.rss()
  delay.enable()
  const count = quick ? 3 : 20
  const all = await timed(async () => {
    held.push(...(await Promise.all(Array.from({ length: count }, (_, n) => begun(`bench.all-${n}`)))))
  })
  delay.disable()
  await rest(1_500)
  print(`extensions: ${count} at once, until all run`, ms(all))
  verdict(`extensions: the loop while ${count} start, p99`, delay.percentile(99) / 1e6, { most: 100, as: ms })
  print(`extensions: resident memory of ${count}`, mib(held.reduce((sum, { resident }) => sum + resident, 0)))
  print(`extensions: what they add to the daemon`, mib(process.memoryUsage.rss() - before))
  const used = process.cpuUsage()
  delay.reset()
  delay.enable()
  await rest(quick ? 1_000 : 10_000)
  const { user, system } = process.cpuUsage(used)
  print(
    `extensions: the daemon's processor with ${count} idle`,
    `${((user + system) / (quick ? 1e4 : 1e5)).toFixed(2)} %`,
  )
  print(`extensions: the loop with ${count} idle, p99`, ms(delay.percentile(99) / 1e6))
  await Promise.all(held.map(backend => backend.stop('over')))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
