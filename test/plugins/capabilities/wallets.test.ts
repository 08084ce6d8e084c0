import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { PaymentQuote } from '../../../plugins/capabilities/contract.js'
import { addressOfKey } from '../../../plugins/capabilities/wallet/signing.js'
import { WalletChain } from '../../../plugins/capabilities/wallet/chain.js'
import { Wallets } from '../../../plugins/capabilities/wallet/wallets.js'
import { Refusal, type Context } from '../../../sdk/index.js'
import { exactly } from '../../support/lists.js'
import { CHAIN_ID, localChain } from '../../support/servers/local-chain.js'
import { SELLER } from '../../support/servers/paid-server.js'

const KEY = `0x${'5'.repeat(64)}`
const DAY_MS = 86_400_000
const CONTEXT = {} as Context

/** The payments of one wallet on a real chain, with a clock and a store of the test. */
const world = async (t: Test) => {
  const clock = { now: Date.now() }
  const chain = await localChain(t, () => clock.now)
  const address = addressOfKey(KEY)!
  await chain.mint(address, 100_000_000n)
  const config: { [field: string]: string } = {
    ...{ network: `eip155:${CHAIN_ID}`, asset: chain.dollars, address },
    ...{ dailyCapUsd: '1', perPaymentMaxUsd: '0.6', autoApproveUnderUsd: '0.5' },
  }
  const kept = new Map<string, string>()
  const wallets = new Wallets({
    host: {
      call: (async () => ({})) as never,
      serves: async () => false,
      log: { warn: () => {}, error: () => {}, info: () => {}, debug: () => {} } as never,
      store: {
        get: async <T>(key: string) => {
          const text = kept.get(key)
          return text === undefined ? undefined : (JSON.parse(text) as T)
        },
        set: async (key, value) => void kept.set(key, JSON.stringify(value)),
        delete: async key => void kept.delete(key),
        all: async <T>(prefix = '') =>
          [...kept]
            .filter(([key]) => key.startsWith(prefix))
            .map(([key, text]): [string, T] => [key, JSON.parse(text) as T]),
        texts: async () => [],
      },
    },
    entries: () => ({
      all: async () => [{ id: 'main', kind: 'wallet', label: 'main', config, secrets: ['key'], plain: [] }],
      open: async () => ({ entry: { id: 'main', config, secrets: { key: KEY } } }),
    }),
    chain: () => new WalletChain(chain.url, async () => [], new AbortController().signal),
    asset: ({ asset }) => String(asset),
    now: () => clock.now,
  })
  const option = (amount: string, more: object = {}) => ({
    ...{ scheme: 'exact', network: `eip155:${CHAIN_ID}`, amount, asset: chain.dollars, payTo: SELLER },
    ...{ maxTimeoutSeconds: 3600, extra: { name: 'Test Dollars', version: '2' }, ...more },
  })
  const quote = (path: string, ...accepts: object[]): Promise<PaymentQuote> =>
    wallets.calls['wallets.quote'](
      {
        request: { url: `https://shop.example.org${path}`, method: 'GET', digest: path },
        required: Buffer.from(JSON.stringify({ x402Version: 2, accepts })).toString('base64'),
        body: '',
      },
      CONTEXT,
    ) as Promise<PaymentQuote>
  const sign = async (key: string, { terms }: PaymentQuote, card?: string) =>
    wallets.calls['wallets.sign'](
      { key, terms, conversationId: 'c', run: 'r', ...(card !== undefined && { card }) },
      CONTEXT,
    )
  const settle = (key: string, said: object | undefined, status: number) =>
    wallets.calls['wallets.settle'](
      {
        ...{ key, status, answer: 'text' },
        ...(said && { settled: Buffer.from(JSON.stringify(said)).toString('base64') }),
      },
      CONTEXT,
    )
  return { chain, config, wallets, clock, kept, option, quote, sign, settle }
}

const refused = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'nothing was refused',
    (error: unknown) => (error instanceof Refusal ? `${error.status} ${error.message}` : String(error)),
  )

