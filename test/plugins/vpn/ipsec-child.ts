import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith, folderOf } from '../../support/daemon.js'
import { IpsecClient } from '../../../plugins/vpn/clients/ipsec.js'
import { CHARON_SETTINGS } from '../../../plugins/vpn/clients/charon.js'
import { charonSettings } from '../../../plugins/vpn/settings/ipsec-conf.js'
import { startLasting } from '../../../sdk/node/tunnels/programs.js'
import { needProgram } from '../../../sdk/node/programs/run.js'
import { exactly } from '../../support/lists.js'
import { vaultFake } from '../capabilities/support.js'
import { ipsecGateway } from './ipsec-gateway.js'
import { FAR, FarEnd } from './peer.js'
import { add, dial } from './support.js'

const PSK = 'a "shared" key # with } signs'
const PASSWORD = '0x correct \\ horse "battery"'
/** A name that would end a value, a section or the file, were it not written as one value. */
const NAME = 'ada "} # \\ { = 0x41, include'
const USER = { psk: PSK, password: PASSWORD }

const commandLines = (): string =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    })
    .join('\n')
/** How many charons run, but for that of the tunnel which is dialled all the time. */
const charons = (): number =>
  readdirSync('/proc').filter(pid => {
    try {
      const own = readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('charon-systemd')
      const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
      return (own || name === 'charon-systemd') && !readlinkSync(`/proc/${pid}/cwd`).endsWith('/dead')
    } catch {
      return false
    }
  }).length
const links = (): string => execFileSync('ip', ['link'], { encoding: 'utf8' })
const routes = (): string => execFileSync('ip', ['route'], { encoding: 'utf8' })
const pageAt = async (address: string, withinMs = 5000): Promise<string> =>
  (await fetch(`http://${address}/`, { signal: AbortSignal.timeout(withinMs) })).text()

