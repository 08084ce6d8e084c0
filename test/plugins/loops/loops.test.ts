import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { LoopDesign, LoopStart } from '../../../plugins/loops/contract.js'
import { exactly } from '../../support/lists.js'
import { loopEnd, loopOf, loopsDaemon, loopUntil, runLoop } from './support.js'
import { modelServer, type ScriptedReply } from '../../support/servers/model-server.js'
import { clientOf, People } from '../../support/people.js'
import { runningCommands } from '../../support/running-commands.js'
import { framesOf, runTurn } from '../../support/turns.js'

const DESIGNS = '.sandbox/config/loops.json'
const replies: ScriptedReply[] = []
const server = await modelServer(t, 'openai', ({ text }) =>
  text ? (replies.shift() ?? { text: ['nothing more'] }) : { status: 200, body: '{"data":[{"id":"m"}]}' },
)
const people = new People()
people.add('bob@example.org', 'collaborator', ['docs'])
people.add('eve@example.org', 'collaborator', ['src'])
const daemon = await loopsDaemon(
  t,
  {
    files: { 'docs/a.md': 'a\n', 'src/b.md': 'b\n' },
    fakes: {
      'areas.reach': ({ areas }) => ({ folders: areas.map(path => ({ path, access: 'work' as const })) }),
      'endpoints.choices': () => ({
        endpoints: [
          {
            ...{ id: 'local', label: 'Local', default: 'm', ready: true },
            models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
          },
        ],
      }),
      'endpoints.target': () => server.target(),
    },
  },
  ['needs', 'secrets', 'safety', 'personas', 'skills'],
)
const { client } = daemon
people.admit(daemon)

const command = (line: string, timeoutMs?: number) =>
  ({ kind: 'command', command: line, ...(timeoutMs !== undefined && { timeoutMs }) }) as const
const status = async (method: string, path: string, body?: object, headers: object = {}): Promise<string> => {
  const response = await daemon.fetch(path, {
    ...{ method, headers: { ...headers } },
    ...(body && { body: JSON.stringify(body) }),
  })
  return `${response.status} ${((await response.json()) as { message?: string }).message ?? ''}`
}
const turnsOf = async (conversationId: string) => (await client.call('GET /agents/{id}', { id: conversationId })).turns
const start = (conversationId: string, more: Partial<LoopStart> = {}) =>
  client.call('POST /loops', loopOf(conversationId, more))

t.test('without a credential or with a weaker one no call answers', async t => {
  for (const path of ['/loops', '/loops/x', '/loops/designs']) t.equal((await fetch(daemon.url + path)).status, 401)
  for (const path of ['/loops', '/loops/x/stop', '/loops/x/resume', '/loops/designs'])
    t.equal((await fetch(daemon.url + path, { method: 'POST' })).status, 401, path)
  const reads = await daemon.token('read')
  const drives = await daemon.token('drive')
  t.same(await reads.client.call('GET /loops'), { loops: [] })
  const refused = async (done: Promise<unknown>) =>
    done.then(
      () => 0,
      (error: { status: number }) => error.status,
    )
  t.equal(await refused(reads.client.call('POST /loops', loopOf('weak'))), 403)
  const shape = { context: 'fresh', output: { kind: 'claim' }, maxIterations: 1, stallLimit: 1 } as const
  const save = { design: { ...shape, id: 'a', name: 'A', checks: [] }, create: true }
  t.equal(await refused(drives.client.call('POST /loops/designs', save)), 403)
  t.equal(await refused(drives.client.call('POST /loops', loopOf('weak', { autoLand: true, isolated: true }))), 403)
  t.same(await reads.client.call('GET /loops'), { loops: [] }, 'a refused start leaves nothing behind')
})