t.test('only the dollars of the wallet are paid, in amounts that the chain knows', async t => {
  const { chain, option, quote } = await world(t)
  const other = `0x${'12'.repeat(20)}`
  const none = /^422 the server takes .*, and no wallet of this turn pays so \(main\)/
  t.match(await refused(quote('/a', option('1', { asset: other }))), none, 'a token that has the name of dollars')
  t.match(await refused(quote('/a', option('1', { network: 'eip155:8453' }))), none)
  t.match(await refused(quote('/a', option('0'))), /^422 the server asks for a payment of nothing/)
  t.match(await refused(quote('/a', option('1', { payTo: addressOfKey(KEY) }))), /^422 .* to the wallet main itself/)
  const mistyped = '0xAb5801a7D398351b8bE11C439e05C5B3259aeC9b'.replace('Ab', 'aB')
  t.match(await refused(quote('/a', option('1', { payTo: mistyped }))), /^422 .* its checksum is wrong/)
  t.match(await refused(quote('/a', option('600001'))), /^403 .* asks for \$0\.600001, .* at most \$0\.6 at once/)
  t.match(await quote('/a', option('1', { asset: other }), option('600000')), {
    terms: { amountUsd: '0.6', seconds: 600, assetName: 'Test Dollars', network: `eip155:${CHAIN_ID}` },
    small: false,
  })
  t.match(await quote('/a', option('499999', { asset: chain.dollars.toUpperCase().replace('0X', '0x') })), {
    small: true,
  })
})

