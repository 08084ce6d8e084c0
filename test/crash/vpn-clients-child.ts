import { execFileSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ipsecGateway } from '../plugins/vpn/ipsec-gateway.js'
import { FAR, FarEnd } from '../plugins/vpn/peer.js'
import { add, dial } from '../plugins/vpn/support.js'
import { until } from '../support/browser/browser.js'
import { project } from '../support/browser/page.js'
import { folderOf, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { selfSigned } from '../support/servers/share-servers.js'
import { whereIn } from './failpoints/failpoints.js'

const PASSWORD = 'correct horse battery'
const PSK = 'a shared key'

const shown = (what: 'link' | 'route'): string => execFileSync('ip', [what], { encoding: 'utf8' })

/** The processes of clients of a daemon, by what they are started as and where. */
const clientsOf = (data: string): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return (
          (/^(?:[^\0]*\/)?openconnect\0/.test(command) || command.includes('charon-systemd'))
          && (command.includes(data) || readlinkSync(`/proc/${pid}/cwd`).startsWith(data))
        )
      } catch {
        return false
      }
    })

t.setTimeout(300_000)
await t.test('tunnels of Fortinet and IPsec', async t => {
  const far = await FarEnd.start(t)
  const gateway = await ipsecGateway(far, folderOf(t), { psk: PSK, password: PASSWORD })
  t.ok(gateway)
  const { cert, key } = selfSigned(folderOf(t))
  const words = join(folderOf(t), 'words')
  writeFileSync(words, `${PASSWORD}\n123456\n`)
  far.run('ip', ['addr', 'add', '10.91.0.1/32', 'dev', 'lo'])
  const fortinet = far.begin('python3', [
    join(project, 'test/fixtures/vpn/fortinet-gateway.py'),
    ...['10443', cert, key, words],
  ])
  await once(fortinet.stdout!, 'data')
  const trustedCert = `sha256:${createHash('sha256')
    .update(new X509Certificate(readFileSync(cert)).raw)
    .digest('hex')}`
  const KINDS = [
    {
      page: 'http://10.91.0.1/',
      config: {
        ...{ provider: 'fortinet', server: FAR, port: '10443', username: 'ada', password: PASSWORD, trustedCert },
      },
    },
    {
      page: 'http://10.95.0.1/',
      config: {
        ...{ provider: 'ipsec', server: FAR, presharedKey: PSK, localId: 'office', username: 'ada' },
        ...{ password: PASSWORD, routedNetworks: '10.95.0.0/16' },
      },
    },
  ]
  const before = shown('route')
  const linkOf = async ({ client }: RunningDaemon) => (await client.call('GET /vpn')).links[0]
  const pageOf = async (page: string) => (await fetch(page, { signal: AbortSignal.timeout(5000) })).text()

  for (const { page, config } of KINDS) {
    const begun = async (where: { workspace: string; data: string }) => {
      const daemon = await spawnDaemon(t, where)
      await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
      await add(daemon, 'office', { ...config, autoConnect: 'off' })
      return daemon
    }
    /** Nothing of the tunnel is on this machine. */
    const isGone = ({ data }: { data: string }) =>
      !/\boffice\b/.test(shown('link')) && shown('route') === before && clientsOf(data).length === 0

    await t.test(`${config.provider}: killed while it connects, nothing remains, and it dials again`, async t => {
      const where = whereIn(t)
      const first = await begun(where)
      const dialling = dial({ client: first.once }, 'office').catch(() => {})
      await until(async () => (await linkOf(first))?.state !== 'disconnected')
      await first.kill9()
      await dialling
      const next = await spawnDaemon(t, where)
      await until(async () => !['connecting'].includes((await linkOf(next))!.state))
      const { state } = (await linkOf(next))!
      if (state === 'connected') t.equal(await pageOf(page), far.page, 'it was dialled in time')
      else await until(() => isGone(where))
      t.match((await dial(next, 'office')).at(-1), { kind: 'result', link: { state: 'connected' } })
      t.equal(await pageOf(page), far.page)
      await next.client.call('POST /vpn/{id}/disconnect', { id: 'office' })
      await until(() => isGone(where))
      t.equal(await next.terminate(), 0)
    })

    await t.test(
      `${config.provider}: killed while it is connected, it carries on and the next one goes on`,
      async t => {
        const where = whereIn(t)
        const first = await begun(where)
        await dial(first, 'office')
        const { since } = (await linkOf(first))!
        await first.kill9()
        t.equal(await pageOf(page), far.page, 'nobody dialled since')
        const next = await spawnDaemon(t, where)
        t.match(await linkOf(next), { state: 'connected', since })
        t.equal(await pageOf(page), far.page)
        t.equal(clientsOf(where.data).length > 0, true, 'the same client')
        await next.client.call('POST /vpn/{id}/disconnect', { id: 'office' })
        await until(() => isGone(where))
        t.equal(await next.terminate(), 0)
      },
    )

    await t.test(
      `${config.provider}: killed while it disconnects, the next one tells the truth and ends it`,
      async t => {
        const where = whereIn(t)
        const first = await begun(where)
        await dial(first, 'office')
        const ending = first.once.call('POST /vpn/{id}/disconnect', { id: 'office' }).catch(() => {})
        await new Promise(resolve => setTimeout(resolve, 30))
        await first.kill9()
        await ending
        const next = await spawnDaemon(t, where)
        const { state } = (await linkOf(next))!
        if (state === 'connected') t.equal(await pageOf(page), far.page, 'it had not begun to end')
        else await until(() => isGone(where))
        await next.client.call('POST /vpn/{id}/disconnect', { id: 'office' })
        await until(() => isGone(where))
        t.match(await linkOf(next), { state: 'disconnected' })
        t.match((await dial(next, 'office')).at(-1), { kind: 'result', link: { state: 'connected' } })
        await next.client.call('POST /vpn/{id}/disconnect', { id: 'office' })
        await until(() => isGone(where))
        t.equal(await next.terminate(), 0)
      },
    )
  }
})
