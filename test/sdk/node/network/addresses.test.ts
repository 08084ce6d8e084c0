import { networkInterfaces } from 'node:os'
import t from 'tap'
import { addressKind, barred, plainAddress, type AddressKind } from '../../../../sdk/node/network/addresses.js'

const KINDS: { readonly [kind in AddressKind]: readonly string[] } = {
  public: [
    '1.1.1.1',
    '8.8.8.8',
    '172.15.255.255',
    '172.32.0.1',
    '100.63.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '2a00::1',
    '64:ff9b::8.8.8.8',
    '2002:808:808::1',
    '::ffff:8.8.8.8',
  ],
  private: [
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '198.18.0.1',
    'fc00::1',
    'fd12:3456::1',
    'fec0::1',
    '::ffff:10.0.0.1',
    '64:ff9b::10.0.0.1',
    '2002:a00:1::1',
    '::192.168.0.1',
  ],
  loopback: [
    '127.0.0.1',
    '127.255.0.9',
    '0.0.0.0',
    '0.1.2.3',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::127.0.0.1',
    '2002:7f00:1::',
    '[::1]',
  ],
  'link-local': ['169.254.0.1', '169.254.255.255', 'fe80::1', 'fe80::1%eth0', 'febf::1', '::ffff:169.254.1.1'],
  metadata: [
    '169.254.169.254',
    '169.254.170.2',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    'fd00:ec2::254',
    'fd20:ce::254',
    '::ffff:169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::',
  ],
  unusable: [
    '224.0.0.1',
    '239.1.1.1',
    '240.0.0.1',
    '255.255.255.255',
    'ff02::1',
    '2001::1',
    '64:ff9b:1::1',
    '',
    'localhost',
    '1.2.3',
    '1.2.3.4.5',
    ':::',
    '127.1',
    '0x7f.0.0.1',
  ],
}

for (const [kind, addresses] of Object.entries(KINDS)) {
  t.test(`these addresses are ${kind}`, async t => {
    for (const address of addresses) t.equal(addressKind(address), kind, address)
  })
}

t.test('every notation of an address is normalised to one form', async t => {
  const forms: [string, string | undefined][] = [
    ['1.2.3.4', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['[::ffff:102:304]', '1.2.3.4'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['0:0::1', '0:0:0:0:0:0:0:1'],
    ['FE80::A%lo', 'fe80:0:0:0:0:0:0:a'],
    ['2001:db8::1:2', '2001:db8:0:0:0:0:1:2'],
    ['1::', '1:0:0:0:0:0:0:0'],
    ['nope', undefined],
  ]
  for (const [written, plain] of forms) t.equal(plainAddress(written), plain, written)
})

t.test('private addresses need permission, other addresses are always or never reached', async t => {
  const far = { near: false, listeners: [] }
  const near = { near: true, listeners: [] }
  for (const address of ['127.0.0.1', '10.0.0.1', '::1']) {
    t.match(barred(address, 80, far), /may not reach/, address)
    t.equal(barred(address, 80, near), undefined, address)
  }
  for (const address of ['169.254.169.254', 'fe80::1', '224.0.0.1', 'nonsense'])
    t.ok(barred(address, 80, near), address)
  t.equal(barred('8.8.8.8', 443, far), undefined)
})

t.test('a listener of the daemon is never reached by any address of this machine', async t => {
  const reach = { near: true, listeners: [{ host: '127.0.0.1', port: 8787 }] }
  const own = Object.values(networkInterfaces())
    .flatMap(all => all ?? [])
    .map(({ address }) => address)
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '::', '::ffff:127.0.0.1', ...own]) {
    t.ok(barred(address, 8787, reach), address)
  }
  t.match(barred('127.0.0.1', 8787, reach), /this sandbox itself/)
  t.equal(barred('127.0.0.1', 8788, reach), undefined, 'another port is another program')
  t.equal(barred('8.8.8.8', 8787, reach), undefined, 'another machine too')
})
