import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { daemonWith } from '../../support/daemon.js'
import { beginning, exactly } from '../../support/lists.js'
import { vaultFake } from '../capabilities/support.js'
import { CODE, FAR, FarEnd } from './peer.js'
import { add, dial } from './support.js'

const PASSWORD = 'correct horse battery'
const PASSPHRASE = 'opens the "key" \\o/'

const interfaces = (): string[] =>
  (JSON.parse(execFileSync('ip', ['-j', 'link'], { encoding: 'utf8' })) as { ifname: string }[]).map(
    ({ ifname }) => ifname,
  )

/** The command lines of all processes here, by their ids. */
const processes = (): ReadonlyMap<number, string> =>
  new Map(
    readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(pid => {
        try {
          return [Number(pid), readFileSync(`/proc/${pid}/cmdline`, 'utf8')]
        } catch {
          return [Number(pid), '']
        }
      }),
  )
const commandLines = (): string => [...processes().values()].join('\n')

const pageAt = async (address: string, withinMs = 5000): Promise<string> => {
  const answer = await fetch(`http://${address}/`, { signal: AbortSignal.timeout(withinMs) })
  return answer.text()
}

await t.test('tunnels', async t => {
  const vault = vaultFake()
  const daemon = await daemonWith(t, ['activity', 'capabilities', 'vpn', 'system'], { fakes: vault.fakes })
  const { client } = daemon
  const far = await FarEnd.start(t)
  const wireguard = await far.wireguard()
  const openvpn = await far.openvpn({ password: PASSWORD, passphrase: PASSPHRASE })
  const secrets = [wireguard.secret, PASSWORD, PASSPHRASE, CODE, openvpn.key]
  const linkOf = async (id: string) => (await client.call('GET /vpn')).links.find(link => link.id === id)
  const until = async (id: string, state: string): Promise<void> => {
    for (let tries = 0; (await linkOf(id))?.state !== state; tries++) {
      if (tries > 200) throw new Error(`${id} is not ${state}`)
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }
  const WIREGUARD = { provider: 'wireguard', config: wireguard.client }
  const OPENVPN = {
    provider: 'openvpn',
    config: openvpn.client,
    username: 'ada',
    password: PASSWORD,
    keyPassphrase: PASSPHRASE,
  }

  const dead = { ...WIREGUARD, config: wireguard.client.replace(`${FAR}:51820`, `${FAR}:9`).replaceAll('10.', '11.') }
  await add(daemon, 'dead', { ...dead, autoConnect: 'off' })
  const calling = dial(daemon, 'dead')
  calling.catch(() => {})

  await t.test('a tunnel of WireGuard is dialled when it is added, and carries traffic', async t => {
    const before = wireguard.received()
    const frames = await add(daemon, 'wire', WIREGUARD)
    t.match(frames.at(-1), { kind: 'result', status: { state: 'active' } })
    t.equal(await pageAt('10.99.0.1'), far.page)
    t.ok(wireguard.received() > before + 100, 'the gateway counted its bytes')
    t.match(await client.call('GET /vpn/{id}', { id: 'wire' }), {
      ...{ state: 'connected', interface: 'wire', address: '10.99.0.2/24', gateway: `${FAR}:51820`, fullTunnel: false },
      routes: exactly('10.55.0.0/16', '10.99.0.0/24'),
      since: Number,
      handshakeAt: Number,
      missing: exactly(),
      log: /wg setconf wire/,
    })
    t.match(await dial(daemon, 'wire'), exactly({ kind: 'log' }, { kind: 'result', link: { state: 'connected' } }))
  })

  await t.test('a second dial of one tunnel, a route that overlaps and a name that is taken are refused', async t => {
    await t.rejects(dial(daemon, 'dead'), { reason: 'conflict', message: /dead is being dialled/ })
    const { config, ...others } = { ...WIREGUARD, autoConnect: 'off' }
    await add(daemon, 'other', { ...others, config: config.replace('10.55.0.0/16', '10.99.0.128/25') })
    await t.rejects(dial(daemon, 'other'), {
      reason: 'conflict',
      message: /10\.99\.0\.0\/24 overlaps 10\.\S+, which goes through wire/,
    })
    await add(daemon, 'near0', { ...others, config: config.replaceAll('10.', '12.') })
    await t.rejects(dial(daemon, 'near0'), { reason: 'conflict', message: /another interface near0/ })
    for (const id of ['other', 'near0']) await client.call('DELETE /capabilities/{id}', { id })
    t.ok(interfaces().includes('near0'), 'the interface that is not ours stays')
  })

  await t.test('a tunnel whose interface was deleted in a shell is disconnected, and watchers learn it', async t => {
    const seen = (async () => {
      for await (const event of await client.call('GET /events', {}))
        if (event.kind === 'runtimeChanged' && event.keys?.includes('wire')) return true
      return false
    })()
    await new Promise(resolve => setTimeout(resolve, 1000))
    execFileSync('ip', ['link', 'delete', 'dev', 'wire'])
    t.match(await linkOf('wire'), { state: 'disconnected', routes: exactly() })
    t.equal(await seen, true)
  })

  await t.test('a change is dialled with limited networks, and disconnecting removes everything', async t => {
    await add(daemon, 'wire', { ...WIREGUARD, config: '__vaulted__', routedNetworks: '10.55.0.0/16' })
    t.match(await linkOf('wire'), { state: 'connected', routes: beginning('10.55.0.0/16') })
    t.equal(await pageAt('10.55.0.1'), far.page)
    t.equal(await pageAt('10.99.0.1', 1000).catch(() => 'nothing'), 'nothing', 'a host outside of these networks')
    t.same(await client.call('POST /vpn/{id}/disconnect', { id: 'wire' }), { ok: true })
    t.notOk(interfaces().includes('wire'))
    t.match(await linkOf('wire'), { state: 'disconnected' })
    t.notMatch(commandLines(), /wireguard-go\0wire/)
  })

  await t.test(
    'a wrong password of OpenVPN ends the dial with the words of the gateway, and nothing remains',
    async t => {
      await t.rejects(add(daemon, 'open', { ...OPENVPN, password: 'wrong password' }), {
        reason: 'dependency',
        message: /the gateway refused the sign-in.*AUTH_FAILED/,
      })
      t.match(await client.call('GET /vpn'), { links: exactly({ id: 'dead' }, { id: 'wire' }) })
      t.notOk(interfaces().includes('open'))
      t.notMatch(commandLines(), /openvpn\0--config/)
    },
  )

  await t.test('a tunnel of OpenVPN carries traffic, and no command line has its secrets', async t => {
    await add(daemon, 'open', OPENVPN)
    t.match(await linkOf('open'), {
      ...{ state: 'connected', address: '10.98.0.2/24', gateway: `${FAR}:1194` },
      routes: exactly('10.97.0.0/16', '10.98.0.0/24'),
      dns: exactly('10.98.0.1'),
    })
    t.equal(await pageAt('10.98.0.1'), far.page)
    const lines = commandLines()
    t.match(lines, /openvpn\0--config/)
    for (const secret of secrets) t.notOk(lines.includes(secret))
    const [pid = 0] = [...processes()].find(([, line]) => line.includes('--management\0')) ?? []
    openvpn.signal('SIGSTOP')
    process.kill(pid, 'SIGUSR1')
    await until('open', 'connecting')
    t.match(await linkOf('open'), { detail: /does not answer/, interface: 'open' }, 'its client goes on trying')
    openvpn.signal('SIGCONT')
    await until('open', 'connected')
    t.equal(await pageAt('10.98.0.1'), far.page, 'signed in again without anybody')
    await client.call('POST /vpn/{id}/disconnect', { id: 'open' })
    t.notOk(interfaces().includes('open'))
    t.notMatch(commandLines(), /openvpn\0--config/)
    await add(daemon, 'open', {
      ...OPENVPN,
      password: '__vaulted__',
      config: '__vaulted__',
      routedNetworks: '10.97.4.0/24',
    })
    t.match(await linkOf('open'), { routes: exactly('10.97.4.0/24', '10.98.0.0/24') }, 'only these networks')
    await client.call('DELETE /capabilities/{id}', { id: 'open' })
    t.notOk(interfaces().includes('open'), 'it is dropped with its connection')
  })

  await t.test('a gateway that asks for a code, with the password or after it, gets the one of the dial', async t => {
    const asks = `static-challenge "Your code" 1\n${openvpn.client}`
    await add(daemon, 'bob', { ...OPENVPN, config: asks, username: 'bob', autoConnect: 'off' })
    await add(daemon, 'eve', { ...OPENVPN, username: 'eve', autoConnect: 'off' })
    for (const id of ['bob', 'eve']) {
      await t.rejects(dial(daemon, id), { reason: 'dependency', message: /asks for a code: dial again/ }, id)
      await t.rejects(dial(daemon, id, '000000'), { reason: 'dependency', message: /refused the sign-in/ }, id)
      t.match((await dial(daemon, id, CODE)).at(-1), { kind: 'result', link: { state: 'connected' } }, id)
      await client.call('DELETE /capabilities/{id}', { id })
    }
  })

  await t.test('a gateway that does not answer ends the dial, and nothing remains', async t => {
    await t.rejects(calling, { reason: 'dependency', message: /did not answer within 15 s/ })
    t.match(await linkOf('dead'), { state: 'failed', detail: /did not answer/, routes: exactly() })
    t.notOk(interfaces().includes('dead'))
  })

  await t.test('no answer, no log and no entry of the record has a secret', async t => {
    const { events } = await client.call('GET /activity', {})
    const said = events.filter(({ type }) => type.startsWith('vpn.')).map(({ type }) => type)
    t.same([...new Set(said)].sort(), ['vpn.connected', 'vpn.disconnected', 'vpn.failed'])
    const details = await Promise.all(['wire', 'dead'].map(id => client.call('GET /vpn/{id}', { id })))
    const shown = JSON.stringify([events, details, await client.call('GET /capabilities'), daemon.logged])
    for (const secret of secrets) t.notOk(shown.includes(secret))
  })
})
