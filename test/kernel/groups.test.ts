import t from 'tap'
import type { Host } from '../../sdk/host.js'
import { daemonWith } from '../support/daemon.js'
import { madeGroups } from '../support/groups.js'

const open = (id: string) => ({ id, open: true }) as const
const NOBODY = { daemon: [], late: [] }
const CONTEXT = {
  caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

t.test('a group starts with its first call, once for all callers, and its steps run before it answers', async t => {
  const { manifests, notes } = madeGroups(t, {
    late: {
      manifest: { routes: { 'GET /late': open('late.get') } },
      activate: `
        note('starts')
        host.boot('look around', async () => {
          await new Promise(resolve => setTimeout(resolve, 20))
          note('looks')
        })
        await serve({ 'GET /late': () => (note('answers'), { ok: true }) })`,
    },
  })
  const daemon = await daemonWith(t, [], { manifests })
  t.same(notes, [], 'nothing of it is read at the start')
  const answers = await Promise.all([daemon.fetch('/late'), daemon.fetch('/late'), daemon.fetch('/late')])
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  t.same(notes, ['late is read', 'late starts', 'late looks', ...Array<string>(3).fill('late answers')])
})

t.test(
  'an event and a point that a manifest names start a group, and it receives what was announced before',
  async t => {
    const { manifests, notes } = madeGroups(t, {
      listening: {
        manifest: { events: ['thing.happened'] },
        activate: "host.on('thing.happened', ({ text }) => note('receives ' + text))",
      },
      giving: {
        manifest: { points: ['thing.parts'] },
        activate: `
        host.on('daemon.ready', () => note('is told that the daemon is ready'))
        host.contribute('thing.parts', () => 'a part')`,
      },
      failing: {
        manifest: { points: ['thing.parts'] },
        activate: "throw new Error('no disk')",
      },
    })
    const { kernel, logged } = await daemonWith(t, [], { manifests })
    t.same(notes, [])
    kernel.events.emit('thing.happened', { text: 'once' })
    t.same(await kernel.events.collect('thing.parts'), ['a part'], 'without the groups that failed')
    await t.resolves(kernel.events.collect('thing.parts'))
    t.ok(notes.includes('listening receives once'))
    t.equal(notes.filter(note => note === 'giving is told that the daemon is ready').length, 1)
    t.match(logged.join(''), /failing cannot start: no disk/)
  },
)

t.test('groups that need each other to start are refused, and neither blocks the other', async t => {
  const calling = (other: string) => ({
    manifest: { calls: [], permissions: { daemon: [], late: [`GET /${other}`] } },
    activate: '',
  })
  const { manifests } = madeGroups(t, {
    a: {
      manifest: { ...calling('b').manifest, routes: { 'GET /a': open('a.get') } },
      activate: `
        await host.call('GET /b')
        await serve({ 'GET /a': () => ({ ok: true }) })`,
    },
    b: {
      manifest: { ...calling('a').manifest, routes: { 'GET /b': open('b.get') } },
      activate: `
        const found = await host.call('GET /a').catch(error => error.message)
        await serve({ 'GET /b': () => ({ found }) })`,
    },
  })
  const daemon = await daemonWith(t, [], { manifests })
  t.equal((await daemon.fetch('/a')).status, 200)
  t.same(await (await daemon.fetch('/b')).json(), { found: 'a is not started yet, and needs b to start' })
})

t.test('callers of a failed start get its reason, and the next call tries again', async t => {
  const { manifests, notes } = madeGroups(t, {
    shaky: {
      manifest: { routes: { 'GET /shaky': open('shaky.get') } },
      activate: `
        note('starts')
        host.signal.addEventListener('abort', () => note('is switched off'))
        globalThis.shakyStarts = (globalThis.shakyStarts ?? 0) + 1
        if (globalThis.shakyStarts === 1) throw new Error('no key')
        await serve({ 'GET /shaky': () => ({ ok: true }) })`,
    },
    fine: {
      manifest: { routes: { 'GET /fine': open('fine.get') } },
      activate: "await serve({ 'GET /fine': () => ({ ok: true }) })",
    },
    cramped: {
      manifest: { routes: { 'GET /cramped': open('cramped.get') } },
      activate: "throw Object.assign(new Error('ENOSPC: no space left on device, mkdir'), { code: 'ENOSPC' })",
    },
    wrong: {
      manifest: { routes: { 'GET /wrong': open('wrong.get') }, calls: ['wrong.never'] },
      activate: "await serve({ 'GET /wrong': () => ({ ok: true }) })",
    },
  })
  const daemon = await daemonWith(t, [], { manifests })
  const first = await daemon.fetch('/shaky')
  t.equal(first.status, 503)
  t.match(await first.json(), { reason: 'unavailable', message: 'shaky cannot start: no key' })
  t.same(notes, ['shaky is read', 'shaky starts', 'shaky is switched off'], 'nothing of it keeps running')
  t.equal((await daemon.fetch('/fine')).status, 200, 'other groups answer')
  t.equal((await daemon.fetch('/shaky')).status, 200)
  t.equal(notes.filter(note => note === 'shaky starts').length, 2)
  const cramped = await daemon.fetch('/cramped')
  t.equal(cramped.status, 413, 'a full disk is refused as by a group that runs')
  t.match(await cramped.json(), { message: /^cramped cannot start: the disk is full .* free some space/ })
  t.match(await (await daemon.fetch('/wrong')).json(), {
    message: 'wrong cannot start: its manifest names wrong.never, which it does not serve',
  })
})

t.test('a group with boot starts with the daemon, and one that cannot start stops the start by name', async t => {
  const good = madeGroups(t, { early: { manifest: { boot: true }, activate: "note('starts')" } })
  await daemonWith(t, [], { manifests: good.manifests })
  t.same(good.notes, ['early is read', 'early starts'])
  await t.test('which fails', async t => {
    const { manifests } = madeGroups(t, {
      early: { manifest: { boot: true }, activate: "throw new Error('no key')" },
    })
    await t.rejects(daemonWith(t, [], { manifests }), { message: 'early cannot start: no key' })
  })
  await t.test('a group that needs a missing call', async t => {
    const { manifests } = madeGroups(t, {
      early: { manifest: { permissions: { daemon: ['GET /nothing'], late: [] } }, activate: '' },
    })
    await t.rejects(daemonWith(t, [], { manifests }), {
      message: 'early cannot start: nothing serves GET /nothing, which its manifest needs',
    })
  })
})

t.test('a group with boot "used" starts with the daemon once it ran in the data folder', async t => {
  const { manifests, notes } = madeGroups(t, {
    storing: {
      manifest: { boot: 'used', routes: { 'GET /storing': open('storing.get') } },
      activate: "note('starts'); await serve({ 'GET /storing': () => ({ ok: true }) })",
    },
  })
  const first = await daemonWith(t, [], { manifests })
  t.same(notes, [], 'not in a new folder')
  t.equal((await first.fetch('/storing')).status, 200)
  await first.stop()
  notes.length = 0
  await daemonWith(t, [], { manifests, data: first.data, workspace: first.workspace })
  t.same(notes, ['storing starts'])
})

t.test('groups stop in parallel, before those they need, and none can be started any more', async t => {
  const stopping =
    "host.stopping(async () => { note('begins'); await new Promise(r => setTimeout(r, 30)); note('ends') })"
  const { manifests, notes } = madeGroups(t, {
    base: {
      manifest: { boot: true, calls: ['base.work'] },
      activate: `${stopping}; await serve({ 'base.work': () => ({ ok: true }) })`,
    },
    one: { manifest: { boot: true, permissions: { daemon: ['base.work'], late: [] } }, activate: stopping },
    two: { manifest: { boot: true, permissions: { daemon: ['base.work'], late: [] } }, activate: stopping },
    late: { manifest: { calls: ['late.work'] }, activate: "await serve({ 'late.work': () => ({ ok: true }) })" },
  })
  const { stop, kernel } = await daemonWith(t, [], { manifests })
  notes.length = 0
  await stop()
  t.same(notes, ['one begins', 'two begins', 'one ends', 'two ends', 'base begins', 'base ends'])
  await t.rejects(kernel.calls.answer('late.work', {}, CONTEXT), { message: 'the sandbox is stopping' })
})

t.test('a daemon that is ready starts only groups that ran before; others are told once they start', async t => {
  const { manifests, notes } = madeGroups(t, {
    resuming: {
      manifest: { events: ['daemon.ready'], routes: { 'GET /resuming': open('resuming.get') } },
      activate: `
        host.on('daemon.ready', () => note('goes on'))
        await serve({ 'GET /resuming': () => ({ ok: true }) })`,
    },
  })
  const first = await daemonWith(t, [], { manifests })
  t.same(notes, [])
  await first.fetch('/resuming')
  t.same(notes, ['resuming is read', 'resuming goes on'], 'once')
  await first.stop()
  const { workspace, data } = first
  const next = await daemonWith(t, [], { manifests, workspace, data })
  await next.groups[0]!.start()
  t.same(notes.slice(2), ['resuming goes on'])
})

t.test('unused groups are not loaded, and each starts with its first call', async t => {
  const many = Object.fromEntries(
    Array.from({ length: 36 }, (_, group) => {
      const calls = Array.from({ length: 10 }, (_, call) => `GET /group-${group}/part-${call}`)
      return [
        `group-${group}`,
        {
          manifest: {
            routes: Object.fromEntries(calls.map((call, at) => [call, open(`group-${group}.part${at}`)])),
            permissions: NOBODY,
          },
          activate: `await serve(Object.fromEntries(${JSON.stringify(calls)}.map(call => [call, () => ({ call })])))`,
        },
      ]
    }),
  )
  const { manifests, notes } = madeGroups(t, many)
  const daemon = await daemonWith(t, [], { manifests })
  t.same(notes, [])
  t.same(await (await daemon.fetch('/group-7/part-3')).json(), { call: 'GET /group-7/part-3' })
  t.same(notes, ['group-7 is read'])
  t.equal((await daemon.fetch('/group-7/part-10')).status, 404)
  const described: Host['id'][] = daemon.groups.filter(({ started }) => started).map(({ manifest }) => manifest.name)
  t.same(described, ['group-7'])
})
