import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CHECK, Outside } from '../../plugins/exit/outside.js'
import { addExit, exitIn, startExit } from '../../plugins/exit/support.js'
import { certificates, openvpnServer, poolList, poolRow, wireguardServer } from '../../plugins/exit/tunnel-servers.js'
import { until } from '../../support/browser/browser.js'
import { folderOf, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { dies, EXIT_POINTS, whereIn } from '../failpoints/failpoints.js'

const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' })
const openvpns = (): string => {
  try {
    return execFileSync('pgrep', ['-f', 'management-hold'], { encoding: 'utf8' }).trim()
  } catch {
    return ''
  }
}
const through = (proxy: string): string =>
  execFileSync('curl', ['-sS', '-m', '20', '--proxy', proxy.replace('socks5:', 'socks5h:'), `http://${CHECK}/`], {
    encoding: 'utf8',
  })

t.setTimeout(200_000)
await t.test('exits of a killed daemon', async t => {
  const outside = await Outside.start(t)
  const wire = await wireguardServer(t, outside, {
    ...{ name: 'farde', client: '203.0.113.2', port: 51822, label: '# country: DE' },
  })
  const at = certificates(t)
  const pool = await openvpnServer(outside, at, { name: 'ovnl', network: '198.51.101.0', port: 1194 })
  const folder = folderOf(t)
  writeFileSync(join(folder, 'list.csv'), poolList(poolRow('one', 'NL', 5, pool.client)))
  outside.begin('python3', '-m', 'http.server', '8080', '--directory', folder)
  const config = join(folder, 'config.json')
  writeFileSync(config, JSON.stringify({ exit: { checks: outside.checks, pool: `http://${CHECK}:8080/list.csv` } }))
  const where = () => ({ ...whereIn(t), args: ['--config', config] })
  const begun = async (daemon: RunningDaemon, client: RunningDaemon['client'] = daemon.client) => {
    await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await addExit({ client }, 'wire', { provider: 'wireguard', config: wire.client, country: 'DE' })
  }
  const before = { rules: ip('rule'), links: ip('-br', 'link') }
  const isClean = () => ip('rule') === before.rules && ip('-br', 'link') === before.links

  await t.test('they carry on, and the next daemon goes on with them under the same ports', async t => {
    const place = where()
    const first = await spawnDaemon(t, place)
    await begun(first)
    await addExit(first, 'pool', { provider: 'public_vpn_pool' })
    await startExit(first, 'wire')
    await until(async () =>
      startExit(first, 'pool').then(
        () => true,
        () => false,
      ),
    )
    const known = await Promise.all(['wire', 'pool'].map(id => exitIn(first, id)))
    const pid = openvpns()
    await first.kill9()
    t.throws(() => through(known[0]!.proxy), 'nobody serves the proxy')
    const next = await spawnDaemon(t, place)
    await until(async () => (await exitIn(next, 'pool')).state === 'up')
    for (const { id, ip: seen, since, proxy } of known) {
      t.match(await exitIn(next, id), { state: 'up', ip: seen, since, proxy })
      t.match(through(proxy), new RegExp(`ip=${seen}`))
    }
    t.equal(openvpns(), pid, 'nobody dialled again')
    for (const id of ['wire', 'pool']) await next.client.call('POST /exit/{id}/stop', { id })
    t.ok(isClean())
    t.equal(await next.terminate(), 0)
  })

  for (const point of EXIT_POINTS)
    await t.test(`killed at ${point}, what is not proven is removed by the next daemon`, async t => {
      const place = where()
      await dies(t, place, point, async daemon => {
        await begun(daemon, daemon.once)
        await startExit({ client: daemon.once }, 'wire')
      })
      const next = await spawnDaemon(t, place)
      if (point === 'exit.start.proven') {
        await until(async () => (await exitIn(next, 'wire')).state === 'up')
        t.match(through((await exitIn(next, 'wire')).proxy), /loc=DE/)
        await next.client.call('POST /exit/{id}/stop', { id: 'wire' })
      } else await until(async () => (await exitIn(next, 'wire')).state === 'down')
      await until(isClean)
      t.equal(await next.terminate(), 0)
    })
})