t.test('bad input is refused with its field, and opens no conversation', async t => {
  const refused = (more: object) => status('POST', '/loops', { ...loopOf('bad'), ...more })
  t.match(await refused({ checks: [] }), /^422 checks: expected a check or a document/)
  const field = { name: 'n', type: 'number', description: 'a number', required: true }
  t.match(await refused({ output: { kind: 'json', fields: [field, field] } }), /^422 output.fields: .*n twice/)
  t.match(await refused({ conversationId: 'designs' }), /^422 conversationId/)
  t.match(await refused({ agent: 'nosuch' }), /^422 /)
  t.match(await refused({ model: 'nosuch' }), /^422 /)
  t.match(await refused({ account: 'nosuch' }), /^422 account/)
  t.match(await refused({ maxIterations: 51 }), /^400 maxIterations/)
  t.match(await refused({ checks: [command('x', 10)] }), /^400 checks/)
  t.match(await status('GET', '/loops?state=ready'), /^400 /)
  t.match(await status('GET', '/loops/bad'), /^404 /)
  t.match(await status('POST', '/loops/bad/stop', {}), /^404 /)
  t.match(await status('POST', '/loops/bad/resume', {}), /^404 /)
  t.match(await status('GET', '/agents/bad'), /^404 /)
  t.same(await client.call('GET /loops'), { loops: [] })
})

t.test('a loop is done after exactly as many rounds as its check needs, each with what the check printed', async t => {
  const checks = [command('wc -l < n.txt; test $(wc -l < n.txt) -ge 3')]
  const { state, iterations, costUsd } = await runLoop(daemon, 'lines', {
    ...{ prompt: 'append n.txt\n| a line\nusage 1 1 0.25\nsay a line', checks },
  })
  t.equal(state, 'done')
  t.equal(costUsd, 0.75)
  t.match(
    iterations,
    exactly(
      { n: 1, outcome: 'continue', changed: true, checks: exactly({ ok: false, detail: '1' }) },
      { n: 2, outcome: 'continue', changed: true, checks: exactly({ ok: false, detail: '2' }) },
      { n: 3, outcome: 'done', changed: true, checks: exactly({ ok: true, detail: '3' }) },
    ),
  )
  t.equal(readFileSync(join(daemon.workspace, 'n.txt'), 'utf8'), 'a line\n'.repeat(3))
  t.equal(new Set(iterations.map(({ sessionId }) => sessionId)).size, 1, 'every round has the same session')
  t.match(await client.call('GET /agents/{id}', { id: 'lines' }), {
    ...{ loop: { state: 'done', iteration: 3, maxIterations: 5, goal: 'The check holds.' } },
    ...{ title: 'The check holds.', turns: 3 },
  })
  const { loops } = await client.call('GET /loops', { state: 'done' })
  t.match(loops, exactly({ conversationId: 'lines', startedBy: 'owner@sandbox.local', resumed: 0 }))
  const { events } = await client.call('GET /activity', { conversationId: 'lines' } as never)
  const told = events.filter(({ type }) => type.startsWith('loop.'))
  t.match(told, exactly({ type: 'loop.ended', extra: { state: 'done', rounds: 3 } }, { type: 'loop.started' }))
})

