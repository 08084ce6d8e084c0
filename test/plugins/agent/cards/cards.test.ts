import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { OpenCards } from '../../../../plugins/agent/cards/cards.js'
import t from 'tap'
import type { Frame, QuestionCard } from '../../../../plugins/agent/contract.js'
import { daemonWith } from '../../../support/daemon.js'
import { framesOf } from '../../../support/turns.js'
import { refusal, state, transcript } from '../support.js'
import { exactly } from '../../../support/lists.js'

const texts = (frames: readonly { event: Frame }[]) =>
  frames.flatMap(({ event }) => (event.kind === 'delta' ? [event.text] : []))

t.test('the first answer to a question wins, and repeating it succeeds', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', {
    conversationId: 'q',
    prompt: 'ask which colour?\n| red: warm\n| blue: cold\nsay took $answer',
  })
  const watched = framesOf(client, 'q')
  const { requestId, questions } = (await watched.until(({ kind }) => kind === 'question')) as unknown as QuestionCard
  const question = questions[0]!.question
  t.match((await state(daemon, 'q')).live, {
    state: 'parked',
    cards: exactly({ requestId, kind: 'question', title: question }),
  })
  const reply = { kind: 'question', requestId, answers: { [question]: 'blue' } } as const
  t.match(await refusal(client.call('POST /agent/reply', { kind: 'plan', requestId, approve: true })), {
    status: 422,
    message: /question/,
  })
  t.match(await refusal(client.call('POST /agent/reply', { ...reply, answers: { 'which number?': '1' } })), {
    status: 422,
  })
  t.match(await refusal(client.call('POST /agent/reply', { ...reply, requestId: 'r-none.1' })), { status: 404 })
  const answers = await Promise.all([1, 2, 3].map(() => client.call('POST /agent/reply', reply)))
  t.same(answers, [{ ok: true }, { ok: true }, { ok: true }])
  t.match(await refusal(client.call('POST /agent/reply', { ...reply, answers: { [question]: 'red' } })), {
    status: 409,
  })
  const frames = await watched.all()
  t.same(texts(frames), ['took blue'])
  t.match(
    frames.filter(({ event }) => event.kind === 'resolved'),
    exactly({ event: { requestId, reply, by: 'owner@sandbox.local' } }),
  )
  t.same(await client.call('POST /agent/reply', reply), { ok: true }, 'also after the end')
  t.match(
    (await transcript(daemon, 'q')).messages.find(({ cards }) => cards)?.cards,
    exactly({ card: { requestId }, reply, by: 'owner@sandbox.local' }),
  )
})

t.test('a turn is shown as parked exactly while a card is open', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  const rounds = 15
  await client.call('POST /agent', {
    conversationId: 'q',
    prompt: Array.from({ length: rounds }, (_, at) => `ask number ${at}?\n| yes: on`).join('\n'),
  })
  const seen: { state: string; cards: number }[] = []
  const answered = new Set<string>()
  while (answered.size < rounds) {
    const { live } = await state(daemon, 'q')
    if (!live) break
    await setImmediate()
    seen.push({ state: live.state, cards: live.cards.length })
    for (const { requestId, title } of live.cards) {
      if (answered.has(requestId)) continue
      answered.add(requestId)
      await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { [title]: 'yes' } })
    }
  }
  t.equal(answered.size, rounds)
  t.same(
    seen.filter(({ state, cards }) => (state === 'parked') !== cards > 0),
    [],
    'it is parked exactly while a card is open',
  )
})

