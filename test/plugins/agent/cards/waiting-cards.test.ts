import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Card, CardReply } from '../../../../plugins/agent/contract.js'
import { wallKind } from '../../../../sdk/node/wall/wall.js'
import { daemonWith, folderOf, makeWorkspace, type Support } from '../../../support/daemon.js'
import { joined } from '../../../support/joined.js'
import { exactly } from '../../../support/lists.js'
import { framesOf } from '../../../support/turns.js'
import { noWall } from '../../../support/walls.js'
import { refusal, state } from '../support.js'

const PROMPTS = {
  asked: 'ask which colour?\n| red: warm\n| blue: cold\nsay took $answer',
  permitted: 'permit Deploy: may it go out?\nsay took $answer',
  planned: 'plan write it\nsay took the plan',
} as const
const skip = noWall((await wallKind()) !== 'none')

/** Starts a turn that asks, and returns the frame of its card. */
const ask = async ({ client }: Pick<Support, 'client'>, conversationId: string, prompt: string, options = {}) => {
  const { run } = await client.call('POST /agent', { conversationId, prompt, ...options })
  const card = await framesOf(client, conversationId, { run }).until(frame => 'requestId' in frame)
  return { conversationId, run, card: card as unknown as Card }
}

const answerTo = (card: Card): CardReply => {
  const { requestId } = card
  switch (card.kind) {
    case 'question':
      return { kind: 'question', requestId, answers: { [card.questions[0]!.question]: 'blue' } }
    case 'permission':
      return { kind: 'permission', requestId, decision: 'once' }
    default:
      return { kind: 'plan', requestId, approve: true }
  }
}

t.test('listing cards without a credential or with a malformed id is refused', async t => {
  const daemon = await daemonWith(t, ['agent'])
  t.equal((await fetch(`${daemon.url}/agent/cards`)).status, 401)
  t.equal((await daemon.fetch('/agent/cards?conversationId=../x')).status, 400)
  t.match(await refusal(daemon.client.call('GET /agent/cards', { conversationId: 'none' })), { status: 404 })
  t.same(await daemon.client.call('GET /agent/cards'), { cards: [] })
})

t.test('the open cards of all conversations are listed like their frames, and answered from the list', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const first = await daemonWith(t, ['agent'], { workspace, data })
  const raised = []
  for (const [id, prompt] of Object.entries(PROMPTS)) raised.push(await ask(first, id, prompt))
  const before = await first.client.call('GET /agent/cards')
  t.same(
    before.cards.map(({ raisedAt: _raisedAt, ...card }) => card),
    raised,
    'oldest first',
  )
  t.match(await first.client.call('GET /agent/cards', { conversationId: 'planned' }), {
    cards: exactly({ conversationId: 'planned', card: { kind: 'plan' } }),
  })
  await first.stop()

  const second = await daemonWith(t, ['agent'], { workspace, data })
  // A recovered turn raises its card again, which the board shows.
  const waits = async ({ conversationId }: { conversationId: string }) =>
    (await state(second, conversationId)).live?.cards.length === 1
  while ((await Promise.all(raised.map(waits))).includes(false)) await setImmediate()
  const { cards } = await second.client.call('GET /agent/cards')
  t.same(cards, before.cards, 'the same after a restart')
  for (const { conversationId, run, card } of cards) {
    const rest = framesOf(second.client, conversationId, { run })
    await second.client.call('POST /agent/reply', answerTo(card))
    const texts = (await rest.all()).flatMap(({ event }) => (event.kind === 'delta' ? [event.text] : []))
    t.match(texts.join(''), /took (blue|once|the plan)/, conversationId)
  }
  t.same(await second.client.call('GET /agent/cards'), { cards: [] })
})

t.test('an editor token lists the cards of conversations it opened, and other tokens all', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const [mine, other, read] = [await daemon.token('editor'), await daemon.token('editor'), await daemon.token('read')]
  const own = await ask(mine, 'mine', PROMPTS.asked)
  await ask(daemon, 'theirs', PROMPTS.asked)
  t.match(await mine.client.call('GET /agent/cards'), { cards: exactly(own) })
  t.same(await other.client.call('GET /agent/cards'), { cards: [] })
  t.equal((await read.client.call('GET /agent/cards')).cards.length, 2)
  t.match(await mine.client.call('GET /agent/cards', { conversationId: 'mine' }), { cards: exactly(own) })
  t.match(await refusal(mine.client.call('GET /agent/cards', { conversationId: 'theirs' })), { status: 403 })
})

t.test('a person limited to areas lists the cards of conversations there', { skip }, async t => {
  const daemon = await daemonWith(t, ['agent', 'areas', 'system'], { files: { 'docs/a': 'a', 'src/b': 'b' } })
  await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const ann = await joined(daemon, 'ann', 'collaborator', ['docs'])
  const own = await ask(ann, 'own', PROMPTS.asked, { startIn: 'docs' })
  await ask(daemon, 'beside', PROMPTS.asked, { startIn: 'src' })
  t.match(await ann.client.call('GET /agent/cards'), { cards: exactly(own) })
  t.match(await refusal(ann.client.call('GET /agent/cards', { conversationId: 'beside' })), { status: 404 })
  t.equal((await daemon.client.call('GET /agent/cards')).cards.length, 2)
})
