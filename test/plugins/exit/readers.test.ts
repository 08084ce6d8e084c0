import { createServer, type Server } from 'node:http'
import { connect, createServer as createTcp } from 'node:net'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { exitRelays } from '../../../plugins/exit/catalogue/catalogues.js'
import { supplyOf } from '../../../plugins/exit/catalogue/countries.js'
import { poolConf, poolServers } from '../../../plugins/exit/catalogue/pool-list.js'
import { RangeFile, Ranges } from '../../../plugins/exit/catalogue/ranges.js'
import { circuitsIn, consensusRelays } from '../../../plugins/exit/clients/tor-control.js'
import { observationIn, observe } from '../../../plugins/exit/proxy/check.js'
import { ExitProxy } from '../../../plugins/exit/proxy/exit-proxy.js'
import { exitInterface, exitPortOf, exitTableOf } from '../../../plugins/exit/settings/settings.js'
import { countryLabelOf, wireguardParts } from '../../../plugins/exit/settings/wireguard-parts.js'
import { unusedPort } from '../../support/servers/share-servers.js'
import { folderOf } from '../../support/daemon.js'
import { wireguardText } from '../vpn/configurations.js'
import { poolList, poolRow } from './tunnel-servers.js'

const CA = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'
const OVPN = `client\ndev tun\nremote 192.0.2.9 1194\ncipher AES-128-CBC\n<ca>\n${CA}\n</ca>\n`

t.test('the label of a configuration is found in its comments, else in the name of its server', async t => {
  const cases: [text: string, endpoint: string, label: string | undefined][] = [
    ['# country: DE', '', 'DE'],
    ['#country=nl', 'de-fra-wg-001.example.org:51820', 'NL'],
    ['# SE-STO#12', '', 'SE'],
    ['# Name = FR-12', '', undefined],
    ['', 'de-fra-wg-001.example.org:51820', 'DE'],
    ['', 'us2-a-b.example.org:1', 'US'],
    ['', 'de-fra.example.org:1', undefined],
    ['# germany', '192.0.2.1:51820', undefined],
  ]
  for (const [text, endpoint, label] of cases) t.equal(countryLabelOf(text, endpoint), label, `${text} ${endpoint}`)
})

t.test('configurations come out without routes, name servers and the networks of addresses', async t => {
  const one = `# country: NL\n${wireguardText().replace('[Peer]', 'DNS = 10.0.0.53\nTable = 42\n[Peer]')}`
  const other = `# DE-1\n${wireguardText().replace('10.99.0.2', '10.98.0.2')}`
  const parts = wireguardParts(`${one}\n${other}\n${other}`)
  t.same(
    parts.map(({ country }) => country),
    ['NL', 'DE'],
    'twice the same is one',
  )
  for (const { conf, address } of parts) {
    t.match(conf.text, /^Table = off$/m)
    t.match(conf.text, new RegExp(`^Address = ${address}/32$`, 'm'))
    t.notMatch(conf.text, /DNS|Table = 42|^Address.*\/24/m)
  }
  t.same(parts[0]!.conf.dns, ['10.0.0.53'], 'names are looked up there all the same')
  for (const wrong of ['PreDown = x', 'PostUp=sh', 'Unknown = 1'])
    t.throws(() => wireguardParts(`${one}\n${other}${wrong}\n`), { message: /line 2\d: / }, wrong)
})

t.test('rows of a list that are not whole are left out, and directives that are not known too', async t => {
  const bad = [
    poolRow('a b', 'NL', 9, OVPN),
    poolRow('long', 'NLD', 9, OVPN),
    poolRow('here', 'NL', 9, OVPN).replace('192.0.2.100', '127.0.0.1'),
    poolRow('packed', 'NL', 9, OVPN).replace(/,[^,]*$/, ',not base64!'),
    poolRow('short', 'NL', 9, OVPN).split(',').slice(0, 14).join(','),
    ',,,,,,,,,,,,,,',
    '\0'.repeat(100),
  ]
  const list = poolList(...bad, poolRow('slow', 'nl', 1, OVPN), poolRow('fast', 'DE', 5, OVPN))
  t.same(
    poolServers(list).map(({ host, country }) => `${host} ${country}`),
    ['fast DE', 'slow NL'],
  )
  t.same(poolServers('<html>no list</html>'), [])
  const lines = ['up /bin/sh', 'plugin x.so', 'script-security 3', 'route 0.0.0.0 0.0.0.0', 'management 0.0.0.0 1']
  const hostile = [...lines, 'redirect-gateway def1', 'log /etc/passwd', 'ca /etc/passwd', 'auth-user-pass /etc/shadow']
  for (const line of hostile) {
    const { text } = poolConf({ packed: Buffer.from(`${line}\n${OVPN}`).toString('base64') })
    t.notMatch(text, new RegExp(`^${line.split(' ')[0] === 'ca' ? 'ca ' : line.split(' ')[0]}\\b`, 'm'), line)
    t.match(text, /^data-ciphers \S*AES-128-CBC$/m)
  }
  const closing = `${OVPN}<ca>\nx\n</ca> up sh\n`
  t.throws(() => poolConf({ packed: Buffer.from(closing).toString('base64') }))
})

