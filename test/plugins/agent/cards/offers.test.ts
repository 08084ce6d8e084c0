import t from 'tap'
import type { Card, CardReply, Frame } from '../../../../plugins/agent/contract.js'
import type { Caller } from '../../../../sdk/index.js'
import { DEFAULTS } from '../../../../plugins/settings/current-settings.js'
import { daemonWith, type Support } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf } from '../../../support/turns.js'
import { refusal, transcript } from '../support.js'

const OFFERS = {
  service: 'offer service translate 3',
  capability: 'offer capability forge',
  payment: 'offer payment https://shop.example/a 1.50',
} as const

/** A turn that waits for the answer to an offer. */
const offered = async ({ client }: Support, conversationId: string, words: string) => {
  await client.call('POST /agent', { conversationId, prompt: `${words}\nsay took $answer` })
  const watched = framesOf(client, conversationId)
  const card = (await watched.until(({ kind }) => kind.endsWith('_offer'))) as Card
  return { card, rest: async () => (await watched.all()).map(({ event }) => event) }
}

const replyTo = ({ kind, requestId }: Card, yes: boolean): CardReply =>
  (kind === 'capability_offer' ? { kind, requestId, connect: yes } : { kind, requestId, approve: yes }) as CardReply

const texts = (frames: readonly Frame[]) =>
  frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')
const OUTCOMES = ['service_event', 'service_receipt', 'capability_outcome', 'payment_receipt']
const outcomes = (frames: readonly Frame[]) => frames.filter(({ kind }) => OUTCOMES.includes(kind))

t.test('an accepted offer is followed by its simulated outcome, a refused one by nothing', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const follows = {
    service: [
      { kind: 'service_event', event: { event: 'status' } },
      { kind: 'service_event', event: { event: 'result', data: { simulated: true } } },
      { kind: 'service_receipt', outcome: 'ok', credits: 3, simulated: true },
    ],
    capability: [{ kind: 'capability_outcome', outcome: 'connected', id: 'forge' }],
    payment: [{ kind: 'payment_receipt', outcome: 'paid', amountUsd: '1.50', simulated: true }],
  }
  for (const [kind, words] of Object.entries(OFFERS)) {
    const yes = await offered(daemon, `${kind}-yes`, words)
    t.match(await daemon.client.call('GET /agents/{id}', { id: `${kind}-yes` }), {
      status: 'awaiting',
      attention: { [kind]: true, plan: false },
    })
    await daemon.client.call('POST /agent/reply', replyTo(yes.card, true))
    const frames = await yes.rest()
    const came = outcomes(frames)
    t.match(came, follows[kind as keyof typeof OFFERS])
    for (const frame of came) t.match(frame, { requestId: yes.card.requestId })
    t.equal(texts(frames), 'took yes')
    const no = await offered(daemon, `${kind}-no`, words)
    await daemon.client.call('POST /agent/reply', replyTo(no.card, false))
    const refused = await no.rest()
    t.same([outcomes(refused), texts(refused)], [[], 'took no'])
    t.match(
      (await transcript(daemon, `${kind}-no`)).messages.find(({ cards }) => cards)?.cards,
      exactly({ card: { kind: `${kind}_offer` }, reply: replyTo(no.card, false) }),
    )
  }
})

t.test('an offer must be answered by a maintainer, and by a person if it moves money', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const as = (caller: Caller, reply: CardReply) =>
    daemon.kernel.calls.answer('POST /agent/reply', reply, {
      caller,
      signal: new AbortController().signal,
      trusted: true,
    })
  const [drive, land] = [await daemon.token('drive'), await daemon.token('land')]
  for (const [kind, words] of Object.entries(OFFERS)) {
    const { card, rest } = await offered(daemon, kind, words)
    const yes = replyTo(card, true)
    t.match(await refusal(as({ kind: 'session', actor: 'bob', role: 'collaborator' }, yes)), {
      message: /needs role maintainer, found role collaborator/,
    })
    t.match(await refusal(drive.client.call('POST /agent/reply', yes)), { status: 403 })
    t.match(
      await refusal(drive.client.call('POST /agent/reply', { kind: 'plan', requestId: card.requestId, approve: true })),
      { status: 403 },
      'for every kind of reply',
    )
    if (kind === 'capability') await land.client.call('POST /agent/reply', yes)
    else {
      t.match(await refusal(land.client.call('POST /agent/reply', yes)), { status: 403, message: /moves money/ })
      t.match(await refusal(as({ kind: 'run', actor: 'conversation:x', role: 'owner' }, yes)), {
        message: /moves money/,
      })
      await as({ kind: 'session', actor: 'eve', role: 'maintainer' }, yes)
    }
    t.equal(texts(await rest()), 'took yes')
  }
})

t.test('the first answer to an offer counts, and a reply of another kind is refused', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  const { card, rest } = await offered(daemon, 'c', OFFERS.payment)
  const { requestId } = card
  t.match(await refusal(client.call('POST /agent/reply', { kind: 'service_offer', requestId, approve: true })), {
    status: 422,
    message: /payment_offer/,
  })
  t.match(await refusal(client.call('POST /agent/reply', { kind: 'plan', requestId, approve: true })), { status: 422 })
  t.match(await refusal(client.call('POST /agent/reply', { kind: 'payment_offer', requestId } as CardReply)), {
    status: 400,
  })
  await client.call('POST /agent/reply', replyTo(card, false))
  t.same(await client.call('POST /agent/reply', replyTo(card, false)), { ok: true })
  t.match(await refusal(client.call('POST /agent/reply', replyTo(card, true))), { status: 409 })
  t.equal(texts(await rest()), 'took no')
})

t.test('an unattended turn gets no offers', async t => {
  const { client } = await daemonWith(t, ['agent'])
  const { run } = await client.call('POST /agent', {
    conversationId: 'c',
    prompt: `${OFFERS.service}\nsay on`,
    unattended: true,
  })
  const frames = (await framesOf(client, 'c', { run }).all()).map(({ event }) => event)
  t.notOk(frames.some(({ kind }) => kind === 'service_offer'))
  t.equal(texts(frames), 'on')
})

t.test('in the network of the machine a page of the daemon itself is never fetched, another is', async t => {
  const daemon = await daemonWith(t, ['agent'], {
    fakes: { 'settings.get': () => ({ ...DEFAULTS, network: 'shared' }) },
  })
  const { client, url } = daemon
  const play = async (conversationId: string, prompt: string, options = {}) => {
    const { run } = await client.call('POST /agent', { conversationId, prompt, ...options })
    return (await framesOf(client, conversationId, { run }).all()).map(({ event }) => event)
  }
  for (const host of ['127.0.0.1', 'localhost', '0.0.0.0', '[::ffff:127.0.0.1]']) {
    const frames = await play(`own-${host.length}`, `fetch http://${host}:${new URL(url).port}/health\nsay $exit $out`)
    t.match(texts(frames), /^1 .*this sandbox itself/, host)
  }
  const frames = await play(
    'code',
    'code\n| const { version } = require("node:process")\n| console.log(version, process.cwd() === '
      + 'process.env.PWD)\nsay $exit $out\ncode\n| process.exit(3)\nsay $exit',
  )
  t.equal(texts(frames), `0 ${process.version} true3`)
  t.match(
    frames.find(frame => frame.kind === 'tool_call'),
    { name: 'Code', category: 'execute' },
  )
  t.equal(
    texts(
      await play(
        'module',
        'code\n| import { basename } from "node:path"\n| console.log(await basename("/a/b"))\nsay $out',
      ),
    ),
    'b',
  )
})