t.test('a document that says done counts only if it is whole and the check holds', async t => {
  const fields = [{ name: 'count', type: 'number', description: 'how many', required: true }] as const
  const output = { kind: 'json' as const, fields: [...fields] }
  const round = (prompt: string, more: Partial<LoopStart> = {}) =>
    runLoop(daemon, `claims-${turn++}`, { prompt, output, maxIterations: 1, ...more })
  let turn = 1
  const good = '| {"data": {"count": 3}}'
  const claims = await round(`verdict done all is well\n${good}`, { isolated: true })
  t.match(claims, { state: 'exhausted', detail: '1 rounds did not meet the goal' })
  t.match(claims.iterations, exactly({ document: { done: true, data: { count: 3 } }, checks: exactly({ ok: false }) }))
  const detail = async (prompt: string) => (await round(prompt, { checks: [command('true')] })).iterations[0]!.detail
  t.match(await detail('say nothing'), /expected the document document.json/)
  t.match(await detail(`verdict done x\n| {"done": "yes"}`), /^done: expected true or false, found "yes"/)
  t.match(await detail(`verdict done x\n| {"data": {"count": "3"}}`), /^data.count: expected a number, found "3"/)
  t.match(await detail(`verdict done x`), /^data.count: expected a number, found nothing/)
  t.equal(await detail(`verdict not-done two are left\n${good}`), 'two are left')
  t.equal((await round(`verdict done x\n${good}`, { checks: [] })).state, 'done')
  const outside = await runTurn(client, 'claims-1', 'write .sandbox/records/loops/claims-1/document.json\n| {}')
  t.match(
    outside.findLast(({ kind }) => kind === 'tool_call_update'),
    { status: 'failed' },
    'a turn that nobody asked for a document writes none',
  )
})

t.test('rounds that change nothing, and rounds that cost too much, end the loop', async t => {
  for (const isolated of [true, false]) {
    const stalled = await runLoop(daemon, `stalls-${isolated}`, { prompt: 'say nothing', isolated, stallLimit: 2 })
    t.match(stalled, { state: 'stalled', detail: /^2 rounds in a row/ })
    t.match(stalled.iterations, exactly({ changed: false }, { changed: false }))
  }
  const spent = await runLoop(daemon, 'spends', { prompt: 'usage 1 1 0.60', maxSpendUsd: 1 })
  t.match(spent, { state: 'overspent', costUsd: 1.2 })
  t.equal(await turnsOf('spends'), 2)
  const resume = (body: object) => status('POST', '/loops/spends/resume', body)
  t.match(await resume({}), /^422 expected ceilings that leave room/)
  t.match(await resume({ maxSpendUsd: 0 }), /^400 /)
  await client.call('POST /loops/{conversationId}/resume', {
    ...{ conversationId: 'spends', maxSpendUsd: 9, maxIterations: 3, stallLimit: 2 },
  })
  const resumed = await loopEnd(daemon, 'spends')
  t.same([resumed.state, resumed.iterations.length], ['exhausted', 3], 'earlier rounds count')
})

t.test(
  'a check that sleeps beyond its time is ended with its children, and one that cannot run never holds',
  async t => {
    const line = 'sleep 731 & echo begun; sleep 732'
    const slow = await runLoop(daemon, 'slow', { maxIterations: 1, checks: [command(line, 1000)] })
    t.match(slow.iterations, exactly({ checks: exactly({ ok: false, detail: /did not end within 1000 ms/ }) }))
    t.notOk(isRunning('sleep\x00731'))
    const denied = { id: 'no-rm', label: 'No rm', target: 'command', match: { class: 'files.destructive' } } as const
    const { policy } = await client.call('GET /safety')
    await client.call('POST /safety', { policy: { ...policy, rules: [{ ...denied, verdict: 'deny' }] } })
    const ruled = await runLoop(daemon, 'ruled', { maxIterations: 1, checks: [command('rm -rf out')] })
    t.match(ruled.iterations, exactly({ checks: exactly({ ok: false, detail: /the safety policy refuses/ }) }))
    await client.call('POST /safety', { policy })
    const hidden = await runLoop(daemon, 'hidden', {
      maxIterations: 1,
      checks: [command(`test -e ${daemon.data}/store.sqlite`)],
    })
    t.equal(hidden.state, 'exhausted', 'a check does not see what the sandbox keeps')
  },
)

