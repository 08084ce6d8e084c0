import t from 'tap'
import { exactly } from '../../support/lists.js'
import { associationIn } from '../../../plugins/vpn/clients/charon.js'
import { ipsecChildren, swanctlText } from '../../../plugins/vpn/settings/ipsec-conf.js'
import { vpnSettingsOf, type IpsecSettings } from '../../../plugins/vpn/settings/settings.js'

const settings = (config: object = {}, secrets: object = {}): IpsecSettings =>
  vpnSettingsOf({
    id: 'lab',
    config: { provider: 'ipsec', server: 'vpn.example.org', ...config } as never,
    secrets: { presharedKey: 'shared', ...secrets } as never,
  }) as IpsecSettings

t.test('a tunnel of IPsec has the usual values, and each can be set', async t => {
  t.match(settings(), {
    ...{ gateway: 'vpn.example.org', networks: exactly('0.0.0.0/0'), secrets: exactly('shared'), autoConnect: true },
    conf: { version: '1', pfs: true, group: 'modp2048', aggressive: true },
  })
  const { conf } = settings(
    {
      ...{ ikeVersion: '2', pfs: 'off', dhGroup: '19', localId: 'me@example.org', remoteId: '192.0.2.9' },
      username: 'ada',
    },
    { password: 'pw' },
  )
  t.match(conf, { version: '2', pfs: false, group: 'ecp256', sign: { username: 'ada', password: 'pw' } })
  const text = swanctlText(conf)
  for (const line of [
    'version = 2',
    'id = "email:me@example.org"',
    'id = "192.0.2.9"',
    'auth = eap',
    'eap_id = "fqdn:ada"',
  ])
    t.ok(text.split('\n').includes(line), line)
  t.notMatch(text, /aggressive|xauth|modp/)
  t.notMatch(text.match(/esp_proposals = .*/)![0], /ecp256/, 'without new keys for each network')
  const many = settings({ routedNetworks: '10.0.0.0/8, 192.168.4.7' }).conf
  t.same(many.networks, ['10.0.0.0/8', '192.168.4.7/32'])
  t.same(ipsecChildren(many), ['net0', 'net1'], 'one for each network with version 1 of IKE')
  t.same(ipsecChildren({ ...many, version: '2' }), ['net0'])
})

t.test('what cannot be used is refused by its field', async t => {
  for (const [config, secrets, message] of [
    [{ server: undefined }, {}, /config\.server/],
    [{ server: 'a b' }, {}, /config\.server/],
    [{ server: '%any' }, {}, /config\.server/],
    [{ server: 'a.example\ninclude /etc/passwd' }, {}, /config\.server/],
    [{ server: '-x' }, {}, /config\.server/],
    [{ localId: 'a"b' }, {}, /config\.localId/],
    [{ localId: 'a}' }, {}, /config\.localId/],
    [{ remoteId: '%any' }, {}, /config\.remoteId/],
    [{}, { presharedKey: undefined }, /config\.presharedKey/],
    [{}, { presharedKey: 'a\nb' }, /config\.presharedKey: expected one line/],
    [{}, { presharedKey: 'Enc 8a7b6c5d4e3f2a1b' }, /another program encrypted/],
    [{ username: 'ada' }, {}, /config\.password/],
    [{}, { password: 'pw' }, /config\.username/],
    [{ username: '#41' }, { password: 'pw' }, /config\.username/],
    [{ ikeVersion: '3' }, {}, /config\.ikeVersion: expected 1, 2/],
    [{ dhGroup: '1' }, {}, /config\.dhGroup/],
    [{ pfs: 'yes' }, {}, /config\.pfs/],
    [{ ikeVersion: '2', aggressive: 'on' }, {}, /config\.aggressive/],
    [{ routedNetworks: 'fd00::/8' }, {}, /IPv4/],
    [{ routedNetworks: '10.0.0.0/8 include' }, {}, /config\.routedNetworks/],
    [{}, { config: '[Interface]' }, /config\.config: expected none/],
  ] as const)
    t.throws(() => settings(config, secrets), { reason: 'unprocessable', message }, JSON.stringify([config, secrets]))
})

t.test('no value of a person begins a line of its own, or ends the value it is in', async t => {
  const odd = [
    '"',
    '\\',
    '\\"',
    '}',
    '{',
    '#',
    '= 1',
    '" }',
    '\\\\" updown = /bin/sh #',
    "'",
    '$(x)',
    '0x41',
    '0sQQ==',
    '%any',
  ]
  const shape = (text: string) => text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').replaceAll(/0s[\w+/=]*/g, '0s')
  for (const version of ['1', '2']) {
    const plain = shape(swanctlText(settings({ ikeVersion: version, username: 'ada' }, { password: 'pw' }).conf))
    for (const one of odd) {
      const { conf } = settings({ ikeVersion: version, username: `u${one}` }, { presharedKey: one, password: one })
      const text = swanctlText(conf)
      t.equal(shape(text), plain, one)
      t.notMatch(text, /^\s*updown/m)
    }
  }
})

t.test('a tunnel is up while its keys are renewed, and not when they are gone', async t => {
  const raw = (ike: string, child: string) =>
    `list-sa event {sandbox {uniqueid=1 version=2 state=${ike} remote-host=192.0.2.2 established=7 `
    + `local-vips=[10.96.0.10] child-sas {net0-1 {name=net0 state=${child} remote-ts=[10.95.0.0/16]}}}}\n`
  const reply = 'list-sas reply {}\n'
  for (const [ike, child] of [
    ['ESTABLISHED', 'INSTALLED'],
    ['ESTABLISHED', 'REKEYING'],
    ['REKEYING', 'INSTALLED'],
  ] as const)
    t.match(
      associationIn(raw(ike, child) + reply),
      { gateway: '192.0.2.2', addresses: exactly('10.96.0.10'), networks: exactly('10.95.0.0/16'), age: 7 },
      `${ike} ${child}`,
    )
  const old = 'list-sa event {sandbox {uniqueid=1 version=2 state=REKEYED established=9000 child-sas {}}}\n'
  t.match(associationIn(old + raw('ESTABLISHED', 'INSTALLED') + reply), { age: 7 }, 'the new one carries the children')
  for (const text of [reply, old + reply, raw('CONNECTING', 'INSTALLED'), raw('ESTABLISHED', 'DELETING')])
    t.equal(associationIn(text), undefined, text)
})
