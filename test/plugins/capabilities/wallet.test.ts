import t, { type Test } from 'tap'
import type { ApplyFrame, Capability, WalletConfig } from '../../../plugins/capabilities/contract.js'
import type { Frame } from '../../../plugins/agent/contract.js'
import { daemonWith, type Support, type SupportOptions } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { CHAIN_ID, localChain, type LocalChain } from '../../support/servers/local-chain.js'
import { modelServer } from '../../support/servers/model-server.js'
import { paidServer, SELLER, type PaidServer } from '../../support/servers/paid-server.js'
import { clientOf, People } from '../../support/people.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { add, vaultFake, type FakeVault } from './support.js'

const GROUPS = ['agent', 'agents', 'capabilities', 'settings', 'safety']

interface World {
  readonly daemon: Support
  readonly vault: FakeVault
  readonly chain: LocalChain
  readonly shop: PaidServer
  connect(config?: Partial<WalletConfig>): Promise<ApplyFrame[]>
  /** The wallet's address. */
  address(): Promise<string>
}

const world = async (
  t: Test,
  { groups = [], fakes = {} }: { readonly groups?: readonly string[]; readonly fakes?: SupportOptions['fakes'] } = {},
): Promise<World> => {
  const chain = await localChain(t)
  const shop = await paidServer(t, chain)
  const vault = vaultFake()
  const daemon = await daemonWith(t, [...GROUPS, ...groups], { fakes: { ...vault.fakes, ...fakes } })
  await daemon.client.call('POST /settings/patch', { set: { networkAllow: [`localhost:${shop.port}`] } })
  const config: WalletConfig = { network: `eip155:${CHAIN_ID}`, rpcUrl: chain.url, asset: chain.dollars }
  return {
    ...{ daemon, vault, chain, shop },
    connect: more => add(daemon, { id: 'main', kind: 'wallet', config: { ...config, ...more } } as Capability),
    address: async () => {
      const { capabilities } = await daemon.client.call('GET /capabilities')
      return String(capabilities.find(({ id }) => id === 'main')?.config.address)
    },
  }
}

const said = (frames: readonly Frame[]): string =>
  frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join('')

t.test('an agent pays what a server asks for, after a yes: the money moves once, on a real chain', async t => {
  const { daemon, vault, chain, shop, connect, address } = await world(t)
  const { client } = daemon
  const frames = await connect()
  t.match(frames.at(-1), { kind: 'result', status: { state: 'active' } })
  const from = await address()
  t.match(from, /^0x[0-9a-fA-F]{40}$/)
  t.match(vault.values.get('main/key'), /^0x[0-9a-f]{64}$/)
  await chain.mint(from, 2_000_000n)

  const prompt = `pay ${shop.url}/cheap To read it.\nsay $out`
  const { run } = await client.call('POST /agent', { conversationId: 'c', prompt })
  const watched = framesOf(client, 'c', { run })
  const card = await watched.until(({ kind }) => kind === 'payment_offer')
  t.match(card, {
    offer: {
      ...{ url: `${shop.url}/cheap`, description: 'One cheap page', payTo: SELLER, network: `eip155:${CHAIN_ID}` },
      ...{ asset: chain.dollars, assetName: 'Test Dollars', amountUsd: '0.1', spentTodayUsd: '0', dailyCapUsd: '5' },
      why: 'To read it.',
    },
  })
  await client.call('POST /agent/reply', { kind: 'payment_offer', requestId: card.requestId, approve: true })
  const all = (await watched.all()).map(({ event }) => event)
  t.match(said(all), /^paid \$0\.1 on eip155:31337, transaction 0x[^]*what \/cheap sells/)
  t.match(
    all.filter(({ kind }) => kind === 'payment_receipt'),
    exactly({ requestId: card.requestId, outcome: 'paid', amountUsd: '0.1', transaction: /^0x/ }),
  )
  t.equal(await chain.balance(SELLER), 100_000n)
  t.equal(await chain.balance(from), 1_900_000n)
  t.equal(chain.sent.length, 1)
})

