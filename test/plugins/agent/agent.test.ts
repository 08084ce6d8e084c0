import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { AttachData, Frame } from '../../../plugins/agent/contract.js'
import { daemonWith, inGit, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { refusal, state, transcript } from './support.js'
import { treeOf } from '../agents/support.js'

const kinds = (frames: readonly Frame[]) => frames.map(({ kind }) => kind)

/** Every event of one attachment, including control events. */
const attached = async (
  { client }: Support,
  input: { conversationId: string; run?: string; after?: number },
): Promise<AttachData[]> => {
  const seen: AttachData[] = []
  for await (const data of await client.call('POST /agent/attach', input)) seen.push(data)
  return seen
}

t.test('the demo answers at once, writes its file and asks its question', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  const started = await client.call('POST /agent', { prompt: '/demo' })
  t.match(started, { delivery: 'started', run: /^r-/, conversationId: /^c-/, messageId: /^m-/ })
  const watched = framesOf(client, started.conversationId)
  const card = await watched.until(({ kind }) => kind === 'question')
  t.match(readFileSync(join(workspace, 'sandbox-demo.md'), 'utf8'), 'Hello from the sandbox')
  const {
    questions: [asked],
  } = card as Frame & { kind: 'question' }
  const answers = { [asked!.question]: asked!.options[0]!.label }
  t.same(await client.call('POST /agent/reply', { kind: 'question', requestId: card.requestId, answers }), { ok: true })
  const frames = await watched.all()
  const order = ['thinking', 'tool_call', 'question', 'resolved', 'delta', 'done']
  const firsts = new Set(frames.map(({ event }) => event.kind).filter(kind => order.includes(kind)))
  t.same([...firsts], order, 'it thinks, works, asks and writes text, in this order')
  t.same(
    frames.map(({ seq }) => seq),
    frames.map((_, index) => index + 1),
    'positions count from 1 without a gap',
  )
  t.match(frames.at(-1)?.event, { kind: 'done', reason: 'completed' })
})

t.test('two watchers and one that reconnects ten times receive identical frames', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  const script = 'repeat 60 say word $n of this turn\nwait 30\nrepeat 60 run echo $n'
  const { run, conversationId } = await client.call('POST /agent', { prompt: script })
  const first = framesOf(client, conversationId)
  await first.until(() => first.seen.length === 10)
  const second = framesOf(client, conversationId, { run, after: 5 })
  const pieces: { seq: number; event: Frame }[] = []
  const third = (async () => {
    for (let cut = 0; cut < 10; cut++) {
      let count = 0
      for await (const data of await client.call('POST /agent/attach', { conversationId, run, after: pieces.length })) {
        if (data.kind === 'frame') pieces.push({ seq: data.seq, event: data.event })
        if (++count > 9) break
      }
    }
    pieces.push(...(await framesOf(client, conversationId, { run, after: pieces.length }).all()))
  })()
  const [all, rest] = await Promise.all([first.all(), second.all(), third])
  t.same(rest, all.slice(5))
  t.same(pieces, all)
  t.same(
    all.map(({ seq }) => seq),
    all.map((_, index) => index + 1),
  )
})

t.test('an attachment begins with the head of the run and ends with its end', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { run, conversationId } = await daemon.client.call('POST /agent', {
    prompt: 'say hello',
    conversationId: 'head',
  })
  const live = await attached(daemon, { conversationId })
  t.match(live[0], { kind: 'attached', run, prompt: 'say hello', startedAt: Number })
  t.same(live.at(-1), { kind: 'end' })
  const later = await attached(daemon, { conversationId, run, after: 2 })
  t.match(later[0], { kind: 'attached', run, prompt: 'say hello', seq: live.length - 2 })
  t.same(later.slice(1), live.slice(3))
  t.same(
    await attached(daemon, { conversationId, run: 'r-of-long-ago', after: 4 }),
    [later[0], ...live.slice(1)],
    'with the position of another run the newest run is sent from its first frame',
  )
  t.same(
    await attached(daemon, { conversationId, after: 4_000_000 }),
    [later[0], live.at(-1)],
    'a position past the end counts as the end',
  )
})

