import t from 'tap'
import { OpenCards } from '../../../../plugins/agent/cards/cards.js'
import { SubagentArchive } from '../../../../plugins/agent/subagents/archive.js'
import { Turn } from '../../../../plugins/agent/turn/turn.js'
import { daemonWith } from '../../../support/daemon.js'
import { journalsIn } from '../../../support/journals.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { inner, refusal, transcript } from '../support.js'

const NESTED =
  'helper outer\n| think hm\n| say begun\n| helper inner\n| | write a.txt\n| | | x\n| | say made\n| say over\n| '
  + 'fail it broke'

t.test('subagents are listed with their status, and each has its record', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await runTurn(daemon.client, 'a', NESTED)
  await runTurn(daemon.client, 'b', 'helper& other\n| say x\njoin')
  const { sessions, next } = await inner(daemon, 'agent.helpers', {})
  t.equal(next, undefined)
  t.equal(sessions.length, 3)
  const { sessions: mine } = await inner(daemon, 'agent.helpers', { conversationId: 'a' })
  const [outer, below] = [
    mine.find(({ spawnDepth }) => spawnDepth === 1)!,
    mine.find(({ spawnDepth }) => spawnDepth === 2)!,
  ]
  t.match(outer, {
    kind: 'subagent',
    conversationId: 'a',
    provider: 'script',
    model: 'script',
    description: 'outer',
    status: 'failed',
    error: 'it broke',
    toolUses: 1,
    lastTool: 'Delegate',
  })
  t.match(below, { status: 'completed', summary: 'made', toolUses: 1, lastTool: 'Write', tokens: Number })
  t.ok(outer.startedAt <= below.startedAt && below.endedAt! <= outer.endedAt! && outer.activityAt === outer.endedAt)
  const { messages } = await inner(daemon, 'agent.helperTranscript', { id: outer.id })
  t.match(
    messages,
    exactly(
      { index: 0, role: 'user', text: /^think hm\nsay begun/ },
      {
        role: 'assistant',
        thinking: 'hm',
        text: 'begun',
        tools: exactly({
          name: 'Delegate',
          status: 'completed',
          children: exactly({ name: 'Write', status: 'completed' }),
        }),
      },
      { role: 'assistant', text: 'over' },
      { index: 3, role: 'notice', text: 'it broke' },
    ),
  )
  t.match(
    (await inner(daemon, 'agent.helperTranscript', { id: below.id })).messages,
    exactly({ role: 'user' }, { tools: exactly({ name: 'Write', target: 'a.txt' }) }, { text: 'made' }),
  )
  t.match(await refusal(inner(daemon, 'agent.helperTranscript', { id: 'none' })), { status: 404 })
  t.match(
    (await transcript(daemon, 'a')).messages[1]?.tools?.[0]?.children,
    exactly({ children: exactly({ name: 'Write' }) }),
  )
})

t.test('a running subagent is listed as live, with its text so far', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'l',
    prompt: 'helper& over\n| say x\njoin\nhelper works\n| say so far\n| wait 60000',
  })
  await framesOf(daemon.client, 'l').until(frame => frame.kind === 'text_end' && frame.parentToolUseId === 'c3')
  const { sessions } = await inner(daemon, 'agent.helpers', { status: 'live' })
  t.match(sessions, exactly({ id: `${run}:c3`, status: 'running', endedAt: undefined }))
  t.equal(sessions.length, 1)
  t.equal((await inner(daemon, 'agent.helpers', {})).sessions.length, 2)
  t.match((await inner(daemon, 'agent.helperTranscript', { id: `${run}:c3` })).messages.at(-1), {
    role: 'assistant',
    text: 'so far',
  })
  await daemon.client.call('POST /agent/stop', { conversationId: 'l' })
  t.same((await inner(daemon, 'agent.helpers', { status: 'live' })).sessions, [])
  t.match(
    (await inner(daemon, 'agent.helpers', { conversationId: 'l' })).sessions.find(({ id }) => id === `${run}:c3`),
    { status: 'killed' },
  )
})

t.test('subagents are listed after a restart, and removed with their conversation', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await runTurn(daemon.client, 'a', 'helper one\n| say x')
  await runTurn(daemon.client, 'b', 'helper two\n| say y')
  const { sessions } = await inner(daemon, 'agent.helpers', {})
  await daemon.stop()
  await t.test('the next start', async t => {
    const next = await daemonWith(t, ['agent'], { workspace: daemon.workspace, data: daemon.data })
    t.same(await inner(next, 'agent.helpers', {}), { sessions })
    const id = sessions.find(({ conversationId }) => conversationId === 'a')!.id
    t.match((await inner(next, 'agent.helperTranscript', { id })).messages, exactly({ text: 'say x' }, { text: 'x' }))
    await inner(next, 'agent.discard', { id: 'a' })
    t.match(
      (await inner(next, 'agent.helpers', {})).sessions.map(({ conversationId }) => conversationId),
      exactly('b'),
    )
    t.match(await refusal(inner(next, 'agent.helperTranscript', { id })), { status: 404 })
    t.equal((await next.kernel.journals.list('agent/helpers/')).length, 1)
  })
})

t.test('subagents that began at the same moment share a page, and those that ended a week ago are removed', async t => {
  const journal = journalsIn(t)
  const host = {
    journal,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    cards: new OpenCards(),
    changed: () => {},
    helped: () => {},
    emit: () => {},
  }
  const archive = new SubagentArchive({ journal, live: () => [] })
  const turnAt = async (run: string, times: readonly number[]) => {
    const message = {
      run,
      conversationId: 'c',
      messageId: 'm',
      input: { prompt: 'go' },
      by: 'ada@example.org',
      attended: true,
      at: 0,
    }
    const turn = new Turn(
      host,
      { cancel: async () => {}, afterAnswer: async () => {} },
      {
        message,
        startedAt: 0,
        attempt: 1,
        boots: 0,
        provider: 'p',
        harness: 'native',
        model: 'm',
        permissionMode: 'plan',
        parked: [],
      },
    )
    for (const [at, time] of times.entries()) {
      turn.record.add({ kind: 'subagent', id: `c${at}`, subagentKind: 'subagent' }, time)
      turn.record.add({ kind: 'subagent_update', id: `c${at}`, status: 'completed' }, time)
    }
    await archive.keep(turn)
    await archive.keep(turn)
  }
  const now = Date.now()
  await turnAt('old', [now - 8 * 24 * 3_600_000])
  await turnAt('new', [now - 30, now - 20, now - 20, now - 20, now - 10])
  const first = archive.list({ limit: 2 })
  t.match(
    first.sessions.map(({ startedAt }) => startedAt - now),
    exactly(-10, -20, -20, -20),
  )
  t.same(
    archive.list({ limit: 2, before: first.next! }).sessions.map(({ id }) => id),
    ['new:c0', 'old:c0'],
  )
  await journal.rewrite('helpers/stray', [{}])
  await archive.sweep()
  t.equal(archive.list({}).sessions.length, 5)
  t.same(await journal.list('helpers/'), ['helpers/new'])
  const again = new SubagentArchive({ journal, live: () => [] })
  await again.load()
  t.same(again.list({}), archive.list({}))
  t.match((await again.transcript('new:c1')).messages, exactly({ index: 0, role: 'user' }))
})