t.test('a tool of an extension has the turn pay, after a yes even for a sum that needs none', async t => {
  const answers: object[] = []
  const offer = { server: 'extension:acme.shop', name: 'buy', agentName: 'acme_shop__buy' }
  const told = Promise.withResolvers<void>()
  let bought = ''
  let asked = 0
  const server = await modelServer(t, 'openai', ({ text }) =>
    text
      ? ++asked === 1
        ? { calls: [{ name: offer.agentName, input: { url: bought } }] }
        : { text: ['Done.'] }
      : { status: 200, body: '{"data":[{"id":"m"}]}' },
  )
  const { daemon, chain, shop, connect, address } = await world(t, {
    fakes: {
      'endpoints.choices': () => ({
        endpoints: [
          {
            ...{ id: 'local', label: 'Local', default: 'm', ready: true },
            models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
          },
        ],
      }),
      'endpoints.target': () => server.target(),
      'extensions.tools': () => ({
        tools: [{ ...offer, title: 'Buy', description: 'Buys.', input: { type: 'object' } }].map(tool => ({
          ...tool,
          readOnly: false,
          destructive: true,
          approve: true,
        })),
        problems: [],
      }),
      'extensions.tool': async function* ({ input }) {
        const payment = { url: String(input.url), why: 'The map needs it.' }
        yield { kind: 'pay' as const, id: 'p1', nth: 1, payment }
        await told.promise
        yield { kind: 'result' as const, ok: true, text: 'bought' }
      },
      'extensions.answerPayment': answer => {
        answers.push(answer)
        told.resolve()
        return { ok: true as const }
      },
    },
  })
  await connect({ autoApproveUnderUsd: '1' })
  await chain.mint(await address(), 2_000_000n)
  bought = `${shop.url}/cheap`
  const { run } = await daemon.client.call('POST /agent', {
    ...{ conversationId: 'c', prompt: 'go', agent: 'endpoint/local', model: 'm', permissionMode: 'bypassPermissions' },
  })
  const watched = framesOf(daemon.client, 'c', { run })
  const card = await watched.until(({ kind }) => kind === 'payment_offer')
  t.match(card, { offer: { url: `${shop.url}/cheap`, amountUsd: '0.1', why: 'The map needs it.' } })
  t.equal(chain.sent.length, 0)
  await daemon.client.call('POST /agent/reply', { kind: 'payment_offer', requestId: card.requestId, approve: true })
  const all = (await watched.all()).map(({ event }) => event)
  t.match(answers, exactly({ id: 'p1', ok: true, text: /^paid \$0\.1 on eip155:31337[^]*what \/cheap sells/ }))
  t.equal(await chain.balance(SELLER), 100_000n)
  t.match(
    all.filter(({ kind }) => kind === 'payment_receipt'),
    exactly({ requestId: card.requestId, outcome: 'paid', amountUsd: '0.1' }),
  )
  t.match(JSON.stringify(all), /"bought"/)
})

t.test('limits, lists and a no hold: nothing is signed, and no server gets a payment', async t => {
  const { daemon, chain, shop, connect, address } = await world(t)
  const { client } = daemon
  await connect()
  const paying = (id: string, path: string, options: object = {}) =>
    runTurn(client, id, `pay ${shop.url}${path} Why not?\nsay $out`, options)
  t.match(said(await paying('poor', '/cheap')), /the wallet main holds \$0 of Test Dollars, and .* asks for \$0\.1/)
  await chain.mint(await address(), 10_000_000n)
  t.match(said(await paying('dear', '/dear')), /asks for \$3, and the wallet main pays at most \$1 at once/)
  t.equal(said(await paying('free', '/free')), 'free of charge')
  t.match(said(await paying('alone', '/cheap', { unattended: true })), /nobody watches this turn/)
  t.match(said(await paying('plan', '/cheap', { permissionMode: 'plan' })), /plan mode/)

  const { run } = await client.call('POST /agent', {
    conversationId: 'no',
    prompt: `pay ${shop.url}/cheap So.\nsay $out`,
  })
  const watched = framesOf(client, 'no', { run })
  const { requestId } = await watched.until(({ kind }) => kind === 'payment_offer')
  await client.call('POST /agent/reply', { kind: 'payment_offer', requestId, approve: false })
  t.match(said((await watched.all()).map(({ event }) => event)), /the person does not pay \$0\.1 to 0x/)

  await connect({ deny: 'localhost' })
  t.match(said(await paying('denied', '/cheap')), /pays nothing to localhost: its list deny says so/)
  await connect({ allow: '*.example.org' })
  t.match(said(await paying('unlisted', '/cheap')), /its list allow names others/)
  await connect({ dailyCapUsd: '0.05' })
  t.match(said(await paying('capped', '/cheap')), /has spent \$0 of \$0\.05 today, and \$0\.1 more is too much/)
  t.notOk(shop.asked.some(({ payment }) => payment !== undefined))
  t.equal(chain.sent.length, 0)
})

