import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Capability } from '../../../plugins/capabilities/contract.js'
import { paymentOptions } from '../../../plugins/capabilities/wallet/challenge.js'
import { dollarsOf, microsOf, microsOfUnits } from '../../../plugins/capabilities/wallet/amounts.js'
import { assertListed } from '../../../plugins/capabilities/wallet/limits.js'
import { configWithReferences, secretFieldsOf } from '../../../plugins/extensions/connections/connections.js'
import { createClient } from '../../../sdk/client.js'
import { Refusal } from '../../../sdk/index.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { CHAIN_ID, localChain } from '../../support/servers/local-chain.js'
import { add, capabilitiesDaemon, inner } from './support.js'

const refused = async (work: () => unknown): Promise<string> => {
  try {
    await work()
    return 'nothing was refused'
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return `${error.status} ${error.message}`
  }
}

const world = async (t: Test) => {
  const chain = await localChain(t)
  const { daemon, vault } = await capabilitiesDaemon(t)
  const config = { network: `eip155:${CHAIN_ID}`, rpcUrl: chain.url, asset: chain.dollars }
  const connect = (more: object = {}) =>
    add(daemon, { id: 'main', kind: 'wallet', config: { ...config, ...more } } as Capability)
  const wallet = async () =>
    (await daemon.client.call('GET /capabilities')).capabilities.find(({ id }) => id === 'main')
  return { chain, daemon, vault, connect, wallet }
}

t.test('a wallet that cannot work is refused by name, and nothing is kept of it', async t => {
  const { daemon, vault, chain, connect } = await world(t)
  const cases: [object, RegExp][] = [
    [{ network: 'nowhere' }, /^400 config\.network: expected eip155: and the number of a chain, or one of base/],
    [{ rpcUrl: 'http://rpc.example.org/' }, /^400 config\.rpcUrl: expected https/],
    [{ rpcUrl: undefined }, /^422 config\.rpcUrl: expected the endpoint of the network/],
    [{ asset: undefined }, /^422 config\.asset: expected the contract of the dollars/],
    [{ network: 'eip155:5' }, /^424 the endpoint is of the chain 31337: expected 5/],
    [{ asset: `0x${'12'.repeat(20)}` }, /^424 .*is no currency there/],
    [{ asset: '0xaB5801a7D398351b8bE11C439e05C5B3259aeC9b' }, /^400 config\.asset: .* checksum is wrong/],
    [{ key: 'open sesame' }, /^400 config\.key: expected a private key of 64 hexadecimal digits/],
    [{ key: `0x${'0'.repeat(64)}` }, /^400 config\.key: expected a private key/],
    [{ address: chain.dollars }, /^400 config\.address: expected 0x/],
    [{ perPaymentMaxUsd: '-1' }, /^400/],
    [{ dailyCapUsd: '1e9' }, /^400/],
    [{ deny: 'http://x/' }, /^400 config\.deny: expected hosts such as \*\.example\.org/],
    [{ key: '__vaulted__' }, /^422 config\.key: expected a value/],
  ]
  for (const [more, sentence] of cases) t.match(await refused(() => connect(more)), sentence)
  t.same((await daemon.client.call('GET /capabilities')).capabilities, [])
  t.same([...vault.values], [])
})

t.test('only the owner makes, changes, renames and removes a wallet', async t => {
  const { daemon, chain, connect } = await world(t)
  await connect()
  const { token } = await daemon.token('land')
  const config = { network: `eip155:${CHAIN_ID}`, rpcUrl: chain.url, asset: chain.dollars }
  const { url } = daemon
  t.match(
    await refused(() => add({ client: createClient({ url, token }) }, { id: 'x', kind: 'wallet', config })),
    /^403/,
  )
  t.match(await refused(() => add({ client: createClient({ url }) }, { id: 'x', kind: 'wallet', config })), /^401/)
  const card = (await daemon.client.call('GET /capabilities/catalog')).cards.find(({ id }) => id === 'wallet')
  t.match(card, { kind: 'wallet', connected: true, instances: exactly('main') })
})

