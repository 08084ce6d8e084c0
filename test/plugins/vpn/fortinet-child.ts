import { execFileSync, spawn } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FortinetClient } from '../../../plugins/vpn/clients/fortinet.js'
import { project } from '../../support/browser/page.js'
import { daemonWith, folderOf } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { selfSigned } from '../../support/servers/share-servers.js'
import { vaultFake } from '../capabilities/support.js'
import { CODE, FAR, FarEnd } from './peer.js'
import { until } from '../../support/browser/browser.js'
import { add, dial } from './support.js'

const PASSWORD = 'correct "horse" \\ battery'
const GATEWAY = join(project, 'test/fixtures/vpn/fortinet-gateway.py')

/** The command lines of the clients, by their processes. */
const clients = (): [pid: number, command: string][] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap((pid): [number, string][] => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return /openconnect\0/.test(command) ? [[Number(pid), command]] : []
      } catch {
        return []
      }
    })
const shown = (what: 'link' | 'route'): string => execFileSync('ip', [what], { encoding: 'utf8' })
const nameServers = (): string => readFileSync('/etc/resolv.conf', 'utf8')
const pageAt = async (address: string, withinMs = 5000): Promise<string> =>
  (await fetch(`http://${address}/`, { signal: AbortSignal.timeout(withinMs) })).text()

