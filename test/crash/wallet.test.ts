import t from 'tap'
import { add } from '../plugins/capabilities/support.js'
import { spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { CHAIN_ID, localChain } from '../support/servers/local-chain.js'
import { paidServer, SELLER } from '../support/servers/paid-server.js'
import { framesOf } from '../support/turns.js'
import { CAPABILITIES_POINTS, dies, whereIn } from './failpoints/failpoints.js'

for (const point of CAPABILITIES_POINTS.filter(one => one.startsWith('capabilities.payment.'))) {
  void t.test(`killed at ${point}, a turn goes on and pays once`, async t => {
    const where = whereIn(t)
    const chain = await localChain(t)
    const shop = await paidServer(t, chain)
    const first = await spawnDaemon(t, where)
    await first.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await first.client.call('POST /settings/patch', {
      set: { networkAllow: [`localhost:${shop.port}`], autoResumeOnRestart: true },
    })
    const config = { network: `eip155:${CHAIN_ID}`, rpcUrl: chain.url, asset: chain.dollars } as const
    await add(first, { id: 'main', kind: 'wallet', config })
    const [wallet] = (await first.client.call('GET /capabilities')).capabilities
    await chain.mint(String(wallet!.config.address), 1_000_000n)
    await first.terminate()

    let run = ''
    await dies(t, where, point, async ({ client }) => {
      ;({ run } = await client.call('POST /agent', {
        conversationId: 'c',
        prompt: `pay ${shop.url}/cheap So.\nsay $out`,
      }))
      const { requestId } = await framesOf(client, 'c', { run }).until(({ kind }) => kind === 'payment_offer')
      await client.call('POST /agent/reply', { kind: 'payment_offer', requestId, approve: true })
      await framesOf(client, 'c', { run }).all()
    })
    const next = await spawnDaemon(t, where)
    const frames = (await framesOf(next.client, 'c', { run }).all()).map(({ event }) => event)
    t.match(
      frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join(''),
      /paid \$0\.1[^]*what \/cheap sells/,
    )
    t.match(
      frames.filter(({ kind }) => kind === 'payment_receipt'),
      exactly({ outcome: 'paid', amountUsd: '0.1' }),
    )
    t.equal(frames.filter(({ kind }) => kind === 'payment_offer').length, 1, 'one yes is enough')
    t.equal(await chain.balance(SELLER), 100_000n)
    t.equal(await chain.balance(String(wallet!.config.address)), 900_000n)
  })
}
