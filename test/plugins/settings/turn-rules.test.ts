import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import type { Rule } from '../../../plugins/settings/contract.js'
import { daemonWith } from '../../support/daemon.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'

const daemon = await daemonWith(t, ['settings', 'agent', 'agents', 'activity', 'git'], {
  files: { 'README.md': '# work\n', 'docs/a.md': 'a\n' },
})
const { client, workspace } = daemon

const save = (...rules: Rule[]) => client.call('POST /settings/patch', { set: { rules } })
const atEnd = (id: string, action: Rule['action'], when?: Rule['when']): Rule => ({
  ...{ id, label: `Rule ${id}`, moment: 'turn.ending', action },
  ...(when && { when }),
})
const verdict = (id: string, given: 'allow' | 'hold', when?: Rule['when']): Rule => ({
  ...{ id, label: `Rule ${id}`, moment: 'agent.finished', action: { kind: 'verdict', verdict: given } },
  ...(when && { when }),
})
const ruleFrames = (frames: readonly Frame[]) => frames.filter(frame => frame.kind === 'rule')
const steered = (frames: readonly Frame[]) =>
  frames.flatMap(frame => (frame.kind === 'steer' ? [`${frame.by}: ${frame.text}`] : []))
const landed = (frames: readonly Frame[]) => frames.filter(frame => frame.kind === 'landed')
const saidIn = (frames: readonly Frame[]) =>
  frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')

t.test('an instruction adds one round to the turn, in which the agent works on', async t => {
  await save(atEnd('tidy', { kind: 'instruct', text: 'write tidy.txt\n| tidied\nsay tidied up' }))
  const frames = await runTurn(client, 'instructed', 'write first.txt\n| x\nsay first')
  t.equal(readFileSync(join(workspace, 'tidy.txt'), 'utf8'), 'tidied\n')
  t.match(saidIn(frames), /first.*tidied up/s)
  t.match(steered(frames), exactly(/^rule:tidy: write tidy\.txt/))
  t.match(ruleFrames(frames), exactly({ id: 'tidy', moment: 'turn.ending', action: 'instruct', outcome: 'ok' }))
  const calls = frames.flatMap(frame => (frame.kind === 'tool_call' ? [frame.id] : []))
  t.equal(new Set(calls).size, 2, 'calls of both rounds have ids of their own')
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.match(await client.call('GET /settings/rule-firings'), exactly({ id: 'tidy', count: 1, outcome: 'acted' }))
  const { events } = await client.call('GET /activity', {})
  t.match(
    events.filter(({ type }) => type === 'rule.continued_turn'),
    exactly({ conversationId: 'instructed' }),
  )
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'instructed' })
  t.match(
    messages.filter(({ role }) => role === 'user'),
    exactly({ text: /^write first/ }, { text: /^write tidy/, by: 'rule:tidy' }),
  )
})

t.test('a program outside the daemon gets the round in its session', async t => {
  await save(atEnd('more', { kind: 'instruct', text: 'read README.md\nsay second' }))
  const frames = await runTurn(client, 'outside', 'read README.md\nsay first', { harness: 'vendor-code' })
  t.match(saidIn(frames), /first.*second/s)
  t.match(steered(frames), exactly(/^rule:more/))
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
})

t.test('what a failing command says goes back to the agent, at most three times a turn', async t => {
  await save(atEnd('check', { kind: 'command', command: 'echo x >> rounds.txt; echo it is broken; exit 1' }))
  const frames = await runTurn(client, 'checked', 'say done')
  t.equal(readFileSync(join(workspace, 'rounds.txt'), 'utf8'), 'x\n'.repeat(4), 'at the end it is asked once more')
  t.equal(steered(frames).length, 3)
  t.match(steered(frames)[0], /rule:check: The check "Rule check".*does not pass: it exited with 1\nit is broken/s)
  t.match(ruleFrames(frames).at(-1), { outcome: 'failed', detail: /it is broken/ })
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'checked' })
  const errands = messages.filter(({ role }) => role === 'user').map(({ errand = 'none' }) => errand)
  t.same(errands, ['none', 'verify-nudge', 'verify-nudge', 'verify-nudge'])
  await save(atEnd('check', { kind: 'command', command: 'test -e README.md' }))
  const passed = await runTurn(client, 'checked', 'say again')
  t.match(ruleFrames(passed), exactly({ outcome: 'ok' }))
  t.same(steered(passed), [])
})

t.test('a rule on paths acts on what the turn changed, in the private copy it works in', async t => {
  const when = { paths: ['src/**'] }
  await save(atEnd('src', { kind: 'command', command: 'test -e src/a.ts && touch seen' }, when))
  const other = await runTurn(client, 'copied', 'write b.txt\n| b', { isolated: true })
  t.same(ruleFrames(other), [])
  t.same(landed(other), [], 'without a rule the work waits')
  const frames = await runTurn(client, 'copied', 'run mkdir -p src && echo 1 > src/a.ts', { isolated: true })
  t.match(ruleFrames(frames), exactly({ id: 'src', outcome: 'ok' }), 'a command of the agent made the file')
  t.notOk(existsSync(join(workspace, 'seen')))
})

