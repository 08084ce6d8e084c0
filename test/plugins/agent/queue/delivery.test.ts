import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { Frame, TurnInput } from '../../../../plugins/agent/contract.js'
import { onceIn } from '../../../support/changes.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { refusal, state, transcript } from '../support.js'

t.test('a message without a credential or with scope read is refused', async t => {
  const { url, token } = await daemonWith(t, ['agent'])
  const say = (headers: { [name: string]: string }) =>
    fetch(`${url}/agent`, {
      method: 'POST',
      body: '{"prompt":"say x"}',
      headers: { 'content-type': 'application/json', ...headers },
    })
  t.equal((await say({})).status, 401)
  t.equal((await say({ 'x-sandbox-control': (await token('read')).token })).status, 403)
  t.equal((await say({ 'x-sandbox-control': (await token('drive')).token })).status, 200)
})

t.test('a malformed message is refused and leaves no trace', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { fetch, workspace } = daemon
  mkdirSync(join(workspace, 'folder'))
  symlinkSync('/etc', join(workspace, 'out'))
  const answer = async (body: object) => {
    const response = await fetch('/agent', {
      method: 'POST',
      body: JSON.stringify({ conversationId: 'bad', messageId: 'm-1', ...body }),
    })
    return { status: response.status, ...((await response.json()) as object) }
  }
  const cases: [number, object][] = [
    [400, { prompt: '' }],
    [400, {}],
    [400, { prompt: 'x', attachments: Array.from({ length: 21 }, () => 'README.md') }],
    [400, { prompt: 'x', conversationId: undefined, isolated: true }],
    [400, { prompt: 'x', origin: { automationId: 'a', provider: 'p' } }],
    [400, { prompt: 'x', attachments: ['../../etc/passwd'] }],
    [400, { prompt: 'x', attachments: ['out/passwd'] }],
    [400, { prompt: 'x', attachments: ['/etc/passwd'] }],
    [400, { prompt: 'x', conversationId: 'no/slash' }],
    [400, { prompt: 'x', permissionMode: 'godMode' }],
    [400, { prompt: 'x', startIn: '../..' }],
    [422, { prompt: 'x', attachments: ['absent.txt'] }],
    [422, { prompt: 'x', attachments: ['folder'] }],
    [422, { prompt: 'x', startIn: 'README.md' }],
    [422, { prompt: 'x', startIn: 'absent' }],
    [422, { prompt: 'x', agent: 'nobody' }],
    [422, { prompt: 'x', model: 'gpt-0' }],
    [422, { prompt: 'x', account: 'mine' }],
    [422, { prompt: 'x', placement: { kind: 'runner', id: 'r' } }],
    [422, { prompt: 'x', autoLand: true }],
    [422, { prompt: 'x', worktreeBase: [{ repo: 'root', base: 'abc' }] }],
    [422, { prompt: 'x', conversationId: 'archived' }],
    [404, { prompt: 'x', forkOf: { conversationId: 'nobody', keep: 0, files: 'now' } }],
    [404, { prompt: 'x', sessionId: 'nothing' }],
  ]
  for (const [status, body] of cases) {
    const got = await answer(body)
    t.match(got, { status, message: /\w/ }, JSON.stringify(body))
  }
  t.match(await refusal(state(daemon, 'bad')), { status: 404 })
  t.match(await answer({ prompt: 'say x', mentions: ['../../etc/passwd', 'README.md'] }), {
    status: 200,
    delivery: 'started',
    messageId: 'm-1',
  })
  const frames = await framesOf(daemon.client, 'bad').all()
  t.match(
    frames.find(({ event }) => event.kind === 'preamble')?.event,
    { notes: exactly({ title: 'Files mentioned', text: 'README.md' }) },
    'a bad mention is ignored',
  )
})

t.test('twenty equal messages at once are one message with twenty equal answers', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const input = { prompt: 'say once', messageId: 'm-same' }
  const answers = await Promise.all(Array.from({ length: 20 }, () => daemon.client.call('POST /agent', input)))
  t.equal(new Set(answers.map(answer => JSON.stringify(answer))).size, 1)
  const { conversationId } = answers[0]!
  await framesOf(daemon.client, conversationId).all()
  t.same(await daemon.client.call('POST /agent', { ...input, conversationId }), answers[0], 'also later')
  t.equal((await transcript(daemon, conversationId)).messages.filter(({ role }) => role === 'user').length, 1)
  t.match(await refusal(daemon.client.call('POST /agent', { ...input, conversationId: 'another' })), { status: 409 })
})