t.test('below the limit of the owner no question comes, unless the turn has read content from outside', async t => {
  const { daemon, chain, shop, connect, address } = await world(t)
  const { client } = daemon
  await connect({ autoApproveUnderUsd: '0.2', dailyCapUsd: '0.25' })
  await chain.mint(await address(), 10_000_000n)
  const pays = `pay ${shop.url}/cheap So.\nsay $out`
  const small = await runTurn(client, 'small', pays, { unattended: true })
  t.match(said(small), /^paid \$0\.1[^]*what \/cheap sells/)
  t.match(
    small.filter(({ kind }) => kind === 'payment_receipt'),
    exactly({ outcome: 'paid' }),
  )
  const misled = await runTurn(client, 'misled', `fetch ${shop.url}/free\n${pays}`, { unattended: true })
  t.match(said(misled), /nobody watches this turn/, 'a page may have told it to')
  await runTurn(client, 'earlier', `fetch ${shop.url}/free\nsay $out`)
  t.match(
    said(await runTurn(client, 'earlier', pays, { unattended: true })),
    /nobody watches/,
    'in an earlier turn too',
  )
  const forkOf = { conversationId: 'earlier', keep: 2, files: 'now' as const }
  const forked = await runTurn(client, 'forked', pays, { unattended: true, forkOf })
  t.match(said(forked), /nobody watches/, 'a fork begins with what was read')
  const both = await Promise.all(['a', 'b'].map(id => runTurn(client, id, pays, { unattended: true })))
  t.match(
    both.map(said).sort(),
    exactly(/^paid \$0\.1/, /has spent \$0\.2 of \$0\.25 today/),
    'two at once do not pass the limit of the day together',
  )
  t.equal(await chain.balance(SELLER), 200_000n)
})

t.test('what somebody who may not land asked or answered makes a later payment ask', async t => {
  const people = new People()
  people.add('cas@example.org', 'collaborator')
  const { daemon, chain, shop, connect, address } = await world(t, { groups: ['needs'], fakes: people.fakes })
  people.admit(daemon)
  const { client } = daemon
  const cas = clientOf(daemon, 'cas@example.org')
  await connect({ autoApproveUnderUsd: '0.2' })
  await chain.mint(await address(), 10_000_000n)
  const pays = `pay ${shop.url}/cheap So.\nsay $out`
  const about = { kind: 'information', why: 'It is asked.', blocking: false } as const
  const answer = { answers: { answer: 'Pay for it.' } }

  for (const [id, asks, answers] of [
    ['own', client, client],
    ['answered', client, cas],
    ['asked', cas, client],
  ] as const) {
    await runTurn(client, id, 'say ready')
    const need = await asks.call('POST /needs', { ...about, conversationId: id, title: 'Which page?' })
    await answers.call('POST /needs/{id}/give', { id: need.id, ...answer })
    const paid = said(await runTurn(client, id, pays, { unattended: true }))
    t.match(paid, id === 'own' ? /^paid \$0\.1/ : /nobody watches this turn/, id)
  }

  // The last answer is the owner's, and the conversation goes on with all of them.
  await runTurn(client, 'both', 'say ready')
  const [one, two] = await Promise.all(
    ['One', 'Two'].map(title =>
      client.call('POST /needs', { ...about, blocking: true, conversationId: 'both', title }),
    ),
  )
  await cas.call('POST /needs/{id}/give', { id: one!.id, ...answer })
  const { run } = await client.call('POST /needs/{id}/give', { id: two!.id, ...answer })
  await framesOf(client, 'both', { run: run! }).all()
  t.match(said(await runTurn(client, 'both', pays, { unattended: true })), /nobody watches this turn/)
})

t.test('a server that fails after it got a payment gets no second one', async t => {
  const { daemon, chain, shop, connect, address } = await world(t)
  const { client } = daemon
  await connect({ autoApproveUnderUsd: '0.2' })
  await chain.mint(await address(), 10_000_000n)
  shop.broken = 'before'
  const twice = `pay ${shop.url}/cheap So.\nsay $out\npay ${shop.url}/cheap So.\nsay $out`
  const open = said(await runTurn(client, 'c', twice, { unattended: true }))
  t.match(open, /^\$0\.1 is not settled: [^]*until then an equal call sends the same payment again/)
  const payments = shop.asked.flatMap(({ payment }) => payment ?? [])
  t.equal(payments.length, 2)
  t.equal(new Set(payments).size, 1, 'the same payment is sent again')
  shop.broken = 'no'
  const settled = await runTurn(client, 'c', `pay ${shop.url}/cheap So.\nsay $out`, { unattended: true })
  t.match(said(settled), /^paid \$0\.1[^]*what \/cheap sells/)
  t.equal(await chain.balance(SELLER), 100_000n)

  shop.broken = 'after'
  const lost = await runTurn(client, 'lost', `pay ${shop.url}/cheap So.\nsay $out`, { unattended: true })
  t.match(said(lost), /^paid \$0\.1 on eip155:31337, but /, 'the chain says that the money is gone')
  t.equal(await chain.balance(SELLER), 200_000n)
})
