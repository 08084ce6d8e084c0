import t from 'tap'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { People } from '../../support/people.js'
import { vaultFake } from '../capabilities/support.js'
import { KEYS, wireguardText } from '../vpn/configurations.js'
import { addExit, exitIn } from './support.js'

const CALLS: [method: string, path: string, body?: object][] = [
  ['GET', '/exit'],
  ['GET', '/exit/wire/countries'],
  ['POST', '/exit/wire/start', {}],
  ['POST', '/exit/wire/use', {}],
  ['POST', '/exit/wire/rotate', {}],
  ['POST', '/exit/wire/check', {}],
  ['POST', '/exit/wire/stop', {}],
]

t.test('exits that are not started', async t => {
  const vault = vaultFake()
  const daemon = await daemonWith(t, ['capabilities', 'exit'], { fakes: vault.fakes })
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

  await t.test('a viewer lists exits and countries, and a collaborator also checks', async t => {
    const people = new People()
    people.add('vic@example.org', 'viewer')
    people.add('cora@example.org', 'collaborator')
    people.admit(daemon)
    const status = async (who: string, [method, path, body]: (typeof CALLS)[number]) =>
      (await send(method, path, body, { authorization: `Bearer ${who}@example.org` })).status
    for (const call of CALLS.slice(2)) t.equal(await status('vic', call), 403, call[1])
    t.equal(await status('vic', CALLS[0]!), 200)
    for (const call of CALLS.filter(([, path]) => /start|use|rotate|stop/.test(path)))
      t.equal(await status('cora', call), 403, call[1])
    t.equal(await status('cora', CALLS[5]!), 404, 'there is none yet')
  })

  await t.test('what cannot be used is refused before anything starts', async t => {
    for (const [, path, body] of CALLS.slice(1))
      t.equal((await send(body ? 'POST' : 'GET', path, body)).status, 404, path)
    for (const country of ['DEU', 'D', '', '12', 5])
      t.equal((await send('POST', '/exit/wire/use', { country })).status, 400, `${country}`)
    const refused = async (config: { [field: string]: string }, message: RegExp) =>
      t.rejects(addExit(daemon, 'wrong', config), { message }, String(message))
    await refused({ provider: 'carrier_pigeon' }, /provider: expected onion_router, public_vpn_pool, wireguard/)
    await refused({ provider: 'onion_router', country: 'DEU' }, /country: expected the two letters/)
    await refused({ provider: 'onion_router', autoStart: 'maybe' }, /autoStart: expected on or off/)
    await refused({ provider: 'wireguard' }, /config/)
    await refused({ provider: 'wireguard', config: 'nothing' }, /at least one \[Interface\]/)
    const second = `${wireguardText()}\n# country: DE\n${wireguardText()}PostUp = touch /tmp/x\n`
    await refused({ provider: 'wireguard', config: second }, /line \d\d: PostUp runs a program/)
    t.match(await client.call('GET /exit'), { links: exactly() })
  })

  await t.test('an exit is set up, listed with its proxy, and keeps its keys', async t => {
    await addExit(daemon, 'wire', { provider: 'wireguard', config: `# country: nl\n${wireguardText()}`, country: 'nl' })
    t.match(await exitIn(daemon, 'wire'), {
      ...{ provider: 'wireguard', country: 'NL', autoStart: false, proxy: /^socks5:\/\/127\.0\.0\.1:19\d{3}$/ },
      state: /^(?:down|unavailable)$/,
    })
    t.match(await client.call('GET /exit/{id}/countries', { id: 'wire' }), {
      countries: exactly({ country: 'NL', countryName: 'Netherlands', servers: 1, share: 1 }),
      live: true,
    })
    t.same(await client.call('POST /exit/{id}/stop', { id: 'wire' }), { ok: true }, 'one that is down is fine')
    const refused = { reason: 'conflict', message: /start it first/ }
    await t.rejects(client.call('POST /exit/{id}/check', { id: 'wire' }), refused)
    await t.rejects(client.call('POST /exit/{id}/rotate', { id: 'wire' }), refused)
    t.notOk(JSON.stringify([await client.call('GET /capabilities'), daemon.logged]).includes(KEYS.own))
    const config = { platform: 'site', url: 'https://shop.example/', exit: 'nowhere' }
    const add = async (exit: string) => {
      const given = { id: 'shop', kind: 'browser', config: { ...config, exit } } as const
      for await (const _ of await client.call('POST /capabilities', given));
    }
    await t.rejects(add('nowhere'), { message: /config\.exit: expected the id of a connection of kind exit/ })
    await add('wire')
    await client.call('POST /capabilities/{id}/rename', { id: 'wire', to: 'cable' })
    const { capabilities } = await client.call('GET /capabilities')
    t.match(capabilities.find(({ id }) => id === 'shop')?.config, { exit: 'cable' }, 'profiles follow its name')
    // Both have the port 19471.
    await addExit(daemon, 'e21', { provider: 'onion_router' })
    await t.rejects(addExit(daemon, 'e29', { provider: 'onion_router' }), {
      reason: 'conflict',
      message: /same port as/,
    })
  })
})