t.test('an attachment from a future position starts after that position', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { run, conversationId } = await daemon.client.call('POST /agent', {
    prompt: 'say one\nwait words\nsay two\nsay three',
    conversationId: 'ahead',
  })
  const early = framesOf(daemon.client, conversationId)
  await early.until(({ kind }) => kind === 'text_end')
  const ahead = early.seen.length + 3
  const watching = attached(daemon, { conversationId, run, after: ahead })
  const beyond = attached(daemon, { conversationId, run, after: 4_000_000 })
  await daemon.client.call('POST /agent/steer', { conversationId: 'ahead', text: 'go on' })
  const all = await early.all()
  t.ok(all.length > ahead)
  t.same(
    (await watching).slice(1, -1).map(data => data.kind === 'frame' && data.seq),
    all.slice(ahead).map(({ seq }) => seq),
  )
  t.same((await beyond).slice(1), [{ kind: 'end' }])
})

t.test('attaching is refused for an id that is malformed or unknown', async t => {
  const { fetch } = await daemonWith(t, ['agent'])
  const attach = async (body: object) =>
    (await fetch('/agent/attach', { method: 'POST', body: JSON.stringify(body) })).status
  t.equal(await attach({ conversationId: '../x' }), 400)
  t.equal(await attach({ conversationId: 'nobody' }), 404)
  t.equal(await attach({ conversationId: 'nobody', after: -1 }), 400)
})

t.test('the record has the turn when done arrives', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  const { run, messageId } = await client.call('POST /agent', {
    conversationId: 'record',
    title: 'Two blocks',
    prompt: 'think about it\nsay first\nwrite a.txt\n| a\nsay second\nusage 10 20 0.5',
  })
  await framesOf(client, 'record').until(({ kind }) => kind === 'done')
  const { messages, total } = await transcript(daemon, 'record')
  t.equal(total, 3)
  t.match(
    messages,
    exactly(
      { index: 0, role: 'user', run, messageId, by: 'owner@sandbox.local', sentAt: Number },
      {
        index: 1,
        role: 'assistant',
        text: 'first',
        thinking: 'about it',
        tools: exactly({ name: 'Write', status: 'completed', content: exactly({ type: 'diff', path: 'a.txt' }) }),
      },
      { index: 2, role: 'assistant', text: 'second' },
    ),
  )
  const { conversation, live } = await state(daemon, 'record')
  t.match(conversation, {
    title: 'Two blocks',
    titleBy: 'person',
    lastRun: run,
    lastEnd: 'completed',
    provider: 'script',
    harness: 'native',
    model: 'script',
  })
  t.same(conversation.totals, { turns: 1, toolUses: 1, helpers: 0, costUsd: 0.5, inputTokens: 10, outputTokens: 20 })
  t.equal(live, undefined)
})

t.test('a title made from a prompt is cut between two characters as people see them', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const begin = `say ${'x'.repeat(53)}`
  const family = '👩‍👩‍👧‍👦'
  const titles: { readonly [prompt: string]: string } = {
    [`${begin}${family} and more`]: begin,
    [`${begin}aa\u0301 and more`]: `${begin}aa\u0301`,
    [`${begin}aaa\u0301 and more`]: `${begin}aa`,
    [`${begin} ${family}\nsay more`]: begin,
    [`say ${'🦩'.repeat(40)}`]: `say ${'🦩'.repeat(28)}`,
    [`${begin}\nsay more`]: begin,
  }
  for (const [at, [prompt, title]] of Object.entries(titles).entries()) {
    await runTurn(daemon.client, `t-${at}`, prompt)
    t.equal((await state(daemon, `t-${at}`)).conversation.title, title)
  }
})

