import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FortinetClient } from '../../../plugins/vpn/clients/fortinet.js'
import { IpsecClient } from '../../../plugins/vpn/clients/ipsec.js'
import { OpenvpnClient } from '../../../sdk/node/tunnels/openvpn.js'
import { WireguardClient } from '../../../sdk/node/tunnels/wireguard.js'
import { DialLog, dialLogIn } from '../../../sdk/node/tunnels/dial-log.js'
import { VpnEntries } from '../../../plugins/vpn/links/entries.js'
import { Links } from '../../../plugins/vpn/links/links.js'
import { LinkFolders } from '../../../plugins/vpn/links/standing-file.js'
import { vpnSettingsOf } from '../../../plugins/vpn/settings/settings.js'
import { missingFor, type VpnMachine } from '../../../plugins/vpn/system/machine.js'
import { refuse } from '../../../sdk/index.js'
import { exactly } from '../../support/lists.js'
import { KEYS, wireguardText } from './configurations.js'

const machine = (lacks: readonly string[]): VpnMachine => ({
  hasProgram: async name => !lacks.includes(name),
  hasTun: async () => !lacks.includes('tun'),
  hasNetAdmin: async () => !lacks.includes('net admin'),
  hasLibipsec: async () => !lacks.includes('libipsec'),
  hasWireguard: async () => !lacks.includes('wireguard'),
})
const entry = (config = wireguardText()) => ({ id: 'office', config: { provider: 'wireguard' }, secrets: { config } })

t.test('what a machine lacks is named with the way to get it', async t => {
  const missing = async (lacks: readonly string[], config?: string) =>
    (await missingFor('wireguard', vpnSettingsOf(entry(config)), machine(lacks))).map(({ name }) => name)
  t.same(await missing([]), [])
  t.same(await missing(['wg-quick', 'net admin']), ['wg-quick', 'CAP_NET_ADMIN'])
  t.same(await missing(['tun', 'wireguard-go', 'resolvconf', 'iptables', 'nft']), [], 'not needed here')
  t.same(await missing(['wireguard', 'tun', 'wireguard-go']), ['wireguard-go', '/dev/net/tun'])
  const everything = wireguardText().replace('10.99.0.0/24', '0.0.0.0/0').replace('[Peer]', 'DNS = 10.99.0.1\n[Peer]')
  t.same(await missing(['resolvconf', 'iptables', 'nft'], everything), ['resolvconf', 'iptables'])
  t.match(
    await missingFor('openvpn', undefined, machine(['openvpn', 'tun'])),
    exactly(
      { what: 'program', name: 'openvpn', install: 'apt-get install openvpn' },
      { what: 'device', name: '/dev/net/tun', install: /--device/ },
    ),
  )
  t.match(
    await missingFor('ipsec', undefined, machine(['swanctl', 'charon-systemd', 'libipsec', 'kernel-libipsec'])),
    exactly(
      { name: 'swanctl', install: 'apt-get install strongswan-swanctl' },
      { name: 'charon-systemd', install: 'apt-get install charon-systemd' },
      { name: 'kernel-libipsec', install: 'apt-get install libcharon-extra-plugins libcharon-extauth-plugins' },
    ),
  )
})

t.test('a machine without a program dials nothing and writes nothing, and the list says why', async t => {
  const folder = t.testdir()
  const record = { id: 'office', kind: 'vpn', label: 'office', config: { provider: 'wireguard' }, secrets: ['config'] }
  const host = {
    serves: async (call: string) => call.startsWith('capabilities.'),
    call: async (call: string) => (call === 'capabilities.records' ? { capabilities: [record] } : entry()),
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: new AbortController().signal,
  } as never
  const clients = {
    wireguard: new WireguardClient(),
    openvpn: new OpenvpnClient(),
    ipsec: new IpsecClient(),
    fortinet: new FortinetClient(),
  }
  const links = new Links({
    ...{ host, entries: new VpnEntries(host), folders: new LinkFolders(folder), machine: machine(['wg']), clients },
  })
  await t.rejects(links.connect('office', undefined), {
    reason: 'missing-program',
    message: 'this machine lacks the program wg (apt-get install wireguard-tools)',
  })
  t.match(await links.views.list(), exactly({ id: 'office', state: 'unavailable', detail: /the program wg/ }))
  t.notOk(existsSync(join(folder, 'links')))
  await t.rejects(links.connect('office', undefined), { reason: 'missing-program', message: /wg/ }, 'not 409')
})

t.test('a tunnel that is dialled anew while its client is asked stays', async t => {
  const folders = new LinkFolders(t.testdir())
  const up = { interface: 'lo', provider: 'ipsec', pid: 1 } as const
  const dropped: unknown[] = []
  const ipsec = {
    isOver: async () => {
      await folders.write('office', { ...up, since: 2 })
      return true
    },
    drop: async (standing: unknown) => void dropped.push(standing),
    health: async () => ({}),
  }
  const host = {
    serves: async () => true,
    call: async () => ({ capabilities: [] }),
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: new AbortController().signal,
  } as never
  const clients = { ipsec } as never
  const links = new Links({ host, entries: new VpnEntries(host), folders, machine: machine([]), clients })
  await folders.write('office', { ...up, since: 1 })
  await links.watch()
  t.same(dropped, [])
  t.match(await folders.standing('office'), { since: 2 })
})

t.test('a gateway that repeats what it was given does not bring it into an answer or the record', async t => {
  const said: unknown[] = []
  const fortinet = {
    dial: async () => refuse('dependency', 'the gateway says: hunter22 and 271828 are wrong'),
    drop: async () => {},
  }
  const host = {
    serves: async () => true,
    call: async (call: string, input: unknown) => {
      said.push([call, input])
      return { capabilities: [] }
    },
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: new AbortController().signal,
  } as never
  const folders = new LinkFolders(t.testdir())
  const clients = { fortinet } as never
  const links = new Links({ host, entries: new VpnEntries(host), folders, machine: machine([]), clients })
  const config = { provider: 'fortinet', server: 'vpn.example.org', username: 'ada' }
  const settings = vpnSettingsOf({ id: 'echoes', config, secrets: { password: 'hunter22' } })
  const steps = await links.dial('echoes', settings, { otp: '271828' })
  const message = 'the gateway says: *** and *** are wrong'
  const all = async () => {
    for await (const step of steps) said.push(step)
  }
  await t.rejects(all(), { message })
  t.match(JSON.stringify(said), /"vpn\.failed".*\*\*\* and \*\*\* are wrong/)
  t.notMatch(JSON.stringify(said), /hunter22|271828/)
})

t.test('the log of a dial keeps its last lines, without secrets', async t => {
  const file = join(t.testdir(), 'dial.log')
  const log = new DialLog(file, [KEYS.own, 'pw'])
  t.equal(log.add(`with ${KEYS.own}`), 'with ***')
  for (let line = 1; line <= 250; line++) log.add(`line ${line}`)
  await log.write()
  const { at, text } = (await dialLogIn(file))!
  t.ok(Math.abs(Date.now() - at) < 60_000)
  t.same(text.split('\n').length, 200)
  t.equal(text.split('\n')[199], 'line 250')
  t.equal(await dialLogIn(`${file}.none`), undefined)
})
