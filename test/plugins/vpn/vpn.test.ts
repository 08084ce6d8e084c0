import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { common, isCidr, isEverything, maskedNetwork, overlapping } from '../../../sdk/node/tunnels/networks.js'
import { interfaceOf } from '../../../plugins/vpn/settings/settings.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { People } from '../../support/people.js'
import { vaultFake } from '../capabilities/support.js'
import { add } from './support.js'
import { FORTICLIENT, KEYS, OPENVPN, wireguardText } from './configurations.js'

const CALLS: [method: string, path: string, body?: object][] = [
  ['GET', '/vpn'],
  ['GET', '/vpn/office'],
  ['POST', '/vpn/office/connect', {}],
  ['POST', '/vpn/office/disconnect', {}],
  ['POST', '/vpn/import-forticlient', { xml: '<a/>' }],
]

t.test('tunnels that are not dialled', async t => {
  const vault = vaultFake()
  const daemon = await daemonWith(t, ['capabilities', 'vpn'], { fakes: vault.fakes })
  const { client } = daemon
  const send = (method: string, path: string, body?: object, headers?: { [name: string]: string }) =>
    daemon.fetch(path, { method, ...(body && { body: JSON.stringify(body) }), ...(headers && { headers }) })

  await t.test('without a credential nothing answers, and no control token may make a call', async t => {
    const tokens = await Promise.all((['editor', 'read', 'drive', 'land'] as const).map(scope => daemon.token(scope)))
    for (const [method, path, body] of CALLS) {
      const init = { method, ...(body && { body: JSON.stringify(body) }) }
      const type = { 'content-type': 'application/json' }
      t.equal((await fetch(daemon.url + path, { ...init, headers: type })).status, 401, `${method} ${path}`)
      for (const { token } of tokens) {
        const headers = { ...type, 'x-sandbox-control': token }
        t.equal((await fetch(daemon.url + path, { ...init, headers })).status, 403, `${method} ${path}`)
      }
    }
  })

  await t.test('a viewer lists tunnels, and neither reads nor dials one', async t => {
    const people = new People()
    people.add('vic@example.org', 'viewer')
    people.admit(daemon)
    const headers = { authorization: 'Bearer vic@example.org' }
    t.equal((await send('GET', '/vpn', undefined, headers)).status, 200)
    for (const [method, path, body] of CALLS.slice(1))
      t.equal((await send(method, path, body, headers)).status, 403, `${method} ${path}`)
  })

  await t.test('bad input is refused by field, and a tunnel that is not there by name', async t => {
    t.equal((await send('GET', '/vpn/a.b')).status, 400)
    for (const otp of ['', 'x'.repeat(65), 'two words']) {
      const answer = await send('POST', '/vpn/office/connect', { otp })
      t.equal(answer.status, 400, otp)
      t.match(await answer.json(), { message: /^otp: / })
    }
    t.match(await client.call('GET /vpn'), { links: exactly() })
    await t.rejects(client.call('GET /vpn/{id}', { id: 'office' }), {
      reason: 'not-found',
      message: /no tunnel office/,
    })
    await t.rejects(client.call('POST /vpn/{id}/connect', { id: 'office' }), {
      reason: 'not-found',
      message: /no tunnel/,
    })
    await t.rejects(client.call('POST /vpn/{id}/disconnect', { id: 'office' }), {
      reason: 'not-found',
      message: /no tunnel/,
    })
  })

  await t.test('a configuration that runs programs, or cannot be used, is refused with its line', async t => {
    const wireguard = (more: { [field: string]: string }) => ({
      provider: 'wireguard',
      config: wireguardText(),
      autoConnect: 'off',
      ...more,
    })
    const openvpn = (config: string, more: { [field: string]: string } = {}) => ({
      provider: 'openvpn',
      config,
      autoConnect: 'off',
      ...more,
    })
    const bad: [config: { [field: string]: string }, message: RegExp][] = [
      [{ provider: 'pptp', config: 'x' }, /provider: expected wireguard, openvpn, fortinet, ipsec, found "pptp"/],
      [wireguard({ config: `${wireguardText()}PostUp = touch /tmp/x\n` }), /line 9: PostUp runs a program/],
      [wireguard({ config: wireguardText().replace('Address', 'predown = x\nAddress') }), /line 3: predown runs/],
      [
        wireguard({ config: wireguardText().replace('[Peer] #', 'Colour = red\n[Peer] #') }),
        /line 4: Colour is no key/,
      ],
      [wireguard({ config: wireguardText().replace('10.99.0.2/24', '10.99.0.2/240') }), /line 3: Address: expected/],
      [wireguard({ config: wireguardText().replace(/\[Peer\][^]*/, '') }), /at least one \[Peer\]/],
      [wireguard({ config: wireguardText().replace(/PrivateKey.*\n/, '') }), /expected PrivateKey/],
      [
        wireguard({ config: `${wireguardText()}[Interface]\nPrivateKey = ${KEYS.own}\n` }),
        /one \[Interface\], found 2/,
      ],
      [wireguard({ username: 'ada' }), /username: expected none/],
      [wireguard({ autoConnect: 'maybe' }), /autoConnect: expected on or off, found "maybe"/],
      [wireguard({ routedNetworks: '10.0.0.0/8, here' }), /routedNetworks: .* found "here"/],
      [wireguard({ routedNetworks: '172.16.0.0/12' }), /routedNetworks: expected networks within the AllowedIPs/],
      [openvpn(`${OPENVPN}up /bin/sh\n`), /line 8: "up" is none of the directives/],
      [openvpn(`${OPENVPN}<connection>\nremote x\nroute-up y\n</connection>\n`), /line 10: "route-up" is none/],
      [openvpn(`${OPENVPN}setenv A B\n`), /"setenv" is none/],
      [openvpn(`${OPENVPN}cert me.crt\n`), /line 8: cert names a file/],
      [
        openvpn(`${OPENVPN}auth-user-pass login.txt\n`, { username: 'ada', password: 'x' }),
        /auth-user-pass names a file/,
      ],
      [openvpn(`${OPENVPN}auth-user-pass\n`), /username: expected a value/],
      [openvpn(`${OPENVPN}<plugin>\nx\n</plugin>\n`), /line 8: the sandbox does not pass a block <plugin>/],
      [openvpn(`${OPENVPN}remote "x\n`), /line 8: expected each quote to be closed/],
      [openvpn(`${OPENVPN}<key>\nx\n`), /line 8: <key> is not closed/],
      [openvpn('client\n'), /expected a line with remote/],
      [openvpn(OPENVPN, { username: 'ada', password: 'EncX 0123456789abcdef0123' }), /another program encrypted/],
    ]
    for (const [config, message] of bad)
      await t.rejects(add(daemon, 'office', config), { reason: 'unprocessable', message }, String(message))
    await t.rejects(add(daemon, 'office', wireguard({ colour: 'red' })), { reason: 'invalid', message: /colour/ })
    t.same([...vault.values], [], 'nothing was stored')
  })

  await t.test('a tunnel is listed as it is set up, without its secrets, and goes with its connection', async t => {
    const config = { provider: 'wireguard', config: wireguardText(), autoConnect: 'off' }
    t.match((await add(daemon, 'office', config)).at(-1), { kind: 'result', status: { state: 'inactive' } })
    const { links } = await client.call('GET /vpn')
    t.match(links, exactly({ id: 'office', provider: 'wireguard', gateway: '192.0.2.2:51820', autoConnect: false }))
    const detail = await client.call('GET /vpn/{id}', { id: 'office' })
    t.match(detail, { fullTunnel: false, log: '', routes: exactly() })
    const { capabilities } = await client.call('GET /capabilities')
    const shown = JSON.stringify([links, detail, capabilities, daemon.logged])
    for (const key of Object.values(KEYS)) t.notOk(shown.includes(key))
    t.notOk(readFileSync(join(daemon.workspace, '.sandbox/config/capabilities.json'), 'utf8').includes(KEYS.own))
    await client.call('POST /capabilities/{id}/rename', { id: 'office', to: 'home' })
    t.match((await client.call('GET /vpn')).links, exactly({ id: 'home' }))
    t.same(await client.call('POST /vpn/{id}/disconnect', { id: 'home' }), { ok: true }, 'one that is down')
    vault.open = false
    await t.rejects(client.call('POST /vpn/{id}/connect', { id: 'home' }), {
      reason: 'unavailable',
      message: /store of secrets/,
    })
    vault.open = true
    await client.call('DELETE /capabilities/{id}', { id: 'home' })
    t.match(await client.call('GET /vpn'), { links: exactly() })
    t.same([...vault.values], [])
  })

  await t.test('the connections of an exported file are read, without what was encrypted', async t => {
    await add(daemon, 'Office-VPN', { provider: 'wireguard', config: wireguardText(), autoConnect: 'off' })
    const { connections } = await client.call('POST /vpn/import-forticlient', { xml: FORTICLIENT })
    t.same(connections, [
      {
        ...{ id: 'Office-VPN-2', label: 'Office & VPN', provider: 'fortinet', server: 'vpn.example.org', port: 10443 },
        ...{ username: 'ada', description: 'the office', needs: ['password'] },
      },
      {
        ...{ id: 'Lab', label: 'Lab', provider: 'ipsec', server: '198.51.100.7', port: 500, localId: 'lab' },
        ...{ aggressive: true, pfs: true, dhGroup: '14', needs: ['presharedKey', 'username', 'password'] },
      },
    ])
    t.notOk(JSON.stringify([connections, daemon.logged]).includes('8a7b6c5d'))
    const empty = '<forticlient_configuration><vpn/></forticlient_configuration>'
    t.same(await client.call('POST /vpn/import-forticlient', { xml: empty }), { connections: [] })
  })

  await t.test('a file that is too large, not well-formed or something else is refused', async t => {
    const bomb = `<!DOCTYPE a [<!ENTITY a "x"><!ENTITY b "${'&a;'.repeat(1000)}">]><a>&b;</a>`
    const cases: [xml: string, status: number, message: RegExp][] = [
      [`<a>${'x'.repeat(2 * 1024 * 1024)}</a>`, 413, /at most 1048576 bytes, found 2097159/],
      [bomb, 400, /document type/],
      ['<a>&b;</a>', 400, /entity &b;/],
      ['<a><b></a>', 400, /found <\/a>/],
      ['<a>', 400, /<a> without its end/],
      ['<a/><b/>', 400, /2 elements at the top/],
      ['text', 400, /0 elements/],
      ['<a b=c/>', 400, /no element at character 1/],
      ['<a>'.repeat(100) + '</a>'.repeat(100), 400, /more than 64 deep/],
      ['<other/>', 422, /expected <forticlient_configuration>, found <other>/],
    ]
    for (const [xml, status, message] of cases) {
      const answer = await send('POST', '/vpn/import-forticlient', { xml })
      t.equal(answer.status, status, String(message))
      t.match(await answer.json(), { message })
    }
  })
})