t.test('an answer of an unknown kind is refused with the known kinds', async t => {
  const { fetch } = await daemonWith(t, ['agent'])
  const refused = async (body: object) => {
    const answer = await fetch('/agent/reply', { method: 'POST', body: JSON.stringify(body) })
    return { status: answer.status, ...((await answer.json()) as { message: string; errors: object[] }) }
  }
  const kinds =
    'one of browser_help, capability_offer, payment_offer, permission, plan, question, service_offer, '
    + 'terminal_help'
  const { status, message, errors } = await refused({ kind: 'approval', requestId: 'r-1.1', approve: true })
  t.equal(status, 400)
  t.equal(message, `kind: expected ${kinds}, found "approval"`)
  t.same(errors, [{ path: 'kind', expected: kinds, value: 'approval' }])
  t.equal((await refused({ requestId: 'r-1.1' })).message, `kind: expected ${kinds}, found nothing`)
  t.equal(
    (await refused({ kind: ['plan'], requestId: 'r-1.1' })).message,
    `kind: expected ${kinds}, found a list of 1 item`,
  )
  t.equal(
    (await refused({ kind: 'plan', requestId: 'r-1.1' })).message,
    'approve: expected true or false, found nothing',
  )
})

t.test('a cancelled question ends the turn as stopped, and the call returns after that', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', { conversationId: 'q', prompt: 'ask go on?\n| yes: y\nsay never' })
  const watched = framesOf(client, 'q')
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  await client.call('POST /agent/reply', { kind: 'question', requestId, cancelled: true })
  t.equal((await state(daemon, 'q')).conversation.lastEnd, 'stopped')
  const frames = await watched.all()
  t.same(texts(frames), [])
  t.equal(frames.filter(({ event }) => event.kind === 'resolved').length, 1)
  t.match(frames.at(-1)?.event, { kind: 'done', reason: 'stopped' })
})

t.test('a card of a stopped turn is resolved without an answer, and accepts none', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', { conversationId: 'q', prompt: 'ask go on?\n| yes: y' })
  const watched = framesOf(client, 'q')
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  await client.call('POST /agent/stop', { conversationId: 'q' })
  const resolved = (await watched.all()).map(({ event }) => event).filter(event => event.kind === 'resolved')
  t.same(resolved, [{ kind: 'resolved', requestId }])
  t.match(await refusal(client.call('POST /agent/reply', { kind: 'question', requestId })), { status: 409 })
})

t.test('plan mode prevents changes until the plan is approved', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  const run = async (conversationId: string, approve: boolean) => {
    await client.call('POST /agent', {
      conversationId,
      permissionMode: 'plan',
      prompt: `write early-${conversationId}.txt\n| x\nplan\n| 1. write\nwrite late-${conversationId}.txt\n| x`,
    })
    const watched = framesOf(client, conversationId)
    const { requestId } = await watched.until(({ kind }) => kind === 'plan')
    await client.call('POST /agent/reply', {
      kind: 'plan',
      requestId,
      approve,
      ...(!approve && { feedback: 'smaller' }),
    })
    return (await watched.all()).map(({ event }) => event)
  }
  const yes = await run('yes', true)
  t.match(
    yes.find(({ kind }) => kind === 'mode'),
    { mode: 'bypassPermissions' },
  )
  t.notOk(existsSync(join(workspace, 'early-yes.txt')))
  t.ok(existsSync(join(workspace, 'late-yes.txt')))
  await run('no', false)
  t.notOk(existsSync(join(workspace, 'late-no.txt')))
})

t.test('a waiting call runs only if it is allowed, and "always" allows the tool in this conversation', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  const held = async (prompt: string, decision: 'once' | 'always' | 'deny') => {
    await client.call('POST /agent', { conversationId: 'p', permissionMode: 'default', prompt })
    const watched = framesOf(client, 'p')
    const card = await watched.until(({ kind }) => kind === 'permission')
    const kinds = watched.seen.map(({ event }) => event)
    t.match(
      kinds.findLast(({ kind }) => kind === 'tool_call'),
      { status: 'pending' },
    )
    await client.call('POST /agent/reply', { kind: 'permission', requestId: card.requestId, decision })
    return (await watched.all()).map(({ event }) => event)
  }
  const no = await held('write no.txt\n| x', 'deny')
  t.match(
    no.findLast(({ kind }) => kind === 'tool_call_update'),
    { status: 'failed' },
  )
  t.notOk(existsSync(join(workspace, 'no.txt')))
  await held('write once.txt\n| x', 'once')
  t.ok(existsSync(join(workspace, 'once.txt')))
  await held('write always.txt\n| x', 'always')
  await client.call('POST /agent', { conversationId: 'p', prompt: 'write after.txt\n| x' })
  const after = await framesOf(client, 'p').all()
  t.notOk(after.some(({ event }) => event.kind === 'permission'))
  t.ok(existsSync(join(workspace, 'after.txt')))
})

