import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import t from 'tap'
import { shellTurn } from '../../attack/support.js'
import { daemonWith } from '../../support/daemon.js'
import { beginning, exactly } from '../../support/lists.js'
import { between, until } from '../../support/browser/browser.js'
import { vaultFake } from '../capabilities/support.js'
import { CHECK, NEAR, Outside } from './outside.js'
import { addExit, exitIn, rotateExit, startExit, useExit } from './support.js'
import { certificates, nameServer, openvpnServer, poolList, poolRow, wireguardServer } from './tunnel-servers.js'

const run = promisify(execFile)
const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' })
const main = (): string => ip('route', 'show', 'table', 'main')

/** What the check server sees of a request through a proxy. */
const through = async (host: string, how: 'socks' | 'http' = 'socks', at = CHECK): Promise<string> =>
  (
    await run('curl', [
      ...['-sS', '-m', '20', ...(how === 'socks' ? ['--socks5-hostname', host] : ['--proxy', `http://${host}`])],
      `http://${at}/`,
    ])
  ).stdout

const clients = (): string[] =>
  readdirSync('/proc').flatMap(pid => {
    if (!/^\d+$/.test(pid)) return []
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return line.includes('--management-hold') || line.startsWith('wireguard-go\0x') ? [pid] : []
    } catch {
      return []
    }
  })

const GROUPS_OF_TURNS = ['areas', 'agent', 'agents', 'settings', 'skills', 'personas']

