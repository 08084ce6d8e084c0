import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import type { ExitLink } from '../../../plugins/exit/contract.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { daemonWith } from '../../support/daemon.js'
import { vaultFake } from '../capabilities/support.js'
import { onionNetwork } from './onion-network.js'
import { CHECK } from './outside.js'
import { addExit, exitIn, rotateExit, startExit, useExit } from './support.js'

const run = promisify(execFile)

/** What the check server sees of a request through a proxy. */
const seenThrough = async (args: readonly string[]): Promise<string> =>
  (await run('curl', ['-sS', '-m', '40', ...args, `http://${CHECK}/`])).stdout

/** The processes of `tor` below a folder. */
const torsOf = (data: string): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      try {
        return (
          readlinkSync(`/proc/${pid}/cwd`).startsWith(data) && readFileSync(`/proc/${pid}/comm`, 'utf8') === 'tor\n'
        )
      } catch {
        return false
      }
    })

t.setTimeout(240_000)
await t.test('an exit through an onion network', async t => {
  const network = await onionNetwork(t)
  const vault = vaultFake()
  const { torrc, ranges, outside } = network
  const { checks } = outside
  const daemon = await daemonWith(t, ['activity', 'capabilities', 'exit', 'system'], {
    fakes: vault.fakes,
    deployment: { exit: { torrc, checks, ranges, relays: 'http://192.0.2.200/relays' } },
  })
  const { client } = daemon
  await addExit(daemon, 'onion', { provider: 'onion_router', country: 'de' })

  const { proxy } = await exitIn(daemon, 'onion')
  const { host } = new URL(proxy)

  const through = (...args: string[]) => seenThrough(args)

  await t.test('it starts in its country, and its proxy speaks SOCKS and HTTP on one port', async t => {
    const lines = await startExit(daemon, 'onion')
    t.match(lines.at(-1), { kind: 'result', link: { state: 'up', country: 'DE', observedCountry: 'DE', proxy } })
    const { ip } = await exitIn(daemon, 'onion')
    const http = `http://${host}`
    for (const args of [
      ['--socks5-hostname', host],
      ['--proxy', http],
      ['-p', '--proxy', http],
    ])
      t.equal(await through(...args), `ip=${ip}\nloc=DE\n`)
    t.match(await startExit(daemon, 'onion'), exactly({ message: 'onion is up already' }, { kind: 'result' }))
  })

  await t.test('it moves under the same port, and to no country that has no exit', async t => {
    t.match((await useExit(daemon, 'onion', 'nl')).at(-1), { link: { country: 'NL', observedCountry: 'NL', proxy } })
    t.match(await through('--socks5-hostname', host), /loc=NL/)
    await t.rejects(useExit(daemon, 'onion', 'FR'), {
      reason: 'unprocessable',
      message: /FR now: expected one of (NL, DE|DE, NL)/,
    })
    t.match(await exitIn(daemon, 'onion'), { state: 'up', country: 'NL', observedCountry: 'NL' })
    t.match(await through('--socks5-hostname', host), /loc=NL/)
    const listed = () => client.call('GET /exit/{id}/countries', { id: 'onion' })
    await until(async () => (await listed()).countries.every(({ servers }) => servers === 2))
    const { countries, live } = await listed()
    t.match(
      { live, names: countries.map(({ countryName, servers }) => `${countryName} ${servers}`).sort() },
      {
        live: true,
        names: exactly('Germany 2', 'Netherlands 2'),
      },
    )
  })

  await t.test('it takes another address in its country; where there is none it stays where it is', async t => {
    const { ip: before = '' } = await exitIn(daemon, 'onion')
    const second = rotateExit(daemon, 'onion')
    await until(async () => (await exitIn(daemon, 'onion')).state === 'starting')
    await t.rejects(useExit(daemon, 'onion', 'DE'), { reason: 'conflict', message: /rotating/ })
    const { ip: after = '' } = ((await second).at(-1) as { link: ExitLink }).link
    t.not(after, before)
    network.killOthers(after)
    await t.rejects(rotateExit(daemon, 'onion'), { reason: 'dependency', message: /its address is still/ })
    t.match(await exitIn(daemon, 'onion'), { state: 'up', ip: after })
    t.equal(await through('--socks5-hostname', host), `ip=${after}\nloc=NL\n`)
  })

  await t.test('a check tells where it is, and 10 in a minute are enough', async t => {
    t.match(await client.call('POST /exit/{id}/check', { id: 'onion' }), { country: 'NL', countryName: 'Netherlands' })
    outside.lie('SE')
    t.match(await client.call('POST /exit/{id}/check', { id: 'onion' }), { country: 'SE' })
    t.match(await exitIn(daemon, 'onion'), { state: 'up', observedCountry: 'SE', detail: /drifted: NL was asked for/ })
    for (let more = 0; more < 8; more++) await client.call('POST /exit/{id}/check', { id: 'onion' })
    await t.rejects(client.call('POST /exit/{id}/check', { id: 'onion' }), { reason: 'too-many', message: /10 times/ })
  })

  await t.test('where the world sees another country than the one asked for, nothing is left running', async t => {
    await t.rejects(useExit(daemon, 'onion', 'DE'), { reason: 'dependency', message: /DE was asked for.* SE/ })
    t.match(await exitIn(daemon, 'onion'), { state: 'failed', detail: /DE was asked for/, ip: undefined })
    t.same(torsOf(daemon.data), [])
    await t.rejects(through('--socks5-hostname', host), /refused|7/)
    outside.lie(undefined)
  })

  await t.test('one whose client is killed refuses, and starts again; stopping ends a start', async t => {
    t.match((await startExit(daemon, 'onion')).at(-1), { link: { country: 'NL', observedCountry: 'NL' } })
    for (const pid of torsOf(daemon.data)) process.kill(pid, 'SIGKILL')
    await until(async () => (await exitIn(daemon, 'onion')).state === 'failed')
    t.match(await exitIn(daemon, 'onion'), { detail: /tor has ended/ })
    await t.rejects(through('--socks5-hostname', host), /network is unreachable|\(3\)/i)
    t.match(
      await run('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code}', '--proxy', `http://${host}`, checks[0]!]),
      {
        stdout: '502',
      },
    )
    const starting = startExit(daemon, 'onion')
    starting.catch(() => {})
    await until(async () => (await exitIn(daemon, 'onion')).state === 'starting')
    await client.call('POST /exit/{id}/stop', { id: 'onion' })
    await t.rejects(starting, { message: /stopped meanwhile/ })
    t.match(await exitIn(daemon, 'onion'), { state: 'down', country: 'NL' })
    t.same(torsOf(daemon.data), [])
  })
})
