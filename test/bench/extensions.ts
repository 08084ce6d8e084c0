// Measures extensions: `node dist/test/bench/extensions.js`. Start of a process, memory while idle, calls through the
// pipe, twenty at once, and a daemon that starts with twenty.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExtensionBackend } from '../../plugins/extensions/backend/backend.js'
import { BACKEND_LIMITS } from '../../plugins/extensions/backend/process/limits.js'
import { operateWith } from '../../plugins/extensions/backend/operations.js'
import { tightBuilder } from '../../sdk/node/wall/builders.js'
import type { WallKind } from '../../sdk/node/wall/wall.js'
import { makeWorkspace, spawnDaemon } from '../support/daemon.js'
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

const begun = async (id: string, wall?: WallKind): Promise<ExtensionBackend> => {
  const [dir, dataDir] = [join(folder, 'code', id), join(folder, 'own', id)]
  mkdirSync(dir, { recursive: true })
  mkdirSync(dataDir, { recursive: true })
  writeFileSync(join(dir, 'server.js'), SERVER)
  const backend = new ExtensionBackend(
    { id, version: '1.0.0', source: 'workspace', dir, dataDir, revision: '1', manifest: { server: 'server.js' } },
    {
      place: { data, ...(wall && { wall }) },
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

/** The start of a backend to the end of `activate`, behind this kind of wall. */
const startsOf = async (kind: WallKind): Promise<number[]> => {
  const starts: number[] = []
  for (let round = 0; round < (quick ? 2 : 10); round++) {
    let backend: ExtensionBackend | undefined
    starts.push(await timed(async () => (backend = await begun(`bench.${kind}-${round}`, kind))))
    await backend!.stop('over')
  }
  return starts
}

/** A workspace with approved extensions, and the starts of the real program on it. */
const daemonWithExtensions = async (count: number) => {
  const where = { workspace: join(folder, `workspace-${count}`), data: join(folder, `data-${count}`) }
  makeWorkspace(where.workspace)
  for (let nth = 0; nth < count; nth++) {
    const at = join(where.workspace, '.sandbox/config/workspace-extensions', `n${nth}`)
    mkdirSync(at, { recursive: true })
    const manifest = { publisher: 'bench', name: `n${nth}`, server: 'server.js' }
    writeFileSync(join(at, 'intentic-extension.json'), JSON.stringify(manifest))
    writeFileSync(join(at, 'server.js'), SERVER)
  }
  const spawned = () => spawnDaemon({ teardown: () => {} }, where)
  const first = await spawned()
  for (const { id, digest } of (await first.client.call('GET /extensions')).pending)
    await first.client.call('POST /extensions/{id}/approve', { id, digest })
  await first.terminate()
  return {
    /** The time until it is ready, then until all extensions run, and the slowest answer meanwhile. */
    start: async (): Promise<{ ready: number; all: number; slowest: number }> => {
      const began = performance.now()
      const daemon = await spawned()
      const ready = performance.now() - began
      let slowest = 0
      for (let running = -1; running < count;) {
        slowest = Math.max(slowest, await timed(() => fetch(`${daemon.url}/health`).then(answer => answer.text())))
        const { extensions } = await daemon.client.call('GET /extensions')
        running = extensions.filter(({ backend }) => backend?.state === 'running').length
        await rest(10)
      }
      const all = performance.now() - began
      await daemon.terminate()
      return { ready, all, slowest }
    },
  }
}

const rest = (time: number) => new Promise(resolve => setTimeout(resolve, time))

try {
  const held: ExtensionBackend[] = []
  verdict('extensions: from start to the end of activate', median(await startsOf('bwrap')), { most: 500, as: ms })
  if (await tightBuilder('unshare'))
    print('extensions: from start to the end of activate, behind unshare', ms(median(await startsOf('unshare'))))
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
  const [none, some] = [await daemonWithExtensions(0), await daemonWithExtensions(count)]
  const [without, having] = [[] as number[], [] as { ready: number; all: number; slowest: number }[]]
  for (let round = 0; round < (quick ? 1 : 7); round++) {
    without.push((await none.start()).ready)
    having.push(await some.start())
  }
  const of = (name: 'ready' | 'all' | 'slowest') => median(having.map(each => each[name]))
  print('extensions: a daemon without any, until it is ready', ms(median(without)))
  print(`extensions: a daemon with ${count}, until it is ready`, ms(of('ready')))
  print(`extensions: a daemon with ${count}, until all run`, ms(of('all')))
  print('extensions: its slowest answer meanwhile', ms(of('slowest')))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