t.test('relays and circuits are read from what tor and a directory say', async t => {
  const lines = [
    'r a AAAAAAAAAAAAAAAAAAAAAAAAAAA b 2026-01-01 00:00:00 198.51.100.1 1 0',
    's Exit Fast',
    'w Bandwidth=30',
  ]
  const bad = [
    'r b //////////////////////////8 b 2026-01-01 00:00:00 203.0.113.1 1 0',
    's Exit BadExit',
    'w Bandwidth=9',
  ]
  t.same(consensusRelays(['s Exit', ...lines, ...bad]), [
    { fingerprint: '0'.repeat(40), ip: '198.51.100.1', isExit: true, bandwidth: 30 },
    { fingerprint: 'F'.repeat(40), ip: '203.0.113.1', isExit: false, bandwidth: 9 },
  ])
  const fingerprint = 'AB'.repeat(20)
  t.same(
    circuitsIn([
      `7 BUILT $${'0'.repeat(40)}~a,$${fingerprint}~b PURPOSE=GENERAL`,
      '8 LAUNCHED BUILD_FLAGS=IS_INTERNAL',
    ]),
    [
      { id: '7', state: 'BUILT', last: fingerprint, leaves: true },
      { id: '8', state: 'LAUNCHED', last: '', leaves: false },
    ],
  )
  const relays = [
    { country: 'de', exit_probability: 0.6 },
    { country: 'nl', exit_probability: 0.2 },
    { country: 5 },
    null,
  ]
  t.same(
    supplyOf(exitRelays(JSON.stringify({ relays }))).map(({ country, share }) => [country, share.toFixed(2)]),
    [
      ['DE', '0.75'],
      ['NL', '0.25'],
    ],
  )
  for (const text of ['{}', '[]', 'x', '{"relays":5}']) t.throws(() => exitRelays(text), text)
})

t.test('a check address is believed in the forms it may have, and no further', async t => {
  const ip = '203.0.113.7'
  const cases: [text: string, seen: ReturnType<typeof observationIn>][] = [
    [`fl=1\nip=${ip}\nts=1\nloc=DE\n`, { ip, country: 'DE' }],
    [`ip=${ip}\nloc=XX\n`, { ip }],
    [`{"ip":"${ip}","country":"Germany","country_iso":"de"}`, { ip, country: 'DE' }],
    [`{"query":"${ip}","countryCode":"NL"}`, { ip, country: 'NL' }],
    [`{"ip":"${ip}","country":"NL"}`, { ip, country: 'NL' }],
    [`{"ip":"${ip}"}`, { ip }],
    ['{"ip":"nowhere"}', undefined],
    ['{"ip":{"a":1}}', undefined],
    ['{', undefined],
    [`<p>ip=${ip}</p>`, undefined],
    ['', undefined],
  ]
  for (const [text, seen] of cases) t.same(observationIn(text), seen, text)
  const ranges = new Ranges('# x\n3405803776,3405804031,DE\n16777216,16777471,AU\nbroken\n')
  t.equal(ranges.countryOf(ip), 'DE')
  t.same(
    ['1.0.0.9', '1.0.1.0', '203.0.112.255', '::1', 'x'].map(each => ranges.countryOf(each)),
    ['AU', ...Array.from({ length: 4 }, () => undefined)],
  )
})

t.test('ports, tables and interfaces come from the id, and no table is one of the system', async t => {
  t.same(['e21', 'e29', 'wire'].map(exitPortOf), [19_471, 19_471, 19_082])
  for (let each = 0; each < 3000; each++) {
    const table = exitTableOf(`exit-${each}`)
    if (table < 100 || (table >= 253 && table <= 255)) t.fail(`exit-${each} has the table ${table}`)
  }
  t.equal(exitInterface('a'.repeat(14)), `x${'a'.repeat(14)}`)
  t.match(exitInterface('a'.repeat(15)), /^x-[0-9a-f]{13}$/)
})