t.test('a failed turn is reported in frames, board and record, and the next turn works', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  const frames = await runTurn(client, 'bad', 'say before\nrefuse rate_limit come back at noon')
  t.match(frames.at(-2), { kind: 'error', code: 'rate_limit', message: 'come back at noon' })
  t.match(frames.at(-1), { kind: 'done', reason: 'failed' })
  t.match((await state(daemon, 'bad')).conversation, { lastEnd: 'failed', failure: 'come back at noon' })
  t.match((await transcript(daemon, 'bad')).messages.at(-1), { role: 'notice', text: 'come back at noon' })
  t.match(await client.call('GET /agent/refusals'), {
    refusals: { script: { kind: 'limit', message: 'come back at noon' } },
  })
  t.match((await runTurn(client, 'bad', 'say fine')).at(-1), { kind: 'done', reason: 'completed' })
  t.same(await client.call('GET /agent/refusals'), { refusals: {} }, 'an answered turn clears the refusal')
  t.equal((await state(daemon, 'bad')).conversation.failure, undefined)
})

t.test('an unknown shortcut and a broken line run nothing', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  t.match(
    (await runTurn(client, 'one', '/nothing')).find(({ kind }) => kind === 'error'),
    { code: 'unknown-command' },
  )
  t.match(
    (await runTurn(client, 'two', 'write made.txt\n| x\nnonsense here')).find(({ kind }) => kind === 'error'),
    { code: 'script-syntax' },
  )
  t.notOk(existsSync(join(workspace, 'made.txt')))
})

t.test('commands are listed for the default provider and refused for an unknown one', async t => {
  const { client } = await daemonWith(t, ['agent'])
  t.match((await client.call('GET /agent/commands')).commands.map(({ name }) => name).sort(), exactly('demo', 'help'))
  t.match(await refusal(client.call('GET /agent/commands', { agent: 'nobody' })), { status: 422 })
})

t.test('an isolated turn leaves the shared tree alone, also by absolute paths', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'])
  const frames = await runTurn(
    client,
    'iso',
    `write a.txt\n| mine\nrun echo more > ${workspace}/b.txt; git status --short`,
    { isolated: true },
  )
  t.same(kinds(frames).slice(0, 3), ['worktree', 'checkpoint', 'session'])
  t.match(frames[0], { kind: 'worktree', branch: 'agent/iso', base: inGit(workspace, 'rev-parse', 'HEAD').trim() })
  t.match(frames[1], { kind: 'checkpoint', index: 0 })
  t.equal(inGit(workspace, 'status', '--short').replaceAll('?? .sandbox/\n', ''), '')
  const again = await runTurn(client, 'iso', 'run cat a.txt b.txt\nexpect more\nsay $out')
  t.match(again[0], { kind: 'worktree', sync: { commits: 0, blocked: { length: 0 } } })
  t.match(
    again.find(({ kind }) => kind === 'delta'),
    { text: /mine/ },
    'the next turn finds the files of the previous one',
  )
  t.match(again[1], { kind: 'checkpoint', index: 2 })
  t.same(
    ['a.txt', 'b.txt'].map(name => inGit(workspace, 'show', `agent/iso:${name}`)),
    ['mine\n', 'more\n'],
    'the change is on its branch',
  )
})