t.test('a change keeps the key; the key of a wallet with money is not lost', async t => {
  const { daemon, vault, chain, connect, wallet } = await world(t)
  const { client } = daemon
  await connect()
  const before = await wallet()
  const key = vault.values.get('main/key')
  t.match(before, { secrets: exactly('key'), status: { state: 'active' } })
  t.notOk(JSON.stringify(before).includes(key!))
  await connect({ dailyCapUsd: '2' })
  t.equal(vault.values.get('main/key'), key, 'a change that names no key keeps it')
  const { config, id } = (await wallet())!
  t.match(config, { address: before!.config.address, dailyCapUsd: '2' })

  await chain.mint(String(config.address), 50_000n)
  t.match(await client.call('GET /capabilities/{id}/status', { id }), { detail: /^it holds \$0\.05 of Test Dollars/ })
  const other = `0x${'7'.repeat(64)}`
  const holds = /^409 the wallet main holds \$0\.05, which/
  t.match(await refused(() => connect({ key: other })), holds)
  t.match(await refused(() => client.call('POST /capabilities/{id}/secret', { id, value: other })), holds)
  t.match(await refused(() => client.call('DELETE /capabilities/{id}', { id })), holds)
  t.equal(vault.values.get('main/key'), key)
  await client.call('POST /capabilities/{id}/rename', { id, to: 'other' })
  t.equal(vault.values.get('other/key'), key)
  await chain.stop()
  t.match(await client.call('GET /capabilities/{id}/status', { id: 'other' }), { state: 'error', code: 'unreachable' })
  t.match(await refused(() => client.call('DELETE /capabilities/{id}', { id: 'other' })), /^409 the wallet other holds/)
})

t.test('a wallet that the file of connections lost has its key when it is connected again', async t => {
  const { daemon, vault, chain, connect, wallet } = await world(t)
  const { client } = daemon
  const file = join(daemon.workspace, '.sandbox/config/capabilities.json')
  await connect()
  const before = readFileSync(file, 'utf8')
  const { address } = (await wallet())!.config
  await chain.mint(String(address), 50_000n)
  const key = vault.values.get('main/key')
  const cli = { id: 'main', kind: 'cli', config: { provider: 'github', token: 'ghp-value-of-it' } } as const
  const claimed = /^409 main is of kind wallet, and its entry in .* was removed or changed by hand/

  writeFileSync(file, '{}')
  t.match(await refused(() => add(daemon, cli)), claimed)
  const lost = /^409 config\.key: expected none, for main has one/
  t.match(await refused(() => connect({ key: `0x${'7'.repeat(64)}` })), lost)
  t.match(await refused(() => connect({ rpcUrl: 'http://127.0.0.1:9/' })), /^424/)
  t.equal(vault.values.get('main/key'), key, 'what cannot connect loses nothing')
  await connect()
  t.equal(vault.values.get('main/key'), key)
  t.match((await wallet())!.config, { address })

  writeFileSync(file, before.replace('"wallet"', '"cli"'))
  t.match(await refused(() => add(daemon, { ...cli, config: { provider: 'github', key: '__vaulted__' } })), claimed)
  t.match(await refused(() => client.call('DELETE /capabilities/{id}', { id: 'main' })), claimed)
  t.match(await refused(() => client.call('POST /capabilities/{id}/rename', { id: 'main', to: 'other' })), claimed)
  t.match(await refused(() => client.call('POST /capabilities/{id}/secret', { id: 'main', value: 'x' })), claimed)

  const empty = `0x${'12'.repeat(20)}`
  writeFileSync(file, before.replaceAll(String(address), empty))
  t.match(await refused(() => client.call('DELETE /capabilities/{id}', { id: 'main' })), /^409 the wallet main holds/)
  writeFileSync(file, before.replace('__vaulted__', `0x${'7'.repeat(64)}`))
  t.match(await refused(() => connect()), /^409 main: its secret key stands in .*, and another one is stored/)
  t.equal(vault.values.get('main/key'), key)
})

t.test('a wallet with money stays on its network', async t => {
  const { chain, connect, wallet } = await world(t)
  await connect()
  await chain.mint(String((await wallet())!.config.address), 50_000n)
  const holds = /^409 the wallet main holds \$0\.05, which another network would lose/
  t.match(await refused(() => connect({ network: 'base' })), holds)
  t.match(await refused(() => connect({ asset: `0x${'12'.repeat(20)}` })), holds)
  await connect({ dailyCapUsd: '2' })
  t.match((await wallet())!.config, { network: `eip155:${CHAIN_ID}`, dailyCapUsd: '2' })
})

t.test('no text of a turn and no extension gets the key of a wallet; the owner reads it', async t => {
  const chain = await localChain(t)
  const daemon = await daemonWith(t, ['capabilities', 'secrets'])
  const { client } = daemon
  const config = { network: `eip155:${CHAIN_ID}`, rpcUrl: chain.url, asset: chain.dollars } as const
  await add(daemon, { id: 'main', kind: 'wallet', config })
  const { value } = await client.call('POST /secrets/reveal', { key: 'main', field: 'key' })
  t.match(value, /^0x[0-9a-f]{64}$/)
  for (const lane of ['code', 'shell', 'browser'] as const) {
    const asked = { text: 'echo {{secret:main/key}}', lane, detail: 'x' }
    t.match(await inner(daemon, 'secrets.resolve', asked), { unknown: exactly('main/key'), text: undefined })
    t.match(await inner(daemon, 'secrets.resolveCommand', asked), { unknown: exactly('main/key'), text: undefined })
  }
  const [record] = (await inner(daemon, 'capabilities.records', {})).capabilities
  t.same(secretFieldsOf(record!), [])
  t.notOk(JSON.stringify(configWithReferences(record!)).includes('{{secret:'))
})