t.test('a message to a running turn is steered into it, between its frames', async t => {
  const { client } = await daemonWith(t, ['agent'])
  const { run, conversationId } = await client.call('POST /agent', {
    prompt: 'say before\nwait words\nsay heard $words',
  })
  const watched = framesOf(client, conversationId)
  await watched.until(({ kind }) => kind === 'text_end')
  const said = await client.call('POST /agent', { conversationId, messageId: 'm-said', prompt: 'turn left' })
  t.same(said, { run, conversationId, messageId: 'm-said', delivery: 'said' })
  t.same(await client.call('POST /agent', { conversationId, messageId: 'm-said', prompt: 'turn left' }), said)
  const frames = (await watched.all()).map(({ event }) => event)
  const order = frames.flatMap(frame =>
    frame.kind === 'delta' ? [frame.text] : frame.kind === 'steer' ? [`<${frame.text}>`] : [],
  )
  t.same(order, ['before', '<turn left>', 'heard turn left'])
  t.match(
    frames.find(({ kind }) => kind === 'steer'),
    { messageId: 'm-said', by: 'owner@sandbox.local', sentAt: Number },
  )
})

t.test('a message during a command appears among its frames, and the turn gets it after the command', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  const gate = join(workspace, 'gate')
  const { run, conversationId } = await client.call('POST /agent', {
    prompt: 'run mkfifo gate && cat gate\nsay $out and $words',
  })
  const watched = framesOf(client, conversationId)
  await onceIn(workspace, () => existsSync(gate))
  t.match(await client.call('POST /agent', { conversationId, messageId: 'm-said', prompt: 'turn left' }), {
    run,
    delivery: 'said',
  })
  await writeFile(gate, 'through')
  const frames = (await watched.all()).map(({ event }) => event)
  const at = (fits: (frame: Frame) => boolean) => frames.findIndex(fits)
  const places = [
    at(({ kind }) => kind === 'tool_call'),
    at(({ kind }) => kind === 'steer'),
    at(frame => frame.kind === 'tool_call_update' && frame.status === 'completed'),
  ]
  t.same(
    places,
    places.toSorted((one, other) => one - other),
  )
  t.notOk(places.includes(-1))
  t.equal(frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join(''), 'through and turn left')
})

t.test('steering is in the log before it is answered, and never starts or queues anything', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  t.match(await refusal(client.call('POST /agent/steer', { conversationId: 'none', text: 'x' })), { status: 404 })
  await runTurn(client, 'free', 'say x')
  t.match(await refusal(client.call('POST /agent/steer', { conversationId: 'free', text: 'x' })), {
    status: 409,
    message: /POST \/agent/,
  })
  const { run } = await client.call('POST /agent', { conversationId: 'free', prompt: 'wait words 20000\nsay $words' })
  t.match(await refusal(client.call('POST /agent/steer', { conversationId: 'free', text: '' })), { status: 400 })
  t.match(
    await refusal(client.call('POST /agent/steer', { conversationId: 'free', text: 'x', attachments: ['../x'] })),
    { status: 400 },
  )
  await client.call('POST /agent/steer', { conversationId: 'free', text: 'this way' })
  const events = await daemon.kernel.journals.read<{ event: object }>(`agent/frames/${run}`)
  t.ok(events.some(({ event }) => 'kind' in event && event.kind === 'steer'))
  t.match((await framesOf(client, 'free').all()).find(({ event }) => event.kind === 'delta')?.event, {
    text: 'this way',
  })
})

t.test('messages that cannot be steered are queued with the reason, and run one after another', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  const send = (input: Partial<TurnInput>) =>
    client.call('POST /agent', { conversationId: 'queue', prompt: 'say next', ...input })
  const first = await send({ prompt: 'wait words 20000\nsay first' })
  const errand = await send({ prompt: 'say second', errand: 'verify-nudge' })
  const other = await send({ prompt: 'say third', model: 'script-fast' })
  const behind = await send({ prompt: 'say fourth' })
  t.same(
    [errand, other, behind].map(({ delivery }) => delivery),
    ['queued', 'queued', 'queued'],
  )
  const last = framesOf(client, 'queue', { run: behind.run })
  const watched = framesOf(client, 'queue', { run: first.run })
  const queued = await watched.until(frame => frame.kind === 'queue' && frame.messages.length === 3)
  t.match(queued, {
    paused: false,
    messages: exactly(
      { run: errand.run, why: 'errand' },
      { run: other.run, why: 'other-options', options: { model: 'script-fast' } },
      { run: behind.run, why: 'behind-others' },
    ),
  })
  await client.call('POST /agent/steer', { conversationId: 'queue', text: 'go' })
  t.match((await last.all()).at(-1)?.event, { kind: 'done', reason: 'completed' }, 'a queued run can be attached to')
  const rows = (await transcript(daemon, 'queue')).messages
    .filter(({ role }) => role === 'assistant')
    .map(({ text }) => text)
  t.same(rows, ['first', 'second', 'third', 'fourth'])
})