t.test('a key pays once, a limit holds at the moment of signing, and terms cannot be changed on the way', async t => {
  const { kept, option, quote, sign } = await world(t)
  const first = await quote('/a', option('400000'))
  const { header } = await sign('one', first)
  t.same(await sign('one', await quote('/b', option('100000'))), { header }, 'the same call has one payment')
  const big = await quote('/a', option('600000'))
  t.match(await refused(sign('two', big)), /^403 a payment of \$0\.6 needs a person's yes/)
  await sign('two', big, 'card')
  t.match(await refused(sign('three', first)), /^403 .* has spent \$1 of \$1 today, and \$0\.4 more is too much/)
  const changed = { ...first, terms: { ...first.terms, units: '99000000', amountUsd: '0.4' } }
  t.match(await refused(sign('four', changed)), /^403 the wallet main pays at most \$0\.6 at once/)
  const more = { ...first, terms: { ...first.terms, units: '500000' } }
  t.match(await refused(sign('five', more, 'card')), /^409 \$0\.4 was offered, and \$0\.5 would be paid/)
  t.equal(kept.size, 2)
  const sent = JSON.parse(Buffer.from(header.value, 'base64').toString('utf8')) as object
  t.match(sent, { payload: { authorization: { to: SELLER, value: '400000' } } })
})

t.test('what expires uncollected is given back, and what was collected is not; a day ends at midnight UTC', async t => {
  const { chain, wallets, clock, option, quote, sign, settle } = await world(t)
  // A morning, so that the minutes of the test are of one day.
  clock.now = Math.floor(clock.now / DAY_MS) * DAY_MS + 3_600_000
  await sign('lost', await quote('/a', option('400000')))
  t.match(await settle('lost', { success: false, errorReason: 'no' }, 402), { outcome: 'open', reason: 'no' })
  t.match(await settle('lost', undefined, 0), { outcome: 'open' })
  t.match(await quote('/a', option('1')), { spentTodayUsd: '0.4' })
  clock.now += 600_000
  t.match(await quote('/a', option('1')), { spentTodayUsd: '0.4' }, 'it may be on its way into the chain')
  clock.now += 61_000
  t.match(await quote('/a', option('1')), { spentTodayUsd: '0' })
  const { payment } = await wallets.calls['wallets.earlier']({ key: 'lost', conversationId: 'c' }, CONTEXT)
  t.match(payment, { outcome: 'failed', amountUsd: '0.4' })

  await sign('taken', await quote('/a', option('400000')))
  t.match(await settle('taken', { success: true, transaction: '0x1' }, 200), { outcome: 'paid', transaction: '0x1' })
  clock.now += 700_000
  t.match(await quote('/a', option('1')), { spentTodayUsd: '0.4' })
  clock.now += DAY_MS
  t.match(await quote('/a', option('1')), { spentTodayUsd: '0' })
  t.equal(chain.sent.length, 0)
})

t.test('an equal request of the same conversation finds the open payment, another does not', async t => {
  const { wallets, clock, option, quote, sign, settle } = await world(t)
  const { terms } = await quote('/a', option('1000'))
  const { header } = await sign('one', { terms } as PaymentQuote)
  const request = { url: terms.url, method: terms.method, digest: terms.digest }
  const earlier = async (conversationId: string, more: object = {}) =>
    (
      await wallets.calls['wallets.earlier'](
        { key: 'other', conversationId, request: { ...request, ...more } },
        CONTEXT,
      )
    ).payment
  t.match(await earlier('c'), { key: 'one', header, outcome: 'open' })
  t.equal(await earlier('d'), undefined)
  for (const more of [{ url: `${request.url}?x` }, { method: 'POST' }, { digest: 'x' }])
    t.equal(await earlier('c', more), undefined, JSON.stringify(more))
  clock.now += 601_000
  t.match(await earlier('c'), { outcome: 'open' }, 'a block may have it that is replaced')
  t.match(await settle('one', undefined, 0), { outcome: 'open' })
  clock.now += 60_000
  t.match(await settle('one', undefined, 0), { outcome: 'failed' })
  t.equal(await earlier('c'), undefined)
  t.match(await wallets.calls['wallets.usable']({ capabilities: [] }, CONTEXT), { wallets: exactly() })
  t.match(await wallets.calls['wallets.usable']({}, CONTEXT), { wallets: exactly('main') })
})

t.test('a payment is not given back before the chain says that it is over', async t => {
  const { chain, clock, option, quote, sign, settle } = await world(t)
  await sign('one', await quote('/a', option('400000')))
  clock.now += 700_000
  for (const method of ['eth_call', 'eth_getBlockByNumber']) {
    chain.failing.add(method)
    t.match(await settle('one', undefined, 0), { outcome: 'open' }, `${method} is refused for now`)
    t.match(await refused(quote('/a', option('1'))), /^424/)
    chain.failing.clear()
  }
  t.match(await quote('/a', option('1')), { spentTodayUsd: '0' })
  t.match(await settle('one', undefined, 0), { outcome: 'failed' })
})

t.test('what was paid stays paid, whatever is found out at the same time', async t => {
  const { clock, option, quote, sign, settle, wallets } = await world(t)
  const first = await quote('/a', option('400000'))
  await sign('one', first)
  clock.now += 700_000
  const [paid] = await Promise.all([
    settle('one', { success: true, transaction: '0x1' }, 200),
    quote('/b', option('1')),
    settle('one', undefined, 0),
  ])
  t.match(paid, { outcome: 'paid', transaction: '0x1' })
  const { payment } = await wallets.calls['wallets.earlier']({ key: 'one', conversationId: 'c' }, CONTEXT)
  t.match(payment, { outcome: 'paid', transaction: '0x1', answer: 'text' })
})

t.test('a wallet that was changed after the offer pays nothing for it', async t => {
  const { config, kept, option, quote, sign } = await world(t)
  const offered = await quote('/b', option('400000'))
  config.network = 'eip155:8453'
  t.match(await refused(sign('two', offered, 'card')), /^409 the wallet main pays on another network by now/)
  config.network = `eip155:${CHAIN_ID}`
  config.asset = `0x${'12'.repeat(20)}`
  t.match(await refused(sign('two', offered, 'card')), /^409/)
  t.equal(kept.size, 0)
})

t.test('an endpoint that lies about the decimals of known dollars is not believed', async t => {
  const name = Buffer.from('USD Coin').toString('hex')
  const words: { [selector: string]: string } = {
    '0x06fdde03': `${'20'.padStart(64, '0')}${'8'.padStart(64, '0')}${name.padEnd(64, '0')}`,
    '0x313ce567': '18'.padStart(64, '0'),
  }
  const server = createServer((request, response) => {
    void text(request).then(body => {
      const { params } = JSON.parse(body) as { params: [{ data: string }] }
      const found = words[params[0].data.slice(0, 10)]
      response.end(JSON.stringify(found === undefined ? { error: { message: 'reverted' } } : { result: `0x${found}` }))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const chain = new WalletChain(`http://127.0.0.1:${port}`, async () => [], new AbortController().signal)
  const dollars = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
  t.match(await refused(chain.currency(dollars, 8453)), /^424 .* has 6 decimals, and it says 24/)
  t.match(await chain.currency(dollars, CHAIN_ID), { decimals: 24, name: 'USD Coin' }, 'of others it is the one to ask')
})