t.test('a judge reads goal, rubric and report alone, and only its exact form counts', async t => {
  const judge = { kind: 'judge', rubric: 'It names a number.', model: 'endpoint/local:m' } as const
  server.requests.length = 0
  replies.push(
    { text: ['{"met":false,"reason":"no number"}'] },
    { text: ['met: true'] },
    { text: ['{"met":true,"reason":"seven"}'] },
  )
  const { state, iterations } = await runLoop(daemon, 'judged', {
    prompt: 'think secretly\nsay seven </report>',
    checks: [judge],
  })
  t.equal(state, 'done')
  t.match(
    iterations.map(({ checks = [] }) => checks),
    exactly(
      exactly({ kind: 'judge', ok: false, detail: 'no number' }),
      exactly({ ok: false, detail: /not answer in the form/ }),
      exactly({ ok: true, detail: 'seven' }),
    ),
  )
  const { text } = server.requests[0]!
  t.match(text, /The check holds.*It names a number.*seven/)
  t.notMatch(text, /secretly|seven <\/report>/)
})

t.test('a round with a fresh session gets nothing of earlier rounds but the memory file', async t => {
  server.requests.length = 0
  const memory = '.sandbox/records/loops/fresh/progress.md'
  const writes = { name: 'Write', input: { path: memory, content: 'noted by one\n' } }
  const reads = { name: 'Read', input: { path: memory } }
  replies.push({ calls: [writes] }, { text: ['the first answer'] }, { calls: [reads] }, { text: ['the second'] })
  const fresh = { context: 'fresh', agent: 'endpoint/local', model: 'm', maxIterations: 2, isolated: true } as const
  const { iterations } = await runLoop(daemon, 'fresh', { ...fresh, prompt: 'Count up.', output: { kind: 'claim' } })
  t.equal(iterations.length, 2)
  const [, , third, fourth] = server.requests.map(({ text }) => text)
  t.match(third, /Count up\..*progress\.md/)
  t.notMatch(third, /the first answer|noted by one/)
  t.match(fourth, /noted by one/)
  t.notMatch(fourth, /the first answer/)
  t.match(third, /The check holds\..*false/, 'it is told the goal and the command of its check')
})

t.test('a second start is refused while one runs, and a stop ends round, command and loop', async t => {
  await start('stops', { prompt: 'say begun\nrun sleep 733\nsay over', isolated: true })
  await running('sleep\x00733')
  t.match(await status('POST', '/loops', loopOf('stops')), /^409 a loop runs/)
  t.match(await status('POST', '/loops/stops/resume', {}), /^409 /)
  const before = performance.now()
  await client.call('POST /loops/{conversationId}/stop', { conversationId: 'stops' })
  t.ok(performance.now() - before < 15_000)
  t.notOk(isRunning('sleep\x00733'))
  const stopped = await client.call('GET /loops/{conversationId}', { conversationId: 'stops' })
  t.match(stopped, { state: 'stopped', iterations: exactly({ n: 1, outcome: 'continue', detail: 'it was stopped' }) })
  await client.call('POST /loops/{conversationId}/stop', { conversationId: 'stops' })
  t.equal(await turnsOf('stops'), 1)
  const resumed = await client.call('POST /loops/{conversationId}/resume', {
    ...{ conversationId: 'stops', note: 'say the note', maxIterations: 2 },
  })
  t.equal(resumed.state, 'running')
  await running('sleep\x00733')
  await client.call('POST /agent/stop', { conversationId: 'stops' })
  const again = await loopEnd(daemon, 'stops')
  t.match(
    again,
    { state: 'stopped', iterations: exactly({ n: 1 }, { n: 2 }) },
    'a stop of the conversation ends it too',
  )
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'stops' })
  t.match(
    messages.find(({ text }) => text.startsWith('say the note')),
    { role: 'user' },
  )
})