t.test('networks are compared as sets of addresses', t => {
  t.ok(['10.0.0.0/8', '10.1.2.3', '::/0', 'fd00::/8', '::ffff:10.0.0.1/128'].every(isCidr))
  t.notOk(['10.0.0.0/33', '10.0.0/8', 'fd00::/129', 'x', ''].some(isCidr))
  t.same(overlapping(['192.168.0.0/16', '10.0.0.0/8'], ['fd00::/8', '10.2.0.0/16']), {
    one: '10.0.0.0/8',
    other: '10.2.0.0/16',
  })
  t.equal(overlapping(['10.0.0.0/9'], ['10.128.0.0/9']), undefined)
  t.same(common(['0.0.0.0/0', '::/0'], ['10.0.0.0/8', 'fd00::/8']), ['10.0.0.0/8', 'fd00::/8'])
  t.same(common(['10.1.0.0/16'], ['10.0.0.0/8', '172.16.0.0/12']), ['10.1.0.0/16'])
  t.same(maskedNetwork('10.1.2.3/12'), { address: '10.0.0.0', mask: '255.240.0.0' })
  t.equal(isEverything(['0.0.0.0/1']), false)
  t.equal(isEverything(['0.0.0.0/1', '128.0.0.0/1']), true)
  t.equal(interfaceOf('office'), 'office')
  t.match(interfaceOf('a-very-long-name-of-an-office'), /^vpn-[0-9a-f]{11}$/)
  t.end()
})