t.test('an empty wallet is removed with its key', async t => {
  const { daemon, vault, connect } = await world(t)
  await connect()
  await daemon.client.call('DELETE /capabilities/{id}', { id: 'main' })
  t.same([...vault.values], [])
})

const OPTION = {
  ...{ scheme: 'exact', network: 'eip155:8453', amount: '100000', maxTimeoutSeconds: 60 },
  ...{ asset: `0x${'a'.repeat(40)}`, payTo: `0x${'b'.repeat(40)}`, extra: { name: 'USD Coin', version: '2' } },
}
const header = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')

t.test('what a server asks for is read strictly: an option that is not plain is not one', async t => {
  const read = (option: object) => paymentOptions(header({ x402Version: 2, accepts: [option] }), '')
  t.match(read(OPTION), exactly({ version: 2, units: 100_000n, network: 'eip155:8453', seconds: 60 }))
  const others: object[] = [
    { scheme: 'upto' },
    { amount: '-1' },
    { amount: 100_000 },
    { amount: '1e6' },
    { amount: '9'.repeat(41) },
    { payTo: 'me' },
    { asset: undefined },
    { network: 7 },
    { network: 'n'.repeat(61) },
    { extra: { text: 'x'.repeat(5000) } },
    { extra: { assetTransferMethod: 'permit2' } },
  ]
  for (const other of others) t.same(read({ ...OPTION, ...other }), [], JSON.stringify(other))
  const { amount: maxAmountRequired, ...first } = OPTION
  // It may describe what the server takes and answers, however long.
  const outputSchema = { text: 'x'.repeat(5000) }
  const old = { ...first, maxAmountRequired, network: 'base', outputSchema }
  const body = JSON.stringify({ x402Version: 1, accepts: [old] })
  t.match(paymentOptions(undefined, body), exactly({ version: 1, units: 100_000n, network: 'base' }))
  const deep = JSON.stringify(OPTION).replace('"USD Coin"', `${'['.repeat(20_000)}${']'.repeat(20_000)}`)
  t.same(paymentOptions(Buffer.from(`{"x402Version":2,"accepts":[${deep}]}`).toString('base64'), ''), [])
  const unreadable = [
    '',
    'null',
    '[]',
    '{}',
    '{"x402Version":3,"accepts":[]}',
    '{"x402Version":2,"accepts":{}}',
    '<p>pay',
  ]
  for (const text of unreadable) {
    t.match(await refused(() => paymentOptions(undefined, text)), /^422 the server asks for a payment in no form/)
    t.match(await refused(() => paymentOptions(Buffer.from(text).toString('base64'), '')), /^422/)
  }
})

t.test('amounts are exact, and a limit is never passed by a fraction', t => {
  for (const text of ['0', '0.000001', '0.25', '1', '999999999.999999']) t.equal(dollarsOf(microsOf(text)), text)
  t.equal(microsOfUnits(1n, 18), 1n, 'the smallest unit counts as a millionth')
  t.equal(microsOfUnits(100_000n, 6), 100_000n)
  t.equal(microsOfUnits(15n, 1), 1_500_000n)
  t.end()
})

t.test('lists name hosts and addresses, and deny wins', async t => {
  const payTo = `0x${'B'.repeat(40)}`
  const allowed = (config: object, url: string) =>
    refused(() => assertListed(config as never, 'main', new URL(url), payTo))
  const fine = 'nothing was refused'
  t.equal(await allowed({}, 'https://a.example.org/'), fine)
  t.equal(await allowed({ allow: '*.example.org' }, 'https://a.example.org/'), fine)
  t.equal(await allowed({ allow: payTo.toLowerCase() }, 'https://a.example.org/'), fine)
  t.match(await allowed({ allow: '*.example.org' }, 'https://example.org.evil.net/'), /^403/)
  t.match(await allowed({ allow: 'a.example.org' }, 'https://axexample.org/'), /^403/)
  t.match(await allowed({ allow: '*', deny: 'A.Example.org' }, 'https://a.example.org/'), /^403/)
  t.match(await allowed({ allow: '*', deny: payTo }, 'https://a.example.org/'), /^403/)
  t.match(await allowed({ deny: 'a.example.org:8443' }, 'https://a.example.org:8443/'), /^403/)
  t.match(await allowed({ deny: 'a.example.org:443' }, 'https://a.example.org/'), /^403/)
  t.match(await allowed({ deny: 'a.example.org' }, 'https://a.example.org./'), /^403/)
  t.match(await allowed({ deny: '*.example.org' }, 'https://A.EXAMPLE.ORG.:8443/'), /^403/)
})