t.test('a stop during a check ends the check, and one that waits for the round lets it end', async t => {
  await start('checking', { checks: [command('sleep 734')] })
  await running('sleep\x00734')
  await client.call('POST /agent/stop', { conversationId: 'checking' })
  t.match(await loopEnd(daemon, 'checking'), { state: 'stopped', iterations: exactly({ outcome: 'continue' }) })
  t.notOk(isRunning('sleep\x00734'))
  await start('later', { prompt: 'wait words\nsay over' })
  await client.call('POST /loops/{conversationId}/stop', { conversationId: 'later', now: false })
  t.equal((await client.call('GET /loops/{conversationId}', { conversationId: 'later' })).state, 'running')
  await client.call('POST /agent/steer', { conversationId: 'later', text: 'go on' })
  t.match(await loopEnd(daemon, 'later'), { state: 'stopped', iterations: exactly({ checks: exactly({ ok: false }) }) })
})

t.test('a message of a person runs before the next round and counts as none', async t => {
  await start('between', { prompt: 'wait words\nsay a round', maxIterations: 2 })
  t.match(await status('POST', '/loops', loopOf('between')), /^409 /)
  await client.call('POST /agent', { conversationId: 'between', prompt: 'say a person', errand: 'ci-fix' })
  const speak = () => client.call('POST /agent/steer', { conversationId: 'between', text: 'go on' })
  await speak()
  await loopUntil(daemon, 'between', ({ iterations }) => iterations.length === 1)
  while (
    !(await speak().then(
      () => true,
      () => false,
    ))
  )
    await new Promise(resolve => setTimeout(resolve, 5))
  t.match(await loopEnd(daemon, 'between'), { state: 'exhausted', iterations: exactly({ n: 1 }, { n: 2 }) })
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'between' })
  const said = messages.filter(({ role }) => role === 'assistant').map(({ text }) => text)
  t.same(said, ['a round', 'a person', 'a round'])
})

t.test('a loop waits for what its agent needs, and the next round knows the answer', async t => {
  await start('needs', {
    prompt: 'need information Which socket?\nsay waiting',
    maxIterations: 3,
    isolated: true,
    checks: [command('true'), command('false')],
  })
  const { waitingFor } = await loopUntil(
    daemon,
    'needs',
    loop => loop.waitingFor !== undefined || loop.state !== 'running',
  )
  t.ok(waitingFor)
  await client.call('POST /needs/{id}/decline', { id: waitingFor!, reason: 'no socket' })
  const next = await loopUntil(daemon, 'needs', ({ iterations }) => iterations.length === 2)
  t.notOk(next.waitingFor === waitingFor)
  t.equal(await turnsOf('needs'), 2, 'the answer starts no turn of its own')
  const { events } = { events: framesOf(client, 'needs', { run: next.iterations[1]!.run! }) }
  const notes = (await events.all()).filter(({ event }) => event.kind === 'preamble')
  t.match(JSON.stringify(notes), /no socket/)
  await client.call('POST /loops/{conversationId}/stop', { conversationId: 'needs' })
  t.equal((await loopEnd(daemon, 'needs')).state, 'stopped')
})

t.test('a loop of a person limited to areas stays in them, and others do not see it', async t => {
  const [bob, eve] = ['bob', 'eve'].map(name => clientOf(daemon, `${name}@example.org`))
  const refused = async (done: Promise<unknown>) =>
    done.then(
      () => 0,
      (error: { status: number }) => error.status,
    )
  t.equal(await refused(bob!.call('POST /loops', loopOf('elsewhere', { isolated: true }))), 404)
  await runTurn(bob!, 'bobs', 'say hello', { startIn: 'docs' })
  const checks = [command('test ! -e ../src && test ! -e ../.sandbox/config && test -e a.md')]
  await bob!.call('POST /loops', loopOf('bobs', { prompt: 'verdict done it is', output: { kind: 'claim' }, checks }))
  t.match(await loopEnd(daemon, 'bobs'), { state: 'done', iterations: exactly({ document: { reason: 'it is' } }) })
  t.match((await bob!.call('GET /loops')).loops, exactly({ conversationId: 'bobs' }))
  t.match((await eve!.call('GET /loops')).loops, exactly())
  t.equal(await refused(eve!.call('GET /loops/{conversationId}', { conversationId: 'bobs' })), 404)
  t.equal(await refused(eve!.call('POST /loops/{conversationId}/stop', { conversationId: 'bobs' })), 404)
  t.equal(await refused(eve!.call('POST /loops', loopOf('bobs'))), 404)
})

