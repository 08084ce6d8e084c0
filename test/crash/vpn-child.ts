import { execFileSync } from 'node:child_process'
import t from 'tap'
import type { VpnLink } from '../../plugins/vpn/contract.js'
import { FarEnd } from '../plugins/vpn/peer.js'
import { add } from '../plugins/vpn/support.js'
import { spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { dies, VPN_POINTS, whereIn } from './failpoints/failpoints.js'

const SIGN_IN = { username: 'ada', password: 'correct horse battery', keyPassphrase: 'opens the key' }

const interfaces = (): string => execFileSync('ip', ['-br', 'link'], { encoding: 'utf8' })

const linkOf = async ({ client }: RunningDaemon): Promise<VpnLink | undefined> =>
  (await client.call('GET /vpn')).links[0]

const connected = async (daemon: RunningDaemon): Promise<VpnLink> => {
  for (let tries = 0; ; tries++) {
    const link = await linkOf(daemon)
    if (link?.state === 'connected') return link
    if (tries > 100) throw new Error(`it is ${link?.state}: ${link?.detail}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}

await t.test('tunnels', async t => {
  const far = await FarEnd.start(t)
  const { client: config } = await far.wireguard()
  const { client: openvpn } = await far.openvpn({ password: SIGN_IN.password, passphrase: SIGN_IN.keyPassphrase })
  const page = async () => (await fetch('http://10.99.0.1/', { signal: AbortSignal.timeout(5000) })).text()

  await t.test('a tunnel outlives a killed daemon, and the next one goes on with it or dials it again', async t => {
    const where = whereIn(t)
    const kill = async ({ process: child }: RunningDaemon) => {
      const over = new Promise(resolve => child.once('exit', resolve))
      child.kill('SIGKILL')
      await over
    }
    const first = await spawnDaemon(t, where)
    await first.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await add(first, 'wire', { provider: 'wireguard', config })
    await add(first, 'open', { provider: 'openvpn', config: openvpn, ...SIGN_IN })
    const { since } = (await linkOf(first))!
    await kill(first)
    t.equal(await page(), far.page, 'nobody dialled since')
    const second = await spawnDaemon(t, where)
    t.match(await linkOf(second), { state: 'connected', since })
    await second.client.call('POST /vpn/{id}/disconnect', { id: 'open' })
    t.notMatch(interfaces(), /open/)
    await second.client.call('DELETE /capabilities/{id}', { id: 'open' })
    await kill(second)
    execFileSync('ip', ['link', 'delete', 'dev', 'wire'])
    const third = await spawnDaemon(t, where)
    t.ok((await connected(third)).since! > since!, 'dialled again')
    await third.client.call('POST /vpn/{id}/disconnect', { id: 'wire' })
    t.notMatch(interfaces(), /wire/)
  })

  for (const point of VPN_POINTS)
    await t.test(`killed at ${point}, nothing of a tunnel that was not recorded remains`, async t => {
      const where = whereIn(t)
      await dies(t, where, point, async ({ once }) => {
        await once.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
        await add({ client: once }, 'wire', { provider: 'wireguard', config })
      })
      const next = await spawnDaemon(t, where)
      for (let tries = 0; tries < 50 && interfaces().includes('wire'); tries++)
        await new Promise(resolve => setTimeout(resolve, 100))
      t.notMatch(interfaces(), /wire/)
      t.same((await next.client.call('GET /vpn')).links, [])
      await add(next, 'wire', { provider: 'wireguard', config, autoConnect: 'off' })
      t.match(await linkOf(next), { state: 'disconnected' })
    })
})