/** The packets of UDP between the ends while some work is done. */
const packetsDuring = async (work: () => Promise<unknown>): Promise<string> => {
  const dump = spawn('tcpdump', ['-lnn', '-i', 'near0', 'udp'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let seen = ''
  dump.stdout.on('data', (text: Buffer) => (seen += text.toString()))
  await once(dump.stderr, 'data')
  await work()
  for (let tries = 0; !seen.includes('ESP') && tries < 100; tries++)
    await new Promise(resolve => setTimeout(resolve, 50))
  dump.kill()
  return seen
}

await t.test('tunnels of IPsec', async t => {
  const vault = vaultFake()
  const daemon = await daemonWith(t, ['activity', 'capabilities', 'vpn', 'system'], { fakes: vault.fakes })
  const { client } = daemon
  const far = await FarEnd.start(t)
  const gateway = await ipsecGateway(far, folderOf(t), USER)
  const linkOf = async (id: string) => (await client.call('GET /vpn')).links.find(link => link.id === id)
  const IPSEC = {
    ...{ provider: 'ipsec', server: FAR, presharedKey: PSK, localId: 'office', username: NAME, password: PASSWORD },
    routedNetworks: '10.95.0.0/16',
  }
  const before = routes()
  await add(daemon, 'dead', { ...IPSEC, server: '192.0.2.9', autoConnect: 'off' })
  const calling = dial(daemon, 'dead')
  calling.catch(() => {})

  await t.test('it is dialled when it is added, and its packets are ESP', async t => {
    t.match((await add(daemon, 'lab', IPSEC)).at(-1), { kind: 'result', status: { state: 'active' } })
    t.match(await client.call('GET /vpn/{id}', { id: 'lab' }), {
      ...{ provider: 'ipsec', state: 'connected', interface: 'lab', address: /^10\.96\.0\.1\d\/32$/, gateway: FAR },
      ...{ routes: exactly('10.95.0.0/16'), since: Number, handshakeAt: Number, fullTunnel: false, missing: exactly() },
      log: /IKE_SA sandbox\[1\] established/,
    })
    const seen = await packetsDuring(async () => t.equal(await pageAt('10.95.0.1'), far.page))
    t.match(seen, /UDP-encap: ESP/)
    t.ok(gateway.received() > 100, 'the gateway counted its bytes')
    t.equal(/XAuth authentication of '(.*)' successful/.exec(gateway.log())?.[1], NAME, 'the name came as it is')
    t.equal(await pageAt('10.94.0.1', 1000).catch(() => 'nothing'), 'nothing', 'a host outside of these networks')
    for (const value of [PSK, PASSWORD]) t.notOk(commandLines().includes(value))
    t.match(await dial(daemon, 'lab'), exactly({ kind: 'log' }, { kind: 'result', link: { state: 'connected' } }))
  })

  await t.test('disconnecting removes the interface, the routes, charon and its files', async t => {
    t.same(await client.call('POST /vpn/{id}/disconnect', { id: 'lab' }), { ok: true })
    t.notMatch(links(), /\blab\b/)
    t.equal(routes(), before)
    t.equal(charons(), 1, 'the gateway alone')
    const left = readdirSync(join(daemon.data, 'vpn', 'links', 'lab'))
    t.same(left, ['dial.log'])
  })

  await t.test('several networks, and the second version of IKE with a user', async t => {
    const { routedNetworks: _, ...whole } = IPSEC
    await add(daemon, 'both', { ...whole, routedNetworks: '10.95.0.0/16, 10.94.0.0/16', autoConnect: 'off' })
    t.match((await dial(daemon, 'both')).at(-1), { link: { routes: exactly('10.94.0.0/16', '10.95.0.0/16') } })
    for (const address of ['10.95.0.1', '10.94.0.1']) t.equal(await pageAt(address), far.page)
    await client.call('DELETE /capabilities/{id}', { id: 'both' })
    await add(daemon, 'second', { ...whole, ikeVersion: '2', pfs: 'off', autoConnect: 'off' })
    t.match((await dial(daemon, 'second')).at(-1), { link: { routes: exactly('10.94.0.0/16', '10.95.0.0/16') } })
    t.equal(await pageAt('10.94.0.1'), far.page)
    await client.call('DELETE /capabilities/{id}', { id: 'second' })
    t.equal(routes(), before)
  })

  await t.test('a wrong password, key or group ends the dial with why, and nothing remains', async t => {
    for (const [id, more, message] of [
      ['word', { password: 'wrong word' }, /refused the sign-in/],
      ['key', { presharedKey: 'another key' }, /another pre-shared key|refused the sign-in/],
      ['group', { dhGroup: '5' }, /agrees to none of the ciphers/],
      ['net', { routedNetworks: '10.11.0.0/16' }, /does not route these networks/],
    ] as const) {
      await add(daemon, id, { ...IPSEC, ...more, autoConnect: 'off' })
      await t.rejects(dial(daemon, id), { reason: 'dependency', message }, id)
      t.match(await linkOf(id), { state: 'failed', detail: message, routes: exactly() })
      await client.call('DELETE /capabilities/{id}', { id })
    }
    t.equal(routes(), before)
    t.equal(charons(), 1)
  })

  await t.test('an interface that was deleted in a shell ends it, and a silent gateway the dial', async t => {
    await dial(daemon, 'lab')
    execFileSync('ip', ['link', 'delete', 'dev', 'lab'])
    t.match(await linkOf('lab'), { state: 'disconnected', routes: exactly() })
    await client.call('POST /vpn/{id}/disconnect', { id: 'lab' })
    await t.rejects(calling, { reason: 'dependency', message: /did not answer/ })
    t.match(await linkOf('dead'), { state: 'failed' })
    t.equal(routes(), before)
  })

  await t.test('a charon that a killed daemon did not record ends with its tunnel', async t => {
    const folder = folderOf(t)
    writeFileSync(join(folder, CHARON_SETTINGS), charonSettings())
    const env = { STRONGSWAN_CONF: CHARON_SETTINGS }
    await startLasting(await needProgram('charon-systemd'), [], folder, env)
    t.equal(charons(), 2)
    await new IpsecClient().drop({ id: 'lost', interface: 'lost', folder })
    t.equal(charons(), 1)
  })

  await t.test('no answer, no log and no entry of the record has a secret', async t => {
    const { events } = await client.call('GET /activity', {})
    const details = await Promise.all(['lab', 'dead'].map(id => client.call('GET /vpn/{id}', { id })))
    const shown = JSON.stringify([events, details, await client.call('GET /capabilities'), daemon.logged])
    for (const value of [PSK, PASSWORD]) t.notOk(shown.includes(JSON.stringify(value).slice(1, -1)))
  })
})