await t.test('tunnels of Fortinet', async t => {
  const vault = vaultFake()
  const daemon = await daemonWith(t, ['activity', 'capabilities', 'vpn', 'system'], { fakes: vault.fakes })
  const { client } = daemon
  const far = await FarEnd.start(t)
  const { cert, key } = selfSigned(folderOf(t))
  const trustedCert = `sha256:${createHash('sha256')
    .update(new X509Certificate(readFileSync(cert)).raw)
    .digest('hex')}`
  for (const address of ['10.91.0.1', '10.91.4.1', '10.90.0.1'])
    far.run('ip', ['addr', 'add', `${address}/32`, 'dev', 'lo'])
  const words = join(folderOf(t), 'words')
  writeFileSync(words, `${PASSWORD}\n${CODE}\n`)
  const gateway = far.begin('python3', [GATEWAY, '10443', cert, key, words])
  let said = ''
  gateway.stdout!.on('data', (text: Buffer) => (said += text.toString()))
  await once(gateway.stdout!, 'data')
  const linkOf = async (id: string) => (await client.call('GET /vpn')).links.find(link => link.id === id)
  const FORTINET = {
    provider: 'fortinet',
    server: FAR,
    port: '10443',
    username: 'ada',
    password: PASSWORD,
    trustedCert,
  }
  const before = [shown('route'), nameServers()]

  await t.test('it is dialled when it is added, and carries traffic', async t => {
    const frames = await add(daemon, 'office', { ...FORTINET, realm: 'staff' })
    t.match(frames.at(-1), { kind: 'result', status: { state: 'active' } })
    t.match(said, /login ada staff/)
    t.match(await client.call('GET /vpn/{id}', { id: 'office' }), {
      ...{ provider: 'fortinet', state: 'connected', interface: 'office', address: '10.92.0.2/32' },
      ...{ gateway: `${FAR}:10443`, routes: exactly('10.91.0.0/16', '10.92.0.0/24'), dns: exactly('10.91.0.53') },
      ...{ since: Number, missing: exactly(), log: /Configured as 10\.92\.0\.2/ },
    })
    for (const address of ['10.91.0.1', '10.92.0.1']) t.equal(await pageAt(address), far.page)
    t.equal(nameServers(), before[1], 'name servers are shown, and not used')
    t.match(
      clients().map(([, command]) => command),
      exactly(/--protocol=fortinet/),
    )
    t.notOk(clients()[0]![1].includes(PASSWORD))
    t.match(await dial(daemon, 'office'), exactly({ kind: 'log' }, { kind: 'result', link: { state: 'connected' } }))
    await client.call('POST /vpn/{id}/disconnect', { id: 'office' })
    t.notMatch(shown('link'), /\boffice\b/)
    t.equal(shown('route'), before[0])
    t.same(clients(), [])
  })

  await t.test('with limited networks the others are not reached', async t => {
    await add(daemon, 'some', { ...FORTINET, routedNetworks: '10.91.4.0/24, 192.0.2.0/24', autoConnect: 'off' })
    t.match((await dial(daemon, 'some')).at(-1), { link: { state: 'connected', routes: exactly('10.91.4.0/24') } })
    t.equal(await pageAt('10.91.4.1'), far.page)
    t.equal(await pageAt('10.91.0.1', 1000).catch(() => 'nothing'), 'nothing')
    await client.call('DELETE /capabilities/{id}', { id: 'some' })
    t.equal(shown('route'), before[0])
  })

  await t.test('a gateway that asks for a code gets the one of the dial', async t => {
    await add(daemon, 'bob', { ...FORTINET, username: 'bob', autoConnect: 'off' })
    await t.rejects(dial(daemon, 'bob'), { reason: 'dependency', message: /asks for a code: dial again/ })
    await t.rejects(dial(daemon, 'bob', '000000'), { reason: 'dependency', message: /refused the sign-in/ })
    t.match((await dial(daemon, 'bob', CODE)).at(-1), { kind: 'result', link: { state: 'connected' } })
    t.notOk(clients()[0]![1].includes(CODE))
    await client.call('DELETE /capabilities/{id}', { id: 'bob' })
  })

  await t.test('a wrong password, another certificate and a silent port end the dial, and nothing remains', async t => {
    const other = `sha256:${'a'.repeat(64)}`
    const { trustedCert: _, ...untrusted } = FORTINET
    const logins = said.split('login').length
    for (const [id, config, message] of [
      [
        'pinned',
        { ...FORTINET, trustedCert: other },
        new RegExp(`expected the certificate ${other}, found ${trustedCert}`),
      ],
      ['nobody', untrusted, /certificate of the gateway is not trusted \(signer not found\)/],
      ['silent', { ...FORTINET, port: '9' }, /does not answer/],
    ] as const) {
      await add(daemon, id, { ...config, autoConnect: 'off' })
      await t.rejects(dial(daemon, id), { reason: 'dependency', message }, id)
      t.match(await linkOf(id), { state: 'failed', detail: message, routes: exactly() }, id)
    }
    t.equal(said.split('login').length, logins, 'no password was sent')
    await add(daemon, 'wrong', { ...FORTINET, password: 'wrong word', autoConnect: 'off' })
    await t.rejects(dial(daemon, 'wrong'), { reason: 'dependency', message: /refused the sign-in/ })
    t.equal(shown('route'), before[0])
    t.same(clients(), [])
  })

  await t.test('a network that goes elsewhere already ends the dial, and still goes there', async t => {
    execFileSync('ip', ['route', 'add', '10.92.0.0/24', 'via', FAR])
    const routes = shown('route')
    await t.rejects(dial(daemon, 'office'), {
      reason: 'dependency',
      message: /another route to 10\.92\.0\.0\/24.*routedNetworks/,
    })
    t.equal(shown('route'), routes)
    execFileSync('ip', ['route', 'delete', '10.92.0.0/24', 'via', FAR])
  })

  await t.test('a connection that is cut is made again by the same client', async t => {
    await dial(daemon, 'office')
    const [client] = clients()
    const connections = said.split('/remote/sslvpn-tunnel').length
    gateway.kill('SIGUSR1')
    await until(() => said.split('/remote/sslvpn-tunnel').length > connections)
    await until(() =>
      pageAt('10.91.0.1', 2000).then(
        text => text === far.page,
        () => false,
      ),
    )
    t.same(clients(), [client])
    await daemon.client.call('POST /vpn/{id}/disconnect', { id: 'office' })
    t.same(clients(), [])
  })

  await t.test('a sign-in that a killed daemon began ends with its tunnel', async t => {
    const folder = folderOf(t)
    const args = [
      ...['--protocol=fortinet', '--background', `--pid-file=${join(folder, 'openconnect.pid')}`, '--passwd-on-stdin'],
      ...['--interface=lost', `https://${FAR}:10443/`],
    ]
    const child = spawn('openconnect', args, { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
    const over = once(child, 'exit')
    await until(() => clients().length === 1)
    await new FortinetClient().drop({ id: 'lost', interface: 'lost', folder })
    t.same(clients(), [])
    await over
  })

  await t.test('a client that ends by itself ends the tunnel, as the list and the record say', async t => {
    await dial(daemon, 'office')
    process.kill(clients()[0]![0], 'SIGKILL')
    for (let tries = 0; (await linkOf('office'))?.state !== 'disconnected'; tries++) {
      if (tries > 100) throw new Error('it is still shown')
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    await client.call('POST /vpn/{id}/disconnect', { id: 'office' })
    t.equal(shown('route'), before[0])
  })

  await t.test('no answer, no log and no entry of the record has a secret', async t => {
    const { events } = await client.call('GET /activity', {})
    const details = await Promise.all(['office', 'wrong', 'pinned'].map(id => client.call('GET /vpn/{id}', { id })))
    const all = JSON.stringify([events, details, await client.call('GET /capabilities'), daemon.logged])
    for (const value of [PASSWORD, CODE, 'wrong word', 'a-cookie-of-the-test'])
      t.notOk(all.includes(JSON.stringify(value).slice(1, -1)), value)
  })
})