t.test('the end of a run names the run that follows', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', { conversationId: 'next', prompt: 'wait words 20000' })
  const second = await client.call('POST /agent', { conversationId: 'next', prompt: 'say x', errand: 'land-fix' })
  const watching = client.call('POST /agent/attach', { conversationId: 'next' })
  await client.call('POST /agent/steer', { conversationId: 'next', text: 'go' })
  let end: object | undefined
  for await (const data of await watching) if (data.kind === 'end') end = data
  t.same(end, { kind: 'end', next: second.run })
})

t.test('at most fifty messages are queued', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await client.call('POST /agent', { conversationId: 'full', prompt: 'ask ready?\n| yes: y' })
  await framesOf(client, 'full').until(({ kind }) => kind === 'question')
  const sent = await Promise.all(
    Array.from({ length: 50 }, (_, n) =>
      client.call('POST /agent', { conversationId: 'full', messageId: `m-${n}`, prompt: 'say x' }),
    ),
  )
  t.ok(sent.every(({ delivery }) => delivery === 'queued'))
  t.match(await refusal(client.call('POST /agent', { conversationId: 'full', messageId: 'm-50', prompt: 'say x' })), {
    status: 429,
    message: /50 messages/,
  })
  t.same(
    await client.call('POST /agent', { conversationId: 'full', messageId: 'm-49', prompt: 'say x' }),
    sent[49],
    'a repeated message is still answered',
  )
  t.match(await state(daemon, 'full'), { waiting: 50, live: { state: 'parked' } })
})

t.test(
  'an editor token reaches only the conversations it opened, and another token of the same label none of them',
  async t => {
    const daemon = await daemonWith(t, ['agent'])
    const [mine, namesake] = [await daemon.token('editor', 'ide'), await daemon.token('editor', 'ide')]
    await runTurn(daemon.client, 'theirs', 'say private')
    await mine.client.call('POST /agent', { conversationId: 'mine', prompt: 'ask go on?\n| yes: y' })
    const card = await framesOf(mine.client, 'mine').until(({ kind }) => kind === 'question')
    const reply = { kind: 'question', requestId: card.requestId } as const
    const denied: [string, Promise<unknown>][] = [
      ['run', mine.client.call('POST /agent', { conversationId: 'theirs', prompt: 'say x' })],
      ['attach', framesOf(mine.client, 'theirs').all()],
      ['steer', mine.client.call('POST /agent/steer', { conversationId: 'theirs', text: 'x' })],
      ['stop', mine.client.call('POST /agent/stop', { conversationId: 'theirs' })],
      ['run of the same label', namesake.client.call('POST /agent', { conversationId: 'mine', prompt: 'say x' })],
      ['reply of the same label', namesake.client.call('POST /agent/reply', reply)],
    ]
    for (const [what, call] of denied)
      t.match(await refusal(call), { status: 403, message: /conversations that it opened/ }, what)
    const fork = {
      conversationId: 'fork',
      prompt: 'x',
      forkOf: { conversationId: 'theirs', keep: 0, files: 'now' },
    } as const
    t.match(await refusal(mine.client.call('POST /agent', fork)), { status: 404 })
    t.match(
      await refusal(
        mine.client.call('POST /agent', { conversationId: 'new', prompt: 'x', sessionId: 'script-theirs' }),
      ),
      { status: 404 },
    )
    t.same(await mine.client.call('POST /agent/reply', reply), { ok: true })
  },
)

t.test('options apply to the whole conversation, and an unknown persona has no tools', async t => {
  const daemon = await daemonWith(t, ['agent'], { files: { 'sub/x.txt': 'x' } })
  const { client } = daemon
  writeFileSync(join(daemon.workspace, 'sub', 'y.txt'), 'y')
  await runTurn(client, 'opts', 'say x', {
    model: 'script-fast',
    permissionMode: 'plan',
    startIn: 'sub',
    effort: 'low',
  })
  const frames = await runTurn(client, 'opts', 'run pwd\nsay $out')
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { model: 'script-fast' },
  )
  t.match((await state(daemon, 'opts')).conversation, {
    model: 'script-fast',
    permissionMode: 'plan',
    startIn: 'sub',
    effort: 'low',
  })
  t.match(
    frames.find(({ kind }) => kind === 'delta'),
    { text: /\/sub$/ },
    'commands start in the folder',
  )
  const alone = await runTurn(client, 'persona', 'read sub/x.txt\nsay $out', { actsAs: 'nobody' })
  t.match(
    alone.find(({ kind }) => kind === 'notice'),
    { text: /no persona nobody/ },
  )
  t.match(
    alone.find(({ kind }) => kind === 'tool_call_update'),
    { status: 'failed' },
  )
})