for (const harness of ['native', 'vendor-code'] as const) {
  t.test(`${harness}: an answer counts for one call, not for other equal ones`, async t => {
    const { client, workspace } = await daemonWith(t, ['agent'])
    await client.call('POST /agent', {
      conversationId: 'p',
      harness,
      permissionMode: 'default',
      prompt: 'run echo x >> count.txt\n'.repeat(4),
    })
    const watched = framesOf(client, 'p')
    const decisions = ['once', 'deny', 'once', 'deny'] as const
    for (const decision of decisions) {
      const { requestId } = await watched.until(({ kind }) => kind === 'permission')
      await client.call('POST /agent/reply', { kind: 'permission', requestId, decision })
    }
    const frames = (await watched.all()).map(({ event }) => event)
    const ended = frames.filter(
      frame => frame.kind === 'tool_call_update' && (frame.status === 'completed' || frame.status === 'failed'),
    )
    t.same(
      ended.map(frame => 'status' in frame && frame.status),
      ['completed', 'failed', 'completed', 'failed'],
    )
    t.equal(readFileSync(join(workspace, 'count.txt'), 'utf8'), 'x\nx\n')
  })
}

t.test('"always" that cannot be remembered counts as "once"', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', { conversationId: 'p', prompt: 'permit Deploy: may it go out?\nsay $answer' })
  const watched = framesOf(client, 'p')
  const card = await watched.until(({ kind }) => kind === 'permission')
  t.notOk('alwaysLabel' in card)
  await client.call('POST /agent/reply', { kind: 'permission', requestId: card.requestId, decision: 'always' })
  const frames = await watched.all()
  t.same(texts(frames), ['once'])
  t.match(frames.find(({ event }) => event.kind === 'resolved')?.event, { reply: { decision: 'once' } })
})

t.test('an unattended turn raises no cards', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', {
    conversationId: 'u',
    unattended: true,
    permissionMode: 'default',
    prompt: 'write x.txt\n| x\nsay over',
  })
  const frames = await framesOf(client, 'u').all()
  t.notOk(frames.some(({ event }) => event.kind === 'permission'))
  t.notOk(existsSync(join(workspace, 'x.txt')))
})

t.test('a message during an open card reaches the turn after the answer', async t => {
  const { client } = await daemonWith(t, ['agent'])
  const { run } = await client.call('POST /agent', {
    conversationId: 'w',
    prompt: 'ask go on?\n| yes: y\nwait words\nsay $words',
  })
  const watched = framesOf(client, 'w')
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  t.match(await client.call('POST /agent', { conversationId: 'w', prompt: 'say later' }), { delivery: 'queued' })
  await client.call('POST /agent/steer', { conversationId: 'w', text: 'kept' })
  await client.call('POST /agent/reply', { kind: 'question', requestId })
  t.same(texts(await watched.all()), ['kept'])
  t.not((await framesOf(client, 'w').all()).length, 0)
  t.match(run, /^r-/)
})

t.test('the id of a card is never used again', async t => {
  const cards = new OpenCards()
  const asked: QuestionCard = { kind: 'question', requestId: 'r-1.1', questions: [] }
  let answers = 0
  const raised = { card: asked, conversationId: 'c', answer: async () => void answers++ }
  cards.raise(raised)
  t.throws(() => cards.raise({ ...raised, answer: async () => void t.fail('the first one waits') }), /was used before/)
  await cards.reply({ kind: 'question', requestId: 'r-1.1', answers: {} }, { by: 'ada@example.org', lands: true })
  t.equal(answers, 1)
  t.throws(() => cards.raise(raised), /was used before/, 'also after it was answered')
})
