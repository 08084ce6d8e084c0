import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { allowedOf, parseAllowed } from '../../../../sdk/node/network/allow.js'
import { connectChecked, judge, type NetworkRules } from '../../../../sdk/node/network/policy.js'

const rules = (allow: string[] = [], only = false, listeners: NetworkRules['listeners'] = []): NetworkRules => ({
  allow: allowedOf(allow),
  only,
  listeners,
})
const OWN = Object.values(networkInterfaces())
  .flatMap(all => all ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address
const reached = (host: string, port: number, address: string, how: NetworkRules): boolean =>
  judge({ host, port }, address, how) === undefined

t.test(
  'an entry is a name, names below one, an address, a network or a local port, with a port or without',
  async t => {
    for (const entry of [
      'example.org',
      'Example.org.',
      '*.example.org:443',
      'db',
      '10.1.2.3',
      '10.0.0.0/8',
      '10.0.0.0/8:5432',
      'fd12::1',
      '[fd12::1]:80',
      'fd00::/8',
      '[fd00::/8]:80',
      'localhost:5432',
      '127.0.0.1:5432',
      '[::1]:80',
      '1.2.3.4:1',
      'xn--bcher-kva.example',
    ]) {
      t.notMatch(parseAllowed(entry), { expected: String }, entry)
    }
    for (const entry of [
      '',
      ' ',
      'localhost',
      '127.0.0.1',
      '::1',
      '127.0.0.0/8',
      '127.0.0.0/8:80',
      '0.0.0.0',
      'a.localhost:80',
      '*',
      '*.',
      '*.*.example',
      'a..b',
      '-a',
      'a b',
      'http://example.org',
      'example.org/x',
      'example.org:0',
      'example.org:65536',
      'example.org:x',
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/8/8',
      '[10.0.0.1',
      '1.2.3',
      '999.1.1.1',
      'fd00::/129',
      '::ffff:10.0.0.0/8',
      '[example.org]:80',
      `${'a'.repeat(64)}.example`,
    ])
      t.match(parseAllowed(entry), { expected: /host|localhost|address/ }, JSON.stringify(entry))
    for (const entry of [
      '169.254.169.254',
      '169.254.169.254:80',
      '100.100.100.200',
      '[fd00:ec2::254]:80',
      '::ffff:169.254.169.254',
      'metadata.google.internal',
    ]) {
      t.match(parseAllowed(entry), { expected: /told its own secrets/ }, entry)
    }
  },
)

t.test('public addresses are reached, private ones only if they are allowed', async t => {
  t.ok(reached('a.example', 443, '8.8.8.8', rules()))
  for (const address of [
    '10.0.0.1',
    '192.168.1.1',
    '100.64.1.1',
    'fd12::1',
    '169.254.7.7',
    'fe80::1',
    '::ffff:10.0.0.1',
    '64:ff9b::10.0.0.1',
  ]) {
    t.notOk(reached('a.example', 443, address, rules()), address)
    t.notOk(reached('a.example', 443, address, rules(['b.example', 'a.example:80', '172.16.0.0/12'])), address)
    t.ok(reached('a.example', 443, address, rules(['A.example'])), `${address} by name`)
  }
  t.ok(reached('x', 80, '10.4.5.6', rules(['10.0.0.0/8'])))
  t.ok(reached('x', 80, '::ffff:10.4.5.6', rules(['10.0.0.0/8:80'])), 'in every form of it')
  t.notOk(reached('x', 81, '10.4.5.6', rules(['10.0.0.0/8:80'])))
  t.ok(reached('c.b.example.', 80, '10.0.0.1', rules(['*.b.example'])))
  t.notOk(reached('b.example', 80, '10.0.0.1', rules(['*.b.example'])), 'the name itself is not a subdomain')
  t.notOk(reached('cb.example', 80, '10.0.0.1', rules(['*.b.example'])))
})

t.test('with networkOnly only allowed targets are reached', async t => {
  const only = rules(['a.example', '1.1.1.0/24:443'], true)
  t.ok(reached('a.example', 1, '8.8.8.8', only))
  t.ok(reached('1.1.1.1', 443, '1.1.1.1', only))
  t.notOk(reached('1.1.1.1', 80, '1.1.1.1', only))
  t.notOk(reached('b.example', 443, '8.8.8.8', only))
  t.match(judge({ host: 'b.example', port: 443 }, '8.8.8.8', only), { entry: 'b.example:443' })
})

t.test('neither the daemon nor metadata addresses are reachable, with any allowed hosts', async t => {
  const all = rules(['0.0.0.0/0', '::/0', '169.254.0.0/16', '*.example', 'localhost:8787', 'localhost:80'], false, [
    { host: '127.0.0.1', port: 8787 },
  ])
  for (const address of ['169.254.169.254', '100.100.100.200', 'fd00:ec2::254', '::ffff:a9fe:a9fe'])
    t.notOk(reached('a.example', 80, address, all), address)
  for (const address of ['127.0.0.1', '::1', '0.0.0.0', '::ffff:127.0.0.1', ...(OWN ? [OWN] : [])])
    t.match(
      judge({ host: 'localhost', port: 8787 }, address, all),
      { why: /this sandbox itself/, entry: undefined },
      address,
    )
  for (const address of ['224.0.0.1', '255.255.255.255', 'ff02::1', 'nope'])
    t.notOk(reached('a.example', 80, address, all), address)
})

t.test('on this machine only allowed ports are reached, and never by an allowed name', async t => {
  for (const address of ['127.0.0.1', '127.8.8.8', '::1', '0.0.0.0']) {
    t.match(
      judge({ host: 'a.example', port: 5432 }, address, rules(['a.example', '*.example'])),
      { entry: 'localhost:5432' },
      address,
    )
    t.ok(reached('localhost', 5432, address, rules(['localhost:5432'])), address)
    t.notOk(reached('localhost', 5433, address, rules(['localhost:5432'])), address)
  }
  if (!OWN) return
  t.match(judge({ host: 'a.example', port: 80 }, OWN, rules(['a.example', 'localhost:80'])), { entry: `${OWN}:80` })
  t.ok(reached(OWN, 80, OWN, rules([`${OWN}:80`])))
})

t.test('a connection goes to the address that was checked', async t => {
  const server = createServer(socket => socket.on('error', () => {}).end('here')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const { signal } = new AbortController()
  await t.rejects(connectChecked({ host: 'localhost', port }, rules(), signal), {
    reason: 'forbidden',
    message: /sandbox network allow localhost:/,
  })
  const socket = await connectChecked({ host: 'localhost', port }, rules([`localhost:${port}`]), signal)
  t.equal(socket.remotePort, port)
  socket.destroy()
  server.close()
  await t.rejects(connectChecked({ host: '127.0.0.1', port }, rules([`localhost:${port}`]), signal), {
    code: 'ECONNREFUSED',
  })
})
