import { mock } from 'node:test'
import t from 'tap'
import { Background, TICK_MS } from '../../../plugins/chores/background.js'
import { ChoreBook, type ProbeOutcome } from '../../../plugins/chores/chore-book.js'
import { ChoreLane } from '../../../plugins/chores/chore-lane.js'
import { MANAGERS } from '../../../plugins/chores/probes/managers.js'
import { patchedAfter } from '../../../plugins/chores/probes/npm.js'
import type { ProbeOutput, ProbeTools } from '../../../plugins/chores/probes/probe.js'
import { changeBetween } from '../../../plugins/chores/probes/versions.js'
import { exactly } from '../../support/lists.js'

const memory = () => {
  const kept = new Map<string, unknown>()
  return {
    read: async <T>(name: string) => kept.get(name) as T | undefined,
    write: async (name: string, value: unknown) => void kept.set(name, structuredClone(value)),
    remove: async (name: string) => void kept.delete(name),
  }
}

t.test('versions differ in their first part that is newer', t => {
  for (const [current, latest, kind] of [
    ['1.0.0', '2.0.0', 'major'],
    ['1.9.9', '1.10.0', 'minor'],
    ['v1.2.3', '1.2.4', 'patch'],
    ['2024.1', '2024.2', 'minor'],
    ['2.0.0-beta.1', '2.0.0', 'patch'],
    ['2.0.0-beta.2', '2.0.0-beta.10', 'patch'],
    ['1.0', '1.0.post1', 'patch'],
    ['2.0.0', '2.0.0-beta.1', undefined],
    ['2.0.0', '1.9.9', undefined],
    ['1.0.0', '1.0.0', undefined],
    ['git', '1.0.0', undefined],
  ] as const)
    t.equal(changeBetween(current, latest), kind, `${current} and ${latest}`)
  t.equal(patchedAfter('>=1.0.0 <1.2.3'), '>=1.2.3')
  t.equal(patchedAfter('<=1.2.3'), undefined)
  t.equal(patchedAfter('<1.0.0 || >=2.0.0 <2.1.0'), undefined)
  t.end()
})

/** Tools with answers of programs and files that the test gives. */
const toolsWith = (
  files: { readonly [path: string]: string },
  outputs: readonly Partial<ProbeOutput>[],
): ProbeTools => {
  const rest = [...outputs]
  return {
    run: async () => ({ code: 0, text: '', errors: '', ...rest.shift() }),
    text: async path => files[path],
    has: async path => Object.hasOwn(files, path),
    projects: async () => [],
  }
}

t.test('pip and cargo are read as they print it, and nothing else counts as clean', async t => {
  const project = { dir: '', evidence: 'requirements.txt' }
  const askPip = (output: Partial<ProbeOutput>, files: { [path: string]: string } = { '.venv/bin/python': '' }) =>
    MANAGERS.pip!.outdated!(toolsWith(files, [output]), { ...project, manager: 'pip' })
  const listed = [
    { name: 'requests', version: '2.31.0', latest_version: '2.32.3', latest_filetype: 'wheel' },
    { name: 'pip', version: '23.0', latest_version: '25.0', latest_filetype: 'wheel' },
  ]
  t.match(
    await askPip({ text: JSON.stringify(listed) }),
    exactly({ name: 'requests', current: '2.31.0', latest: '2.32.3', kind: 'minor', section: 'requirements.txt' }),
  )
  t.same(await askPip({ text: '[]' }), [])
  await t.rejects(askPip({ text: '[]', errors: 'WARNING: Retrying (Retry(total=0)) after connection broken' }))
  await t.rejects(askPip({ text: 'requests 2.31.0' }), /not understood: requests/)
  await t.rejects(askPip({}, {}), /^no virtual environment/)

  const metadata = JSON.stringify({
    packages: [
      {
        name: 'shop',
        dependencies: [
          { name: 'serde', kind: null },
          { name: 'tempfile', kind: 'dev' },
        ],
      },
    ],
  })
  const done = 'warning: not updating lockfile due to dry run\n'
  const askCargo = (errors: string, files: { [path: string]: string } = { 'Cargo.lock': '' }) =>
    MANAGERS.cargo!.outdated!(toolsWith(files, [{ text: metadata }, { errors }]), { ...project, manager: 'cargo' })
  const printed = `    Updating crates.io index
     Locking 1 package to latest compatible version
    Updating serde v1.0.100 -> v1.0.200
   Unchanged tempfile v2.0.0 (available: v3.1.0)
   Unchanged itoa v0.4.0 (available: v1.0.0)
`
  t.match(
    await askCargo(printed + done),
    exactly(
      { name: 'serde', current: '1.0.100', latest: '1.0.200', kind: 'patch', section: 'dependencies' },
      { name: 'tempfile', current: '2.0.0', latest: '3.1.0', kind: 'major', section: 'dev-dependencies' },
    ),
  )
  await t.rejects(askCargo(printed), /not understood/)
  await t.rejects(askCargo(done, {}), /^no lock file/)
})