t.setTimeout(240_000)
await t.test('exits through tunnels', async t => {
  const outside = await Outside.start(t)
  nameServer(outside)
  const [nl, de] = await Promise.all([
    wireguardServer(t, outside, { name: 'farnl', client: '198.51.100.2', port: 51821, label: '# country: NL' }),
    wireguardServer(t, outside, { name: 'farde', client: '203.0.113.2', port: 51822, label: '# DE-FRA#1' }),
  ])
  const de2 = await wireguardServer(t, outside, { name: 'farx', client: '203.0.113.3', port: 51823, label: '# a note' })
  const at = certificates(t)
  const [poolNl, poolDe] = await Promise.all([
    openvpnServer(outside, at, { name: 'ovnl', network: '198.51.101.0', port: 1194 }),
    openvpnServer(outside, at, { name: 'ovde', network: '203.0.114.0', port: 1195 }),
  ])
  let list: string | undefined
  const lists = createServer((_, answer) => void (list === undefined ? answer.writeHead(503).end() : answer.end(list)))
  await new Promise<void>(listening => lists.listen(0, '127.0.0.1', listening))
  t.teardown(() => lists.close())
  const vault = vaultFake()
  const daemon = await daemonWith(t, [...['activity', 'capabilities', 'exit', 'system'], ...GROUPS_OF_TURNS], {
    fakes: vault.fakes,
    deployment: {
      exit: { checks: outside.checks, pool: `http://127.0.0.1:${(lists.address() as AddressInfo).port}/list` },
    },
  })
  const { client } = daemon
  const before = { main: main(), rules: ip('rule'), links: ip('-br', 'link') }
  const isClean = (): boolean =>
    main() === before.main && ip('rule') === before.rules && ip('-br', 'link') === before.links

  await t.test('several configurations of WireGuard are one exit, which is used, rotated and stopped', async t => {
    await addExit(daemon, 'wire', { provider: 'wireguard', config: [nl, de, de2].map(each => each.client).join('\n') })
    const { proxy } = await exitIn(daemon, 'wire')
    const { host } = new URL(proxy)
    t.match(await client.call('GET /exit/{id}/countries', { id: 'wire' }), {
      countries: exactly({ country: 'DE', servers: 1, share: 0.5 }, { country: 'NL', servers: 1 }),
      live: true,
    })
    t.match((await useExit(daemon, 'wire', 'NL')).at(-1), { link: { observedCountry: 'NL', ip: nl.address, proxy } })
    t.equal(main(), before.main)
    t.equal(await through(host), `ip=${nl.address}\nloc=NL\n`)
    t.equal(await through(host, 'http', 'only-there.example'), `ip=${nl.address}\nloc=NL\n`, 'a name of the far end')
    const own = await (await fetch(`http://${CHECK}/`)).text()
    t.equal(own, `ip=${NEAR}\nloc=US\n`, 'the daemon itself leaves from its own address')
    t.match((await useExit(daemon, 'wire', 'DE')).at(-1), { link: { ip: de.address, interface: 'xwire' } })
    t.match((await rotateExit(daemon, 'wire')).at(-1), { link: { ip: de2.address, observedCountry: 'DE' } })
    t.match(await client.call('GET /exit/{id}/countries', { id: 'wire' }), {
      countries: exactly({ country: 'DE', servers: 2 }, { country: 'NL' }),
    })
    t.match((await useExit(daemon, 'wire', 'NL')).at(-1), { link: { ip: nl.address } })
    await t.rejects(rotateExit(daemon, 'wire'), { reason: 'unprocessable', message: /only one server in NL/ })
    await t.rejects(useExit(daemon, 'wire', 'SE'), { reason: 'unprocessable', message: /one of DE, NL|one of NL, DE/ })
    t.match(await exitIn(daemon, 'wire'), { state: 'up', country: 'NL' })
    t.equal(main(), before.main)
  })

  await t.test('programs of a conversation find its proxy, and their turn lists it', async t => {
    const { host } = new URL((await exitIn(daemon, 'wire')).proxy)
    const asks = `curl -sS -m 20 --noproxy '' --socks5-hostname ${host} http://only-there.example/`
    const call = (path: string, ...more: string[]) =>
      ['curl -sS -m 20 -H "x-sandbox-turn: $SANDBOX_TURN_TOKEN"', ...more, `"$SANDBOX_DAEMON${path}"`].join(' ')
    const post = ['-X POST', "-H 'content-type: application/json'", "-d '{}'"]
    const [page, listed, checked] = await shellTurn(client, 'wide', [
      ...[asks, call('/exit'), call('/exit/wire/check', ...post)],
    ])
    t.match(page, `ip=${nl.address}\nloc=NL`)
    t.match(JSON.parse(listed ?? ''), { links: exactly({ id: 'wire', state: 'up' }) })
    t.match(JSON.parse(checked ?? ''), { ip: nl.address, country: 'NL' })
    await client.call('POST /personas', { id: 'reader', label: 'Reader', capabilities: [], powers: { sandbox: false } })
    const [refused, unlisted] = await shellTurn(client, 'narrow', [asks, call('/exit')], { actsAs: 'reader' })
    t.match(refused, /refused|connect/i, 'not without the power')
    t.match(unlisted, /forbidden|"reason"/)
    await client.call('POST /settings/patch', { set: { networkOnly: true } })
    const [shut] = await shellTurn(client, 'wide', [asks])
    t.notMatch(shut, /loc=/, 'nor where only named targets are reached')
    await client.call('POST /settings/patch', { set: { networkOnly: false } })
  })

  await t.test('a browser profile that names it goes through it, or does not start', async t => {
    const config = { platform: 'site', url: 'http://only-there.example/', exit: 'wire' }
    const frames = await client.call('POST /capabilities', { id: 'shop', kind: 'browser', config })
    for await (const _ of frames);
    const login = await client.call('POST /capabilities/{id}/login', { id: 'shop' })
    if (login.kind !== 'browser') throw new Error('expected a window')
    const { text } = await between(daemon, 'browsers.use', { name: login.session, action: 'read' })
    t.match(text, `ip=${nl.address}`)
    const near = { name: login.session, action: 'open', url: 'http://10.0.0.1/' } as const
    await t.rejects(client.call('POST /system/browsers/{name}/page', near), { message: /not reached through an exit/ })
    await client.call('DELETE /system/browsers/{name}', { name: login.session })
    outside.lie('FR')
    await t.rejects(client.call('POST /capabilities/{id}/login', { id: 'shop' }), { message: /came out in FR/ })
    outside.lie(undefined)
    await client.call('DELETE /capabilities/{id}', { id: 'shop' })
  })

  await t.test('its proxy reaches nothing of this machine', async t => {
    const { host } = new URL((await exitIn(daemon, 'wire')).proxy)
    const status = async (...args: string[]) =>
      (await run('curl', ['-s', '-o', '/dev/null', '-w', '%{http_code}', ...args])).stdout
    for (const target of ['127.0.0.1:1', 'localhost:1', NEAR, '169.254.169.254', '[::1]:1', '0.0.0.0:1'])
      t.equal(await status('--noproxy', '', '--proxy', `http://${host}`, `http://${target}/`), '403', target)
    t.equal(await status(`http://${host}/`), '400', 'a request of a browser')
    const other = ['-s', '-m', '5', '--proxy', `http://${host}`, `http://${CHECK}/`]
    await t.rejects(run('setpriv', ['--reuid', '65534', '--clear-groups', 'curl', ...other]), 'another user')
  })

  await t.test('one whose interface is gone refuses, and nothing of it goes out directly', async t => {
    const { host } = new URL((await exitIn(daemon, 'wire')).proxy)
    const said: Buffer[] = []
    const dump = outside.begin('tcpdump', '-l', '-n', '-i', 'far0', 'tcp', 'and', 'port', '80')
    dump.stdout!.on('data', (piece: Buffer) => said.push(piece))
    ip('link', 'delete', 'dev', 'xwire')
    await t.rejects(through(host), /network is unreachable|\(3\)/i)
    await t.rejects(run('curl', ['-sSf', '--proxy', `http://${host}`, `http://${CHECK}/`]), /502/)
    t.match(await exitIn(daemon, 'wire'), { state: 'failed', detail: /xwire is gone|ended/ })
    await run('curl', ['-sS', `http://${CHECK}/`])
    await until(() => String(said).includes(`${NEAR}.`))
    t.notMatch(String(said), new RegExp(nl.address.replaceAll('.', '\\.')))
    const direct = String(said).match(/Flags \[S\]/g) ?? []
    t.equal(direct.length, 1, 'that of the test itself alone')
    await client.call('POST /exit/{id}/stop', { id: 'wire' })
    t.ok(isClean())
    await t.rejects(through(host), /refused|connect/i)
  })

  await t.test('where the world sees another country, nothing of a tunnel is left', async t => {
    outside.lie('FR')
    await t.rejects(useExit(daemon, 'wire', 'DE'), { reason: 'dependency', message: /DE was asked for.* FR/ })
    outside.lie(undefined)
    t.ok(isClean())
    t.same(clients(), [])
    t.match(await exitIn(daemon, 'wire'), { state: 'failed', detail: /DE was asked for/ })
    const { events } = await client.call('GET /activity', {})
    const types = events.filter(({ type }) => type.startsWith('exit.')).map(({ type }) => type)
    t.same([...new Set(types)].sort(), ['exit.down', 'exit.failed', 'exit.moved', 'exit.up'])
    const keys = /PrivateKey = (\S+)/.exec(nl.client)![1]!
    t.notOk(JSON.stringify([events, daemon.logged]).includes(keys))
  })

  await t.test('a pool that nobody lists has built-in countries, and starts nowhere', async t => {
    await addExit(daemon, 'pool', { provider: 'public_vpn_pool' })
    t.match(await client.call('GET /exit/{id}/countries', { id: 'pool' }), {
      live: false,
      countries: beginning({ country: 'JP', servers: 0 }),
    })
    await t.rejects(startExit(daemon, 'pool'), { reason: 'dependency', message: /could not be read/ })
    t.match(await exitIn(daemon, 'pool'), { state: 'failed' })
  })

  await t.test('a server of the pool is dialled by its country, and its list runs nothing', async t => {
    const short = poolRow('short', 'SE', 9, poolNl.client).split(',').slice(0, 9).join(',')
    list = poolList(poolRow('one', 'NL', 5, poolNl.client), short, poolRow('two', 'DE', 7, poolDe.client))
    t.match(await client.call('GET /exit/{id}/countries', { id: 'pool' }), {
      countries: exactly({ country: 'DE', servers: 1, share: 0.5 }, { country: 'NL', servers: 1 }),
      live: true,
    })
    t.match((await useExit(daemon, 'pool', 'NL')).at(-1), { link: { ip: poolNl.address, observedCountry: 'NL' } })
    t.equal(main(), before.main)
    const { host } = new URL((await exitIn(daemon, 'pool')).proxy)
    t.equal(await through(host), `ip=${poolNl.address}\nloc=NL\n`)
    t.match((await useExit(daemon, 'pool', 'DE')).at(-1), { link: { ip: poolDe.address, interface: 'xpool' } })
    t.equal(await through(host, 'http', 'only-there.example'), `ip=${poolDe.address}\nloc=DE\n`)
    t.equal(main(), before.main)
    t.notOk(existsSync(at('ran')))
    await t.rejects(useExit(daemon, 'pool', 'SE'), { reason: 'unprocessable', message: /one of DE, NL/ })
    for (const pid of clients()) process.kill(Number(pid), 'SIGKILL')
    await until(async () => (await exitIn(daemon, 'pool')).state === 'failed')
    await t.rejects(through(host), /network is unreachable|\(3\)/i)
    await client.call('DELETE /capabilities/{id}', { id: 'pool' })
    t.ok(isClean())
  })
})