t.test('a running loop is named by the persona that it wears', async t => {
  await client.call('POST /personas', { id: 'tester', capabilities: [] })
  await start('worn', { prompt: 'wait words', actsAs: 'tester', isolated: true })
  const { usedBy } = await client.call('GET /personas/{id}/resolved', { id: 'tester' })
  t.match(
    usedBy.filter(({ kind }) => kind === 'loop'),
    exactly({ id: 'worn', label: 'The check holds.' }),
  )
  await client.call('POST /loops/{conversationId}/stop', { conversationId: 'worn' })
})

t.test('designs are saved, changed and removed, and a broken file harms nothing', async t => {
  const own: LoopDesign = {
    ...{ id: 'green', name: 'Until it is green', context: 'fresh', output: { kind: 'claim' } },
    ...{ checks: [command('npm test')], maxIterations: 9, stallLimit: 3 },
  }
  const save = (body: object) => status('POST', '/loops/designs', body)
  t.match(await save({ design: own, create: false }), /^404 /)
  t.same(await client.call('POST /loops/designs', { design: own, create: true }), own)
  t.match(await save({ design: own, create: true }), /^409 /)
  t.match(await save({ design: { ...own, output: { kind: 'none' }, checks: [] }, create: false }), /^422 checks/)
  t.match(await save({ design: { ...own, id: '-x' }, create: true }), /^400 design.id/)
  await client.call('POST /loops/designs', { design: { ...own, name: 'A' }, create: false })
  const path = join(daemon.workspace, DESIGNS)
  const written = JSON.parse(readFileSync(path, 'utf8')) as object
  writeFileSync(path, JSON.stringify({ ...written, broken: { name: 1 } }))
  const { designs, problems } = await client.call('GET /loops/designs')
  t.match(designs, exactly({ id: 'green', name: 'A' }))
  t.match(problems, exactly({ id: 'broken', message: /does not fit/ }))
  const named = await client.call('GET /system/manifest-problems')
  t.ok(named.some(({ path: file, problems: all }) => file === DESIGNS && all.length === 1))
  await client.call('DELETE /loops/designs/{id}', { id: 'green' })
  t.match(await status('DELETE', '/loops/designs/green'), /^404 /)
  t.match(Object.keys(JSON.parse(readFileSync(path, 'utf8')) as object), exactly('broken'), 'unknown entries stay')
  writeFileSync(path, '[')
  t.match(await save({ design: own, create: true }), /^422 /)
  t.match((await client.call('GET /loops/designs')).problems, exactly({ message: /no JSON|does not hold/ }))
})

t.test('a purge of the conversation takes its loop along', async t => {
  await start('gone', { prompt: 'wait words', output: { kind: 'claim' } })
  const folder = join(daemon.workspace, '.sandbox/records/loops/gone')
  while (!existsSync(folder)) await new Promise(resolve => setTimeout(resolve, 5))
  await client.call('POST /loops/{conversationId}/stop', { conversationId: 'gone' })
  await client.call('POST /agents/archive', { ids: ['gone'] })
  await client.call('POST /agents/purge', { ids: ['gone'] })
  while (!(await status('GET', '/loops/gone')).startsWith('404')) await new Promise(resolve => setTimeout(resolve, 5))
  t.notOk(existsSync(folder))
})

/** Whether a process of the machine has these words in its command line. */
const isRunning = (words: string): boolean => runningCommands().some(line => line.includes(words))

/** Waits for such a process. */
const running = async (words: string): Promise<void> => {
  while (!isRunning(words)) await new Promise(resolve => setTimeout(resolve, 5))
}