t.test('a turn that fails or is stopped asks no rule, and a stop ends a command of a rule', async t => {
  await save(atEnd('slow', { kind: 'command', command: 'touch began; sleep 60' }))
  t.same(ruleFrames(await runTurn(client, 'failing', 'fail on purpose')), [])
  t.notOk(existsSync(join(workspace, 'began')))
  const { run } = await client.call('POST /agent', { conversationId: 'stopped', prompt: 'say hi' })
  const watched = framesOf(client, 'stopped', { run })
  await until(() => existsSync(join(workspace, 'began')))
  const queued = await client.call('POST /agent', { conversationId: 'stopped', prompt: 'say later' })
  t.equal(queued.delivery, 'queued', 'words wait for the next turn')
  await client.call('POST /agent/stop', { conversationId: 'stopped' })
  t.match((await watched.all()).at(-1), { event: { kind: 'done', reason: 'stopped' } })
  await save()
})

t.test('the checks that edited packages declare are run', async t => {
  mkdirSync(join(workspace, 'pkg/deep'), { recursive: true })
  const scripts = { lint: 'touch ../linted', test: 'exit 1' }
  writeFileSync(join(workspace, 'pkg/package.json'), JSON.stringify({ name: 'pkg', scripts }))
  await save(atEnd('verify', { kind: 'builtin', name: 'verify-edits' }))
  t.same(ruleFrames(await runTurn(client, 'verified', 'write alone.txt\n| x')), [], 'no package, nothing to do')
  t.same(await client.call('GET /settings/rule-firings'), [])
  const frames = await runTurn(client, 'verified', 'write pkg/deep/a.js\n| 1')
  t.match(ruleFrames(frames), exactly({ id: 'verify', action: 'builtin', outcome: 'ok' }))
  t.ok(existsSync(join(workspace, 'linted')))
  writeFileSync(join(workspace, 'package.json'), JSON.stringify({ scripts: { lint: 'touch linted-root' } }))
  for (const isolated of [false, true]) {
    const own = await runTurn(client, `verified-${isolated}`, 'write top.js\n| 1\nrun ls', { isolated })
    if (isolated) t.same(ruleFrames(own), [], 'the copy has no such package')
    else t.match(ruleFrames(own), exactly({ id: 'verify', outcome: 'ok' }), 'a package at the root')
  }
  t.ok(existsSync(join(workspace, 'linted-root')))
  rmSync(join(workspace, 'package.json'))
  await save()
})

const work = (id: string, path: string, options: object = {}) =>
  runTurn(client, id, `write ${path}\n| ${id}`, { isolated: true, ...options })

t.test('work lands where a rule allows it and nobody says otherwise', async t => {
  await save(verdict('docs', 'allow', { paths: ['docs/**'] }), verdict('rest', 'hold'))
  const allowed = await work('docs', 'docs/b.md')
  t.match(ruleFrames(allowed), exactly({ id: 'docs', moment: 'agent.finished', outcome: 'allow' }))
  t.match(landed(allowed), exactly({ landed: true }))
  t.ok(existsSync(join(workspace, 'docs/b.md')))
  const held = await work('rest', 'docs/c.md\n| x\nwrite src.txt')
  t.match(ruleFrames(held), exactly({ id: 'rest', outcome: 'hold' }))
  t.same(landed(held), [])
  t.notOk(existsSync(join(workspace, 'docs/c.md')))
  t.match(
    await client.call('GET /settings/rule-firings'),
    exactly({ id: 'rest', outcome: 'held' }, { id: 'docs', outcome: 'acted' }),
  )
  const { events } = await client.call('GET /activity', {})
  t.match(
    events.filter(({ type }) => type === 'rule.held_work'),
    exactly({ conversationId: 'rest' }),
  )
})

t.test('what a person says of a conversation goes before every rule', async t => {
  await save(verdict('all', 'allow'))
  t.same(landed(await work('kept', 'kept.txt', { autoLand: false })), [])
  await save(verdict('all', 'hold'))
  t.match(landed(await work('sent', 'sent.txt', { autoLand: true })), exactly({ landed: true }))
})

t.test('work of a turn whose checks do not pass has the outcome error', async t => {
  const broken = atEnd('broken', { kind: 'command', command: 'exit 1' })
  await save(broken, verdict('clean', 'allow', { outcome: ['clean'] }))
  const frames = await work('unclean', 'unclean.txt')
  t.same(landed(frames), [])
})

t.test('work in which content from outside took part waits for a person, whatever a rule says', async t => {
  await save(verdict('all', 'allow'))
  t.match(landed(await work('woken', 'woken.txt', { outsideWake: 'mail' })), exactly({ landed: false, held: true }))
  await save()
})