t.test('yarn fails with a line that is not known, and with one of an error', async t => {
  const project = { dir: '', evidence: 'yarn.lock', manager: 'yarn' }
  const ask = (output: Partial<ProbeOutput>, lock = '# yarn lockfile v1') =>
    MANAGERS.yarn!.outdated!(toolsWith({ 'yarn.lock': lock }, [output]), project)
  t.same(await ask({ text: '{"type":"info","data":"Color legend"}' }), [])
  const advisory = { module_name: 'lib', severity: 'high', title: 'Reads beyond its end', patched_versions: '>=2.0.0' }
  const line = { type: 'auditAdvisory', data: { resolution: { id: 7, path: 'lib', dev: true }, advisory } }
  const summary = '{"type":"auditSummary","data":{"vulnerabilities":{"high":1}}}'
  const audit = (text: string) =>
    MANAGERS.yarn!.audit!(toolsWith({ 'yarn.lock': '# yarn lockfile v1' }, [{ text, code: 8 }]), project)
  t.match(
    await audit(`${JSON.stringify(line)}\n${summary}`),
    exactly({ name: 'lib', severity: 'high', title: 'Reads beyond its end', patched: '>=2.0.0', dev: true }),
  )
  await t.rejects(audit(JSON.stringify(line)), /not understood/, 'it was cut')
  await t.rejects(ask({ text: '{"type":"news","data":"all fine"}' }), /not understood/)
  await t.rejects(ask({ code: 1 }), /not understood/)
  await t.rejects(ask({ errors: '{"type":"error","data":"no network"}', code: 1 }), /failed: no network/)
  await t.rejects(ask({}, '__metadata:\n  version: 8'), /yarn 2 or later/)
})

t.test('what failed is measured again once after an hour, and its figures stay', async t => {
  mock.timers.enable({ apis: ['Date', 'setInterval'], now: 1_000_000_000_000 })
  t.teardown(() => mock.timers.reset())
  const book = await ChoreBook.open(memory())
  const taken: string[] = []
  const failures: string[] = []
  let outcome: ProbeOutcome = { state: 'ok', facts: { id: 'outdated', packages: [] } }
  let isBusy = false
  const lane = new ChoreLane({
    book,
    measure: async ({ id }) => {
      taken.push(id)
      return id === 'outdated' ? outcome : { state: 'unavailable', reason: 'not here' }
    },
    isBusy: async () => isBusy,
    changed: () => {},
    failed: (_, reason) => failures.push(reason),
    log: { error: () => {} },
  })
  const background = new Background({ book, lane, repos: async () => ['shop'], isBusy: async () => isBusy })
  const drained = async () => {
    do await new Promise(resolve => setImmediate(resolve))
    while (lane.rows.length > 0)
  }
  /** Passes time, five minutes at a time, and answers what was measured. */
  const after = async (minutes: number) => {
    taken.splice(0)
    for (let rest = minutes * 60_000; rest > 0; rest -= TICK_MS) {
      mock.timers.tick(TICK_MS)
      await background.tick()
      await drained()
    }
    return [...taken]
  }
  t.same(await after(5), ['ui', 'bundle', 'outdated', 'audit', 'jscpd', 'knip'], 'cheap ones first')
  outcome = { state: 'failed', reason: 'no network' }
  await lane.ask({ repo: 'shop', id: 'outdated' })
  await drained()
  t.match(
    book.resultsOf('shop').find(({ id }) => id === 'outdated'),
    { state: 'failed', trend: exactly({ value: 0 }) },
  )
  t.same(await after(55), [], 'fresh for an hour')
  t.same(await after(30), ['outdated'])
  t.same(await after(60), ['outdated'])
  t.same(failures, ['no network'], 'one failure for each reason')
  isBusy = true
  t.same(await after(90), [], 'a turn runs')
  isBusy = false
  outcome = { state: 'ok', facts: { id: 'outdated', packages: [] } }
  t.same(await after(30), ['outdated'])
  t.same(await after(23 * 60), ['ui', 'bundle', 'audit', 'jscpd', 'knip'])
  for (let run = 0; run < 60; run++) {
    await lane.ask({ repo: 'shop', id: 'outdated' })
    await drained()
  }
  t.equal(book.resultsOf('shop').find(({ id }) => id === 'outdated')!.trend.length, 52)
  await book.keepOnly([])
  t.same(book.resultsOf('shop'), [])
})

t.test('what somebody asks for goes before the background, also after a restart', async t => {
  const files = memory()
  const book = await ChoreBook.open(files)
  const taken: string[] = []
  const gate = Promise.withResolvers<void>()
  const lane = (of: ChoreBook) =>
    new ChoreLane({
      book: of,
      measure: async ({ repo, id }) => {
        taken.push(`${repo} ${id}`)
        await gate.promise
        return { state: 'unavailable', reason: 'not here' }
      },
      isBusy: async () => false,
      changed: () => {},
      failed: () => {},
      log: { error: () => {} },
    })
  const first = lane(book)
  first.offer([
    { repo: 'a', id: 'ui' },
    { repo: 'b', id: 'ui' },
  ])
  await new Promise(resolve => setImmediate(resolve))
  t.equal(await first.ask({ repo: 'c', id: 'ui' }), 1)
  t.equal(await first.ask({ repo: 'd', id: 'ui' }), 2)
  t.equal(await first.ask({ repo: 'b', id: 'ui' }), 3, 'it is asked for now')
  t.same(
    first.rows.map(({ repo }) => repo),
    ['a', 'c', 'd', 'b'],
  )
  t.equal(await first.stop({ repo: 'd', id: 'ui' }), true)
  const again = await ChoreBook.open(files)
  t.same(
    again.asked.map(({ repo }) => repo),
    ['c', 'b'],
  )
  const ended = first.end()
  gate.resolve()
  await ended
  taken.splice(0)
  const second = lane(again)
  second.resume(again.asked)
  while (second.rows.length > 0) await new Promise(resolve => setImmediate(resolve))
  t.same(taken.toSorted(), ['b ui', 'c ui'].toSorted())
  t.same(again.asked, [])
})
