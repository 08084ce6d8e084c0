import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Workflow } from '../../../plugins/workflows/contract.js'
import { inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'
import { runningCommands } from '../../support/running-commands.js'
import { meantInClear } from '../../support/secret-search.js'
import {
  judgeOf,
  refusal,
  runEnd,
  runUntil,
  runWorkflow,
  startRun,
  stepIn,
  stepOf,
  workflowOf,
  workflowsDaemon,
} from './support.js'

const FILE = '.sandbox/config/workflows.json'
const people = new People()
people.add('vera@example.org', 'viewer')
people.add('bob@example.org', 'collaborator', ['docs'])
const daemon = await workflowsDaemon(
  t,
  {
    files: { 'docs/a.md': 'a\n' },
    fakes: { 'areas.reach': ({ areas }) => ({ folders: areas.map(path => ({ path, access: 'work' as const })) }) },
  },
  ['personas', 'skills'],
)
people.admit(daemon)
const { client, workspace } = daemon

const status = async (method: string, path: string, body?: object, headers: { [name: string]: string } = {}) => {
  const response = await daemon.fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  return `${response.status} ${((await response.json()) as { message?: string }).message ?? ''}`
}
const save = (workflow: object, create = true) => status('POST', '/workflows', { workflow, create })
const transcript = async (id: string) => (await client.call('GET /agents/{id}/transcript', { id })).messages
const isRunning = (words: string): boolean => runningCommands().some(line => line.includes(words))
const running = async (words: string): Promise<void> => {
  while (!isRunning(words)) await new Promise(resolve => setTimeout(resolve, 5))
}
const READS = ['/workflows', '/workflows/runs', '/workflows/runs/x', '/workflows/x/gate']
const RUN_WRITES = ['/workflows/runs/x/stop', '/workflows/runs/x/archive', '/workflows/runs/x/unarchive']
const WRITES = ['/workflows', '/workflows/x/run', '/workflows/x/gate/rotate', ...RUN_WRITES]

t.test('without a credential or with a weaker one no call answers', async t => {
  for (const path of READS) t.equal((await fetch(daemon.url + path)).status, 401, path)
  for (const path of WRITES) t.equal((await fetch(daemon.url + path, { method: 'POST' })).status, 401, path)
  t.equal((await fetch(`${daemon.url}/workflows/x`, { method: 'DELETE' })).status, 401)
  const viewer = { authorization: 'Bearer vera@example.org' }
  for (const path of WRITES) t.match(await status('POST', path, {}, viewer), /^403 /, path)
  t.match(await status('DELETE', '/workflows/x', undefined, viewer), /^403 /)
  t.match(await status('GET', '/workflows/x/gate', undefined, viewer), /^403 /)
  for (const scope of ['editor', 'read', 'drive', 'land'] as const) {
    const { token } = await daemon.token(scope)
    const as = { authorization: '', 'x-sandbox-control': token }
    t.match(await status('POST', '/workflows', {}, as), /^403 /, scope)
    t.match(await status('DELETE', '/workflows/x', undefined, as), /^403 /, scope)
    t.match(await status('GET', '/workflows', undefined, as), scope === 'editor' ? /^403 / : /^200 /, scope)
    const drives = scope === 'drive' || scope === 'land'
    for (const path of ['/workflows/x/run', ...RUN_WRITES])
      t.match(await status('POST', path, {}, as), drives ? /^404 / : /^403 /, `${scope} ${path}`)
  }
})

t.test('bad input is refused with its field, and leaves nothing behind', async t => {
  const good = workflowOf('good', [stepOf('a', 'say hello')])
  t.match(await save({ ...good, id: '-x' }), /^400 workflow.id/)
  t.match(await save({ ...good, steps: [] }), /^400 workflow.steps/)
  t.match(await save({ ...good, maxParallel: 9 }), /^400 workflow.maxParallel/)
  t.match(await save({ ...good, id: 'runs' }), /^422 workflow.id/)
  t.match(await save(good, false), /^404 /)
  t.match(await status('DELETE', '/workflows/good'), /^404 /)
  t.match(await status('POST', '/workflows/good/run', {}), /^404 /)
  for (const path of RUN_WRITES) t.match(await status('POST', path, {}), /^404 /, path)
  t.match(await status('GET', '/workflows/runs/x'), /^404 /)
  t.match(await status('GET', '/workflows/runs?state=ready'), /^400 /)
  t.same(await client.call('GET /workflows'), { workflows: [], problems: [] })
})

t.test('all faults of a design are named together, and the file stays', async t => {
  const first = workflowOf('first', [stepOf('a', 'say a')])
  t.match(await save(first), /^200/)
  const before = readFileSync(join(workspace, FILE), 'utf8')
  const faulty = workflowOf(
    'faulty',
    [
      stepOf('a', 'say a', { needs: ['d'] }),
      stepOf('b', 'say b', { needs: ['a'], handoff: 'continue' }),
      stepOf('c', 'say c', { needs: ['a'], handoff: 'continue' }),
      stepOf('d', 'say d', { needs: ['b', 'c', 'x', 'd'] }),
      stepOf('d', 'say d', { handoff: 'continue' }),
      judgeOf('e', 'say e', {
        output: {
          kind: 'json',
          fields: [
            { name: 'maybe', type: 'string', description: 'x', required: false },
            { name: 'twice', type: 'string', description: 'x', required: true },
            { name: 'twice', type: 'string[]', description: 'x', required: true },
          ],
        },
      }),
    ],
    { gate: { step: 'e', field: 'maybe', pass: ['go'] } },
  )
  const response = await daemon.fetch('/workflows', {
    ...{ method: 'POST', body: JSON.stringify({ workflow: faulty, create: true }) },
  })
  t.equal(response.status, 422)
  const { errors } = (await response.json()) as { errors: { path: string; expected: string }[] }
  t.match(
    errors,
    exactly(
      { path: 'workflow.steps[2].handoff', expected: /one step that continues a/ },
      { path: 'workflow.steps[3].needs', expected: /no step x/ },
      { path: 'workflow.steps[3].needs', expected: /d itself/ },
      { path: 'workflow.steps[4].id', expected: /found d twice/ },
      { path: 'workflow.steps[4].needs', expected: /one step to continue.*found 0/ },
      { path: 'workflow.steps[5].output.fields', expected: /found twice twice/ },
      { path: 'workflow.steps', expected: /a circle of a, b, c, d/ },
      { path: 'workflow.gate.field', expected: /a required field, found the optional maybe/ },
    ),
  )
  const gate = (more: object) => save({ ...workflowOf('g', [judgeOf('j', 'say j')]), gate: { ...GATE, ...more } })
  t.match(await gate({ step: 'x' }), /^422 workflow.gate.step: .*no step x/)
  t.match(await gate({ field: 'x' }), /^422 workflow.gate.field: .*no field x/)
  t.match(await save({ ...first, id: 'h', gate: { ...GATE, step: 'a' } }), /^422 workflow.gate.step: .*output none/)
  t.equal(readFileSync(join(workspace, FILE), 'utf8'), before)
  t.match(await save(first), /^409 /)
  t.match(await status('DELETE', '/workflows/first'), /^200 /)
})
const GATE = { step: 'j', field: 'verdict', pass: ['go'] }

t.test('a run that is not possible is refused, and opens no conversation', async t => {
  t.match(await save(workflowOf('open', [{ ...stepOf('a', 'say a'), goal: undefined } as never])), /^200/)
  t.match(await status('POST', '/workflows/open/run', {}), /^422 request: .*step a has no goal/)
  t.match(await status('POST', '/workflows/open/run', { request: '' }), /^400 request/)
  t.match(await save(workflowOf('nobody', [stepOf('a', 'say a', { agent: 'nosuch' })])), /^200/)
  t.match(await status('POST', '/workflows/nobody/run', {}), /^422 steps\[0\]: step a: /)
  t.match(await save(workflowOf('model', [stepOf('a', 'say a', { model: 'nosuch' })])), /^200/)
  t.match(await status('POST', '/workflows/model/run', {}), /^422 /)
  const bob = clientOf(daemon, 'bob@example.org')
  t.equal(await refusal(bob.call('POST /workflows/{id}/run', { id: 'open', request: 'x' })), 403)
  const file = join(workspace, FILE)
  const brought = {
    ...workflowOf('brought', [stepOf('a', 'say a', { checks: [{ kind: 'command', command: 'true' }] })]),
  }
  const { id, ...written } = brought
  const kept = JSON.parse(readFileSync(file, 'utf8')) as object
  writeFileSync(file, JSON.stringify({ ...kept, [id]: written, broken: { name: 1 } }))
  t.match(await status('POST', '/workflows/brought/run', {}), /^409 brought came with the code/)
  const problems = await client.call('GET /system/manifest-problems')
  const [own] = problems.filter(({ path }) => path === FILE)
  t.match(
    own?.problems,
    exactly({ kind: 'invalidEntry', detail: /^broken: / }, { kind: 'unaccepted', detail: /^brought/ }),
  )
  t.match((await client.call('GET /workflows')).problems, exactly({ id: 'broken', message: /does not fit/ }))
  for (const name of ['open', 'nobody', 'model', 'brought', 'broken'])
    t.match(await status('DELETE', `/workflows/${name}`), /^200 /)
  t.same(await client.call('GET /workflows/runs'), { runs: [] })
  t.match((await client.call('GET /agents')).agents, exactly())
})

t.test('a fan-out overlaps, hands on what it found, starts from the captured commits, and lands nothing', async t => {
  const base = inGit(workspace, 'rev-parse', 'HEAD').trim()
  const write = (name: string) => `write ${name}.txt\n| by ${name}\nverdict done ${name} is good\nsay ${name} ends\n`
  const claim = { output: { kind: 'claim' as const } }
  const run = await startRun(
    daemon,
    workflowOf('fan', [
      stepOf('a', `wait words\n${write('a')}`, claim),
      stepOf('b', `wait words\n${write('b')}`, { ...claim, needs: ['a'] }),
      stepOf('c', `wait words\n${write('c')}`, { ...claim, needs: ['a'] }),
      stepOf('d', 'say compared', { needs: ['b', 'c'] }),
      stepOf('e', 'say went on', { needs: ['d'], handoff: 'continue' }),
    ]),
    'Compare two ways.',
  )
  const id = (step: string) => `w-${run.runId}-${step}`
  t.match(run, {
    state: 'running',
    startedBy: 'owner@sandbox.local',
    resumed: 0,
    repos: exactly({ repo: 'root', base }),
  })
  const both = async (...steps: string[]) => {
    await runUntil(daemon, run.runId, now => steps.every(step => stepIn(now, step).state === 'running'))
    for (const step of steps) while (!(await goesOn(id(step)))) await new Promise(resolve => setTimeout(resolve, 5))
  }
  const goesOn = (conversationId: string) =>
    client.call('POST /agent/steer', { conversationId, text: 'go on' }).then(
      () => true,
      () => false,
    )
  const tree = () =>
    inGit(workspace, 'status', '--porcelain', '-uall')
      .split('\n')
      .filter(line => !line.includes('.sandbox/'))
  const clean = tree()
  await both('a')
  inGit(workspace, 'commit', '-q', '--allow-empty', '-m', 'main moves')
  const refs = inGit(workspace, 'rev-parse', 'main')
  await both('b', 'c')
  const ended = await runEnd(daemon, run.runId)
  t.match(ended, { state: 'done', steps: exactly(...'abcde'.split('').map(() => ({ state: 'done', iterations: 1 }))) })
  const [b, c] = [stepIn(ended, 'b'), stepIn(ended, 'c')]
  t.ok(b.startedAt! < c.endedAt! && c.startedAt! < b.endedAt!, 'they overlap')
  t.match(b, { document: { done: true, reason: 'b is good' }, report: 'b ends', loopState: 'done' })
  const [told] = await transcript(id('d'))
  t.match(told!.text, /^say compared\n\n## Request\n\nCompare two ways\./)
  for (const step of ['b', 'c']) {
    t.match(told!.text, new RegExp(`"reason": "${step} is good"`))
    t.match(told!.text, new RegExp(`${step} ends`))
    const [, branch, commit] = /branch (\S+), commit (\w+)/.exec(told!.text.slice(told!.text.indexOf(`(${step})`)))!
    t.equal(inGit(workspace, 'rev-parse', branch!).trim(), commit)
    t.equal(inGit(workspace, 'show', `${branch}:${step}.txt`), `by ${step}\n`)
  }
  for (const step of 'abcd') t.equal((await client.call('GET /agents/{id}', { id: id(step) })).base, base.slice(0, 10))
  t.same([tree(), inGit(workspace, 'rev-parse', 'main')], [clean, refs], 'the shared tree and its branch stay')
  t.equal(stepIn(ended, 'e').conversationId, id('d'))
  t.match(await client.call('GET /agents/{id}', { id: id('d') }), {
    ...{ turns: 2, title: 'Step d (Workflow fan)' },
    workflow: { runId: run.runId, name: 'Workflow fan', step: 'Step e', index: 5, total: 5 },
  })
  const { events } = await client.call('GET /activity', {})
  const types = events
    .map(({ type }) => type)
    .filter(type => type.startsWith('workflow.'))
    .slice(0, 3)
  t.same(types, ['workflow.finished', 'workflow.started', 'workflow.saved'])
  const found = await client.call('GET /workflows/runs', { workflow: 'fan', state: 'done', limit: 1 })
  t.match(found.runs, exactly({ runId: run.runId }))
  t.same(await client.call('GET /workflows/runs', { workflow: 'fan', before: run.startedAt }), { runs: [] })
  t.match((await clientOf(daemon, 'vera@example.org').call('GET /workflows')).workflows, exactly({ runs: exactly({}) }))
  t.match((await clientOf(daemon, 'bob@example.org').call('GET /workflows')).workflows, exactly({ runs: exactly() }))
  t.match(
    await status('GET', `/workflows/runs/${run.runId}`, undefined, { authorization: 'Bearer bob@example.org' }),
    /^404/,
  )
})

t.test('a step that fails skips those that need it, says why, and fails the run', async t => {
  const run = await runWorkflow(
    daemon,
    workflowOf('fails', [
      stepOf('a', 'say a'),
      stepOf('c', 'fail it broke', { needs: ['a'] }),
      stepOf('d', 'say d', { needs: ['c'] }),
      stepOf('e', 'say e', { needs: ['d'] }),
    ]),
  )
  t.match(run, {
    ...{ state: 'failed', detail: /^step c ended as failed: / },
    steps: exactly(
      { state: 'done' },
      { state: 'failed', loopState: 'error', detail: /it broke/, iterations: 1 },
      { state: 'skipped', detail: 'step c ended as failed' },
      { state: 'skipped', detail: 'step d ended as skipped' },
    ),
  })
  t.notOk((await client.call('GET /agents')).agents.some(({ id }) => id === stepIn(run, 'd').conversationId))
})

t.test('a stop ends the process of the step in hand, and nothing else starts', async t => {
  const run = await startRun(
    daemon,
    workflowOf('stops', [stepOf('b', 'run sleep 741'), stepOf('d', 'say d', { needs: ['b'] })]),
  )
  await running('sleep\x00741')
  t.match(await status('POST', `/workflows/runs/${run.runId}/archive`, {}), /^409 .*is going/)
  const before = performance.now()
  const drives = await daemon.token('drive')
  await drives.client.call('POST /workflows/runs/{runId}/stop', { runId: run.runId })
  t.ok(performance.now() - before < 15_000)
  t.notOk(isRunning('sleep\x00741'))
  const stopped = await client.call('GET /workflows/runs/{runId}', { runId: run.runId })
  t.match(stopped, {
    state: 'stopped',
    steps: exactly({ state: 'stopped' }, { state: 'stopped', detail: /run was stopped/ }),
  })
  t.same(await client.call('POST /workflows/runs/{runId}/stop', { runId: run.runId }), { ok: true })
})

t.test('a run that has spent what it may stops its steps and skips the rest', async t => {
  const run = await runWorkflow(
    daemon,
    workflowOf(
      'spends',
      [stepOf('a', 'usage 1 1 0.60'), stepOf('b', 'run sleep 742'), stepOf('c', 'say c', { needs: ['a'] })],
      { maxSpendUsd: 0.5 },
    ),
  )
  t.match(run, { state: 'overspent', costUsd: 0.6, detail: /cost 0.6 USD, at most 0.5/ })
  t.match(run.steps, exactly({ state: 'done' }, { state: 'stopped' }, { state: 'skipped', detail: /had spent/ }))
  t.notOk(isRunning('sleep\x00742'))
})

t.test('a step waits for what its agent needs, and goes on with the answer', async t => {
  const run = await startRun(daemon, workflowOf('needs', [stepOf('a', 'need information Which socket?\nsay waiting')]))
  const { waitingFor } = stepIn(
    await runUntil(daemon, run.runId, now => stepIn(now, 'a').waitingFor !== undefined),
    'a',
  )
  await client.call('POST /needs/{id}/decline', { id: waitingFor!, reason: 'no socket' })
  const next = await runUntil(
    ...([daemon, run.runId] as const),
    now => ![undefined, waitingFor].includes(stepIn(now, 'a').waitingFor) || now.state !== 'running',
  )
  t.match(stepIn(next, 'a'), { state: 'running', iterations: 2 })
  await client.call('POST /workflows/runs/{runId}/stop', { runId: run.runId })
})

t.test('values of stored secrets are replaced in the request and in what a step hands on', async t => {
  const value = 'sesame-opens-0417'
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /secrets', { key: 'SESAME', value })
  // Only the folder of its own loop is open to it.
  const writes = `printf '{"done":true,"reason":"%s"}' '{{secret:SESAME}}' > "$at"document.json`
  const told = `run for at in .sandbox/records/loops/*/; do ${writes} || true; done`
  const claims = { output: { kind: 'claim' as const }, goal: 'It is told.' }
  const { prompt: _prompt, ...asks } = stepOf('a', '', claims)
  const run = await runWorkflow(daemon, workflowOf('secret', [asks]), `${told}\nsay ${value}`)
  t.match(run, { state: 'done', request: /say \{\{secret:SESAME\}\}$/ })
  t.match(stepIn(run, 'a').document, { reason: '{{secret:SESAME}}' })
  t.notMatch(JSON.stringify(await client.call('GET /loops')), value)
  const file = `.sandbox/records/loops/${stepIn(run, 'a').conversationId}/document.json`
  t.match(readFileSync(join(workspace, file), 'utf8'), value, 'the agent wrote it')
  meantInClear(daemon, `workspace: ${file}`, 'the agent wrote the value there')
  await client.call('DELETE /secrets/{key}', { key: 'SESAME' })
})

t.test('four runs go on at once, a fifth waits, and a messageId gets its run again', async t => {
  await client.call('POST /workflows', { workflow: workflowOf('many', [stepOf('a', 'wait words')]), create: true })
  const start = (messageId: string) => client.call('POST /workflows/{id}/run', { id: 'many', messageId })
  const all = []
  for (const id of ['1', '2', '3', '4', '5']) all.push((await start(id)).runId)
  t.equal((await start('5')).runId, all[4])
  for (const runId of all.slice(0, 4)) await runUntil(daemon, runId, now => stepIn(now, 'a').state === 'running')
  t.equal((await client.call('GET /workflows/runs/{runId}', { runId: all[4]! })).steps[0]!.state, 'pending')
  await client.call('POST /workflows/runs/{runId}/stop', { runId: all[0]! })
  await runUntil(daemon, all[4]!, now => stepIn(now, 'a').state === 'running')
  t.match(await status('DELETE', '/workflows/many'), /^200 /)
  for (const runId of all) await client.call('POST /workflows/runs/{runId}/stop', { runId })
  t.equal((await client.call('GET /workflows/runs', { workflow: 'many', state: 'stopped' })).runs.length, 5)
})

t.test('an archived run takes its conversations along, and comes back until they are deleted for good', async t => {
  const run = await runWorkflow(daemon, workflowOf('files', [stepOf('a', 'say a')]))
  const { runId } = run
  const id = `w-${runId}-a`
  const onBoard = async () => (await client.call('GET /agents')).agents.some(card => card.id === id)
  await client.call('POST /workflows/runs/{runId}/archive', { runId })
  t.notOk(await onBoard())
  t.match((await client.call('GET /workflows/runs', { archived: true })).runs, exactly({ runId }))
  await client.call('POST /workflows/runs/{runId}/unarchive', { runId })
  t.ok(await onBoard())
  t.same(await client.call('GET /workflows/runs', { archived: true }), { runs: [] })
  await client.call('POST /agents/archive', { ids: [id] })
  await client.call('POST /agents/purge', { ids: [id] })
  await runUntil(daemon, runId, () => true)
  await client.call('POST /workflows/runs/{runId}/archive', { runId })
  while (!(await status('POST', `/workflows/runs/${runId}/unarchive`, {})).startsWith('409'))
    await client.call('POST /workflows/runs/{runId}/archive', { runId })
  t.match(await status('POST', `/workflows/runs/${runId}/unarchive`, {}), /^409 .*deleted for good/)
})

t.test('a design names the personas that its steps wear, and a change leaves runs as they started', async t => {
  await client.call('POST /personas', { id: 'tester', capabilities: [] })
  const worn: Workflow = workflowOf('worn', [stepOf('a', 'say a', { actsAs: 'tester' })])
  const run = await startRun(daemon, worn)
  await client.call('POST /workflows', { workflow: { ...worn, name: 'Renamed' }, create: false })
  t.equal((await runEnd(daemon, run.runId)).workflow.name, 'Workflow worn')
  const { usedBy } = await client.call('GET /personas/{id}/resolved', { id: 'tester' })
  t.match(
    usedBy.filter(({ kind }) => kind === 'workflow'),
    exactly({ id: 'worn', label: 'Renamed' }),
  )
})