t.test('a copy follows the main line, and reports conflicts', async t => {
  const { client, workspace } = await daemonWith(t, ['agent'], { files: { 'a.txt': 'one\n' } })
  await runTurn(client, 'sync', 'write mine.txt\n| x', { isolated: true })
  execFileSync('sh', ['-c', 'echo two > a.txt'], { cwd: workspace })
  inGit(workspace, 'commit', '-qam', 'second')
  const followed = await runTurn(client, 'sync', 'run cat a.txt\nsay $out\nwrite a.txt\n| other')
  t.match(followed[0], {
    kind: 'worktree',
    base: inGit(workspace, 'rev-parse', 'HEAD').trim(),
    sync: { commits: 1, blocked: { length: 0 } },
  })
  t.match(
    followed.find(({ kind }) => kind === 'preamble'),
    { notes: exactly({ title: 'Main line' }) },
  )
  t.match(
    followed.find(({ kind }) => kind === 'delta'),
    { text: /two/ },
  )
  execFileSync('sh', ['-c', 'echo three > a.txt'], { cwd: workspace })
  inGit(workspace, 'commit', '-qam', 'third')
  const stuck = await runTurn(client, 'sync', 'run cat a.txt\nsay $out')
  t.match(stuck[0], { kind: 'worktree', sync: { commits: 0, blocked: exactly('root') } })
  t.match(
    stuck.find(({ kind }) => kind === 'delta'),
    { text: /other/ },
    'the copy is unchanged',
  )
})

t.test('commits to the main line during a card reach the copy after the answer, unless they conflict', async t => {
  const { client, workspace, data } = await daemonWith(t, ['agent'], { files: { 'a.txt': 'one\n' } })
  const copy = join(data, 'agent', 'checkouts', 'p')
  const commit = (path: string, text: string): string => {
    writeFileSync(join(workspace, path), text)
    inGit(workspace, 'add', '-A')
    inGit(workspace, 'commit', '-qm', `${path} ${text}`)
    return inGit(workspace, 'rev-parse', 'HEAD').trim()
  }
  await client.call('POST /agent', {
    conversationId: 'p',
    isolated: true,
    permissionMode: 'plan',
    prompt: 'plan write it\nwrite mine.txt\n| mine\nask Which?\n| a\nwrite a.txt\n| ours\nask Again?\n| b\nsay done',
  })
  const watched = framesOf(client, 'p')
  const parked = async (kind: 'plan' | 'question') => (await watched.until(frame => frame.kind === kind)).requestId
  const synced = () => watched.until(({ kind }) => kind === 'worktree')
  const planned = await parked('plan')
  commit('b.txt', 'b')
  const second = commit('b.txt', 'b again')
  await client.call('POST /agent/reply', { kind: 'plan', requestId: planned, approve: true })
  t.match(await synced(), { base: second, sync: { commits: 2, blocked: { length: 0 } } })
  const asked = await parked('question')
  const third = commit('c.txt', 'c')
  await client.call('POST /agent/reply', { kind: 'question', requestId: asked, answers: { 'Which?': 'a' } })
  t.match(await synced(), { base: third, sync: { commits: 1, blocked: { length: 0 } } })
  const again = await parked('question')
  t.same(
    ['a.txt', 'b.txt', 'c.txt', 'mine.txt'].map(name => readFileSync(join(copy, name), 'utf8')),
    ['ours\n', 'b again', 'c', 'mine\n'],
  )
  const before = treeOf(copy)
  commit('a.txt', 'theirs\n')
  await client.call('POST /agent/reply', { kind: 'question', requestId: again, answers: { 'Again?': 'b' } })
  t.match(await synced(), { base: third, sync: { commits: 0, blocked: exactly('root') } })
  t.match((await watched.all()).at(-1)?.event, { kind: 'done', reason: 'completed' })
  t.same(treeOf(copy), before, 'the copy is byte-equal')
  t.equal(inGit(copy, 'branch', '--show-current').trim(), 'agent/p')
})

t.test('a folder without git refuses an isolated turn and stores nothing of the message', async t => {
  const daemon = await daemonWith(t, ['agent'], { git: false })
  const input = { conversationId: 'iso', isolated: true, messageId: 'm-1', prompt: 'say x' }
  t.match(await refusal(daemon.client.call('POST /agent', input)), { status: 422, message: /git repository/ })
  t.match(await refusal(state(daemon, 'iso')), { status: 404 })
  t.match(
    await daemon.client.call('POST /agent', { ...input, isolated: false }),
    { delivery: 'started' },
    'the messageId is unused',
  )
})