const listening = async (t: Test, server: Server): Promise<string> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}

t.test('the proxy refuses what is no proxy request, and everybody until it is proven', async t => {
  const proxy = await ExitProxy.listen(await unusedPort())
  t.teardown(() => proxy.close())
  await t.rejects(ExitProxy.listen(proxy.port), { reason: 'conflict', message: /taken by another program/ })
  const far = createTcp(socket => void socket.end('far'))
  far.listen(0, '127.0.0.1')
  await once(far, 'listening')
  t.teardown(() => far.close())
  const { port } = far.address() as { port: number }
  const said = async (bytes: string | Buffer): Promise<string> => {
    const socket = connect(proxy.port, '127.0.0.1')
    socket.on('error', () => {}).write(bytes)
    let text = ''
    for await (const piece of socket) text += (piece as Buffer).toString('latin1')
    return text
  }
  const socks = Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0, 3, 9]), Buffer.from('far.there'), Buffer.from([0, 80])])
  const asked = 'CONNECT far.there:80 HTTP/1.1\r\nhost: far.there\r\n\r\n'
  t.match(await said(socks), /^\x05\x00\x05\x03/, 'without a tunnel')
  t.match(await said(asked), /^HTTP\/1.1 502 /)
  const targets: string[] = []
  proxy.through(async ({ host }) => {
    targets.push(host)
    return connect(port, '127.0.0.1')
  })
  t.match(await said(socks), /^\x05\x00\x05\x03/, 'not proven yet')
  t.same(targets, [])
  proxy.proven()
  t.match(await said(socks), /^\x05\x00\x05\x00.*far$/s)
  t.match(await said(asked), /^HTTP\/1.1 200 [^]*far$/)
  t.same(targets, ['far.there', 'far.there'])
  const hostile: [bytes: string | Buffer, answer: RegExp][] = [
    ['GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n', /^HTTP\/1.1 400 [^]*proxy of an exit/],
    ['GET http://a b/ HTTP/1.1\r\n\r\n', /^HTTP\/1.1 400 /],
    ['CONNECT / HTTP/1.1\r\nhost: x\r\n\r\n', /^HTTP\/1.1 400 /],
    ['\x16\x03\x01\x02\x00', /^(?:HTTP\/1.1 400 |$)/],
    [Buffer.from([5, 0]), /^$/],
    [Buffer.from([5, 1, 0, 5, 2, 0, 1, 1, 1, 1, 1, 0, 80]), /^\x05\x00\x05\x07/],
    [Buffer.from([5, 1, 2]), /^\x05\xff$/],
  ]
  for (const [bytes, answer] of hostile) t.match(await said(bytes), answer, String(bytes))
  t.equal(targets.length, 2)
})

t.test('a check that does not tell is none, whatever it sends', async t => {
  const folder = folderOf(t)
  const proxy = await ExitProxy.listen(await unusedPort())
  t.teardown(() => proxy.close())
  const answers: { [path: string]: string } = { '/html': '<html>', '/lies': '{"ip":"1.2.3.4.5","country":"DE"}' }
  const host = await listening(
    t,
    createServer((asked, answer) => {
      if (asked.url === '/endless') return void setInterval(() => answer.write('x'.repeat(1000)), 1).unref()
      if (asked.url === '/silent') return
      if (asked.url === '/broken') return void asked.socket.end('HTTP/9 no\r\n\r\n')
      if (asked.url === '/good') return void answer.end('ip=203.0.113.7\nloc=DE\n')
      answer.writeHead(answers[asked.url ?? ''] ? 200 : 500).end(answers[asked.url ?? ''])
    }),
  )
  proxy.through(async ({ host: name, port }) => connect(port, name))
  const door = await proxy.door(folder)
  t.teardown(() => door.close())
  const { signal } = new AbortController()
  const urls = ['html', 'lies', 'endless', 'silent', 'broken', 'none'].map(path => `http://${host}/${path}`)
  const none = new RangeFile('/nonexistent')
  await t.rejects(observe(door.path, [...urls, `https://${host}/`], none, signal, 500), {
    reason: 'dependency',
    message: /names no address.*names no address.*within 0\.5 s.*answered 500/,
  })
  t.same(await observe(door.path, [urls[0]!, `http://${host}/good`], none, signal, 500), {
    ...{ ip: '203.0.113.7', country: 'DE', countryName: 'Germany' },
  })
})
