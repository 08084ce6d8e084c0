import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { daemonWith, inGit } from '../../../support/daemon.js'
import { mountsLater } from '../../../../sdk/node/wall/later-mounts.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { refusal, state, transcript } from '../support.js'

const VENDOR = { harness: 'vendor-code' } as const

/** The processes of the bundled agent program of a daemon with this data folder. */
const programs = (data: string): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      try {
        const [program, script] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        return (
          program === process.execPath
          && script!.endsWith('script-agent.js')
          && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOME=${data}/`)
        )
      } catch {
        return false
      }
    })

const kinds = (frames: readonly Frame[]): string[] => frames.map(({ kind }) => kind)
const said = (frames: readonly Frame[]): string =>
  frames.map(frame => (frame.kind === 'delta' ? frame.text : frame.kind === 'text_end' ? '\n' : '')).join('')
const call = (frames: readonly Frame[], name: string) => {
  const begun = frames.find(frame => frame.kind === 'tool_call' && frame.name === name) as Frame & { kind: 'tool_call' }
  return { ...begun, ended: frames.findLast(frame => frame.kind === 'tool_call_update' && frame.id === begun?.id) }
}

t.test('a script runs in a separate program, and each of its effects is a frame', async t => {
  const { client, workspace, data } = await daemonWith(t, ['agent'])
  const frames = await runTurn(
    client,
    'v',
    [
      'think hm',
      'say hello you',
      'say and you',
      'todo [x] a | [~] b',
      'write a.txt',
      '| one',
      'append a.txt',
      '| two',
      'edit a.txt',
      '| - two',
      '| + three',
      'read a.txt',
      'say $out',
      'run pwd; cat a.txt; exit 3',
      'say $exit: $out',
      'list .',
      'move a.txt -> b.txt',
      'write c.txt',
      '| x',
      'delete c.txt',
      'read nowhere.txt',
      'fetch http://x',
      'ask why?',
      'repeat 2 say n$n',
    ].join('\n'),
    { ...VENDOR, isolated: true },
  )
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { provider: 'script', harness: 'vendor-code', model: 'script' },
  )
  t.match(
    frames.find(({ kind }) => kind === 'session'),
    { sessionId: /^script-/ },
  )
  t.match(
    frames.find(({ kind }) => kind === 'thinking'),
    { text: 'hm' },
  )
  t.match(
    said(frames).split('\n'),
    exactly(
      'hello you',
      'and you',
      'one',
      'three',
      `3: ${(await mountsLater()) ? join(data, 'copies/v/tree') : workspace}`,
      'one',
      'three',
      /^fetch is not available here/,
      /^ask is not available here/,
      'n1',
      'n2',
      '',
    ),
  )
  t.match(
    frames.find(({ kind }) => kind === 'todos'),
    { items: exactly({ content: 'a', status: 'completed' }, { content: 'b', status: 'in_progress' }) },
  )
  t.match(call(frames, 'Write'), {
    category: 'edit',
    target: 'a.txt',
    locations: exactly({ path: 'a.txt' }),
    ended: { status: 'completed', content: exactly({ type: 'diff', path: 'a.txt', newText: 'one\n' }) },
  })
  t.match(call(frames, 'Edit'), {
    ended: { content: exactly({ type: 'diff', oldText: 'one\ntwo\n', newText: 'one\nthree\n' }) },
  })
  t.match(call(frames, 'Shell'), {
    category: 'execute',
    target: 'pwd; cat a.txt; exit 3',
    ended: { status: 'failed', content: exactly({ type: 'text', text: /\[exit 3\]$/ }) },
  })
  t.match(call(frames, 'Move'), { category: 'move', ended: { status: 'completed' } })
  t.match(frames.filter(frame => frame.kind === 'tool_call' && frame.name === 'Read').length, 2)
  t.match(
    frames.find(
      frame =>
        frame.kind === 'tool_call_update'
        && frame.status === 'failed'
        && JSON.stringify(frame.content).includes('nowhere.txt'),
    ),
    { status: 'failed' },
  )
  t.match(frames.slice(-2), exactly({ kind: 'usage', numTurns: 1 }, { kind: 'done', reason: 'completed' }))
  t.ok(kinds(frames).includes('context_usage'))
  const copy = join(data, 'agent', 'checkouts', 'v')
  t.equal(readFileSync(join(copy, 'b.txt'), 'utf8'), 'one\nthree\n')
  t.same(
    [existsSync(join(copy, 'a.txt')), existsSync(join(copy, 'c.txt')), existsSync(join(workspace, 'b.txt'))],
    [false, false, false],
  )
  t.equal(inGit(workspace, 'status', '--porcelain'), '', 'the shared tree is unchanged')
})

t.test('one process serves the turns of a conversation, and each conversation has its own', async t => {
  const { client, data } = await daemonWith(t, ['agent'])
  await runTurn(client, 'a', 'say x', VENDOR)
  const [first] = programs(data)
  t.equal(programs(data).length, 1)
  const again = await runTurn(client, 'a', 'say y')
  t.same(programs(data), [first], 'the second turn used the waiting process')
  await runTurn(client, 'b', 'say z', { ...VENDOR, isolated: true })
  t.equal(programs(data).length, 2)
  t.match(said(again), 'y')
})

t.test('in mode default a command waits for permission: once, always and deny', async t => {
  const { client } = await daemonWith(t, ['agent'])
  const turn = async (prompt: string, reply: { decision: 'once' | 'always' | 'deny'; feedback?: string }) => {
    await client.call('POST /agent', { conversationId: 'p', prompt, ...VENDOR, permissionMode: 'default' })
    const watched = framesOf(client, 'p')
    const card = await watched.until(({ kind }) => kind === 'permission')
    t.same(
      kinds(watched.seen.map(({ event }) => event)).slice(-2),
      ['tool_call', 'permission'],
      'the call is shown before its card',
    )
    await client.call('POST /agent/reply', { kind: 'permission', requestId: card.requestId, ...reply })
    return { card, frames: (await watched.all()).map(({ event }) => event) }
  }
  const once = await turn('run echo one\nsay $out', { decision: 'once' })
  t.match(once.card, { toolName: 'Shell', title: 'Run a command', description: 'echo one', alwaysLabel: /Shell/ })
  t.match(said(once.frames), 'one')
  t.equal(
    once.frames.filter(({ kind }) => kind === 'permission').length,
    1,
    'no permission is requested again for the allowed command',
  )
  const no = await turn('run echo two > two.txt\nsay after', { decision: 'deny' })
  t.match(call(no.frames, 'Shell'), { ended: { status: 'failed' } })
  t.match(said(no.frames), 'after')
  const file = await turn('write a.txt\n| x\nsay written', { decision: 'once' })
  t.match(file.card, { toolName: 'Write', path: 'a.txt' })
  t.equal(file.frames.filter(({ kind }) => kind === 'permission').length, 1)
  await turn('run echo three', { decision: 'always' })
  t.notOk(
    kinds(await runTurn(client, 'p', 'run echo four')).includes('permission'),
    '"always" counts for the conversation',
  )
})

t.test('tools that a turn may not use are refused to its program too', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  const frames = await runTurn(client, 'n', 'run echo x > x.txt\nsay $out', { ...VENDOR, allowedTools: ['Read'] })
  t.match(call(frames, 'Shell'), { ended: { status: 'failed' } })
  t.notOk(existsSync(join(workspace, 'x.txt')))
})

for (const [name, prompt] of [
  ['a script with its own plan', 'plan write it\nwrite a.txt\n| x\nsay done'],
  ['a script without one', 'write a.txt\n| x\nsay done'],
] as const) {
  t.test(`in mode plan ${name} takes two rounds, and nothing happens before the approval`, async t => {
    const { client, workspace } = await daemonWith(t, ['agent'])
    const turn = async (approve: boolean, feedback?: string) => {
      await client.call('POST /agent', { conversationId: 'p', prompt, ...VENDOR, permissionMode: 'plan' })
      const watched = framesOf(client, 'p')
      const card = await watched.until(({ kind }) => kind === 'plan')
      t.notOk(existsSync(join(workspace, 'a.txt')), 'nothing is written yet')
      await client.call('POST /agent/reply', {
        kind: 'plan',
        requestId: card.requestId,
        approve,
        ...(feedback && { feedback }),
      })
      return { card, frames: (await watched.all()).map(({ event }) => event) }
    }
    const no = await turn(false, 'not like this')
    t.match(no.card, { text: /write/ })
    t.match(said(no.frames), 'not like this')
    t.notOk(existsSync(join(workspace, 'a.txt')))
    const yes = await turn(true)
    t.match(
      yes.frames.find(({ kind }) => kind === 'mode'),
      { mode: 'bypassPermissions' },
    )
    t.match(said(yes.frames), /done/)
    t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'x\n')
    t.match(yes.frames.at(-1), { kind: 'done', reason: 'completed' })
  })
}

t.test('a program that exits fails its turn with its own message, and the next turn works', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client, data } = daemon
  const frames = await runTurn(client, 'd', 'say first\ndie\nsay never', VENDOR)
  t.match(
    frames.slice(-2),
    exactly(
      { kind: 'error', code: 'harness-crashed', message: /exit code 1: the script told this agent program to die/ },
      { kind: 'done', reason: 'failed' },
    ),
  )
  t.same(programs(data), [])
  const session = frames.find(({ kind }) => kind === 'session')
  const next = await runTurn(client, 'd', 'say again')
  t.match(said(next), 'again')
  t.match(
    next.find(({ kind }) => kind === 'session'),
    session!,
    'the new process loaded the session',
  )
  t.match(await state(daemon, 'd'), { conversation: { lastEnd: 'completed', harness: 'vendor-code' } })
  t.match(
    (await transcript(daemon, 'd')).messages.map(({ role }) => role),
    exactly('user', 'assistant', 'notice', 'user', 'assistant'),
  )
})

t.test('a script that fails ends the turn as failed with its message, and its process keeps running', async t => {
  const { client, data } = await daemonWith(t, ['agent'])
  t.match(
    (await runTurn(client, 'f', 'fail no luck', VENDOR)).find(({ kind }) => kind === 'error'),
    { message: 'no luck', code: undefined },
  )
  t.match(
    (await runTurn(client, 'f', 'say a\nnonsense here')).find(({ kind }) => kind === 'error'),
    { code: 'script-syntax', message: /line 2/ },
  )
  t.match(
    (await runTurn(client, 'f', '/nope')).find(({ kind }) => kind === 'error'),
    { code: 'unknown-command' },
  )
  t.match(said(await runTurn(client, 'f', 'Please fix it')), /^You said: Please fix it/)
  t.equal(programs(data).length, 1)
})

t.test('a stop ends the turn, its commands and the wait of the script', async t => {
  const { client, data } = await daemonWith(t, ['agent'])
  const sleep = `sleep 613.${process.pid}`
  for (const prompt of ['wait 60000', `run trap "" TERM; ${sleep}; sleep 1`]) {
    await client.call('POST /agent', { conversationId: 's', prompt: `say up\n${prompt}`, ...VENDOR })
    const watched = framesOf(client, 's')
    await watched.until(frame =>
      prompt.startsWith('run') ? frame.kind === 'tool_call_update' : frame.kind === 'delta',
    )
    const before = Date.now()
    await client.call('POST /agent/stop', { conversationId: 's' })
    t.ok(Date.now() - before < 15_000)
    const frames = (await watched.all()).map(({ event }) => event)
    t.match(frames.at(-1), { kind: 'done', reason: 'stopped' })
    t.notOk(kinds(frames).includes('error'))
  }
  t.notOk(
    readdirSync('/proc').some(pid => commandOf(pid).includes(sleep)),
    'its command has ended',
  )
  t.equal(programs(data).length, 1, 'the program followed the stop, so it keeps running')
  t.match(await runTurn(client, 's', 'say next'), /./)
})

const commandOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

t.test('a stop closes an open card', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', { conversationId: 's', prompt: 'run echo x', ...VENDOR, permissionMode: 'default' })
  const watched = framesOf(client, 's')
  await watched.until(({ kind }) => kind === 'permission')
  await client.call('POST /agent/stop', { conversationId: 's' })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(
    frames.find(({ kind }) => kind === 'resolved'),
    { reply: undefined },
  )
  t.match(
    frames.findLast(({ kind }) => kind === 'tool_call_update'),
    { status: 'failed' },
  )
  t.match(frames.at(-1), { kind: 'done', reason: 'stopped' })
})

t.test('messages to a running turn are queued, start after it, and cannot be steered', async t => {
  const { client } = await daemonWith(t, ['agent'])
  await client.call('POST /agent', { conversationId: 'q', prompt: 'wait 300\nsay first', ...VENDOR })
  const second = await client.call('POST /agent', { conversationId: 'q', prompt: 'say second' })
  t.equal(second.delivery, 'queued')
  const watched = framesOf(client, 'q')
  t.match(await watched.until(({ kind }) => kind === 'queue'), {
    messages: exactly({ run: second.run, why: 'no-mid-turn-words' }),
  })
  t.match(await refusal(client.call('POST /agent/steer', { conversationId: 'q', text: 'quick' })), {
    status: 409,
    message: /POST \/agent/,
  })
  const ends: unknown[] = []
  for await (const event of await client.call('POST /agent/attach', { conversationId: 'q' }))
    if (event.kind === 'end') ends.push(event)
  t.same(ends, [{ kind: 'end', next: second.run }])
  t.match(said((await framesOf(client, 'q', { run: second.run }).all()).map(({ event }) => event)), 'second')
})

t.test('a conversation switches between harnesses, and each gets the earlier messages', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await runTurn(client, 'm', 'say native')
  t.same(await client.call('POST /agent/switch-account', { conversationId: 'm', harness: 'vendor-code' }), {
    applied: 'next',
    kept: 'record',
  })
  const moved = await runTurn(client, 'm', 'say outside\nwait words 1')
  t.match(
    moved.find(({ kind }) => kind === 'init'),
    { harness: 'vendor-code' },
  )
  t.match(said(moved), /outside\nwait words is not available here/)
  t.match(await state(daemon, 'm'), {
    conversation: { harness: 'vendor-code', session: { harness: 'vendor-code', id: /^script-/ } },
  })
  await client.call('POST /agent/switch-account', { conversationId: 'm', harness: 'native' })
  t.match(
    (await runTurn(client, 'm', 'say back')).find(({ kind }) => kind === 'init'),
    { harness: 'native' },
  )
})

t.test('discarding a conversation ends its process, and so does stopping the daemon', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const { client, data } = daemon
  await runTurn(client, 'x', 'say x', { ...VENDOR, isolated: true })
  await runTurn(client, 'y', 'say y', VENDOR)
  t.equal(programs(data).length, 2)
  await client.call('POST /agents/{id}/discard', { id: 'x' })
  t.equal(programs(data).length, 1)
  await daemon.stop()
  t.same(programs(data), [])
})

t.test('a running turn switches into the agent program and back, and repeats nothing', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  for (const [from, to] of [
    ['native', 'vendor-code'],
    ['vendor-code', 'native'],
  ] as const) {
    const go = `go-${from}`
    const script =
      `write ${from}.txt\n| made\nrun echo ran >> ${from}.log; until [ -e ${go} ]; do sleep 0.02; `
      + `done\nsay $out never said`
    await client.call('POST /agent', { conversationId: from, prompt: script, harness: from })
    const watched = framesOf(client, from)
    await watched.until(frame => frame.kind === 'tool_call' && frame.name === 'Shell')
    t.match(await client.call('POST /agent/switch-account', { conversationId: from, harness: to }), {
      applied: 'now',
      kept: 'record',
    })
    writeFileSync(join(workspace, go), '')
    const frames = (await watched.all()).map(({ event }) => event)
    const at = frames.findIndex(({ kind }) => kind === 'switched')
    t.match(frames[at], { kind: 'switched', harness: to, kept: 'record' })
    t.match(
      frames.slice(at).find(({ kind }) => kind === 'init'),
      { harness: to },
    )
    t.match(said(frames.slice(at)), /^The rest of the script was lost/)
    t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
    t.equal(readFileSync(join(workspace, `${from}.log`), 'utf8'), 'ran\n')
    t.match(
      (await runTurn(client, from, 'say on')).find(({ kind }) => kind === 'init'),
      { harness: to },
    )
  }
})
