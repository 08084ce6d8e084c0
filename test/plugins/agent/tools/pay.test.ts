import t from 'tap'
import type { PaymentOutcome } from '../../../../plugins/capabilities/contract.js'
import { pay } from '../../../../plugins/agent/tools/pay.js'
import type { PayTools, ToolContext } from '../../../../plugins/agent/tools/tool.js'

const HEADER = { name: 'payment-signature', value: 'x' }
const SPENT = { amountUsd: '0.1', network: 'eip155:8453' }

/** What the call says of an open payment that expired, when the wallet finds this. */
const later = async (found: PaymentOutcome): Promise<string> => {
  const paying: Partial<PayTools> = {
    cautious: false,
    earlier: async () => ({ ...SPENT, outcome: 'open', key: 'k', header: HEADER, until: Date.now() - 1000 }),
    settle: async () => found,
  }
  const { text } = await pay.run({ url: 'https://shop.example.org/', why: 'To read it.' }, {
    call: 'c',
    paying,
  } as unknown as ToolContext)
  return text
}

t.test('a payment that expired is made anew only where the network says that it was not collected', async t => {
  const until = Date.now() - 1000
  t.match(await later({ ...SPENT, outcome: 'open', until }), /^\$0\.1 may be paid: the network does not say yet/)
  t.match(await later({ ...SPENT, outcome: 'failed' }), /^\$0\.1 was not paid: .* Call again for a new payment/)
  t.match(
    await later({ ...SPENT, outcome: 'paid' }),
    /^paid \$0\.1 on eip155:8453, but what the server answered is lost/,
  )
})

t.test('what is paid goes over a way that nobody else can read', t => {
  const checked = (url: string) => pay.check({ url, why: 'To read it.' })
  for (const url of ['https://shop.example.org/', 'http://localhost:1/', 'http://10.0.0.1/', 'http://shop.local/'])
    t.match(checked(url), { url })
  for (const url of ['http://shop.example.org/', 'http://8.8.8.8/', 'http://[2606:4700::1]/', 'http://shop.local.org/'])
    t.throws(() => checked(url), /expected https/, url)
  t.end()
})
