import t from 'tap'
import type { ForgeHost } from '../../../plugins/pipelines/contract.js'
import { ForgeClient, ForgeGate } from '../../../plugins/pipelines/forges/client.js'
import { dialectOf, type MappedRepo } from '../../../plugins/pipelines/forges/mapped-repos.js'
import { workflowRun } from '../../../plugins/pipelines/forges/workflow-runs.js'
import { HookRegistrar } from '../../../plugins/pipelines/hooks/registering.js'
import { Results } from '../../../plugins/pipelines/results/results.js'
import { Watching } from '../../../plugins/pipelines/results/watching.js'
import { OwnTokens } from '../../../sdk/node/access/own-tokens.js'
import { beginning } from '../../support/lists.js'
import { PROJECT, TestForge, TOKEN, type Refusing } from './forge-server.js'

/** A repository at a forge of the tests, watched by a clock that the test moves. */
const watched = async (t: Parameters<TestForge['listen']>[0], host: ForgeHost) => {
  const forge = await new TestForge(host, '127.0.0.1').listen(t)
  const gate = new ForgeGate()
  const site = new URL(`https://127.0.0.1:${forge.port}`)
  const dialect = dialectOf(host)!
  const { signal } = new AbortController()
  const reach = { near: true, listeners: [] }
  const mapped: MappedRepo = {
    ...{ repo: 'shop', host, project: PROJECT, url: site.href, account: host, dialect, site },
    client: () => new ForgeClient({ dialect, site, token: TOKEN, reach, gate, signal }),
  }
  const stored = new Map<string, unknown>()
  const events: string[] = []
  const state = { now: Date.now() }
  const openResults = () => {
    const results = new Results({
      host: { store: { set: async (key: string, value: unknown) => void stored.set(key, value) } as never },
      changed: () => {},
      pending: () => {
        const found = results.of(mapped)!.pending
        events.splice(0, events.length, ...found.map(({ type }) => type))
      },
      now: () => state.now,
    })
    results.load(structuredClone([...stored]))
    return results
  }
  const watching = (results = openResults()) =>
    new Watching({
      host: { signal, log: { info: () => {}, warn: () => {}, error: () => {} } },
      ...{ results, changed: () => {}, now: () => state.now },
    })
  return { forge, mapped, openResults, watching, events, state }
}

const asks = ({ requests }: TestForge): number => requests.filter(({ url }) => /(?:runs|pipelines)\?/.test(url)).length

t.test('all pages of a forge are read, and later only what is new', async t => {
  for (const host of ['github', 'gitlab', 'forgejo', 'gitea'] as const) {
    const { forge, mapped, openResults, watching, state } = await watched(t, host)
    for (let at = 0; at < 230; at++) forge.add('success')
    const results = openResults()
    const watch = watching(results)
    await watch.poll(mapped, false)
    t.equal(watch.of(mapped).error, undefined)
    t.match(results.of(mapped)?.runs, beginning({ runId: 330 }))
    t.equal(results.of(mapped)?.runs.length, 200, host)
    const before = asks(forge)
    await watch.poll(mapped, false)
    await watch.fresh(mapped)
    t.equal(asks(forge), before, 'it was just asked')
    state.now += 115_000
    await watch.poll(mapped, false)
    t.ok(asks(forge) - before <= 2, 'one page has everything new')
  }
})

t.test('a forge that refuses has its words in its row, and is asked later each time', async t => {
  const { forge, mapped, watching, state } = await watched(t, 'github')
  forge.add('failed')
  const watch = watching()
  const reset = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(Math.floor(Date.now() / 1000) + 600) }
  const refusals: [Refusing, RegExp][] = [
    [{ status: 401 }, /refused \(401\): not now/],
    [{ status: 500 }, /refused \(500\)/],
    [{ status: 403, headers: reset }, /refused \(403\)/],
  ]
  for (const [refusing, words] of refusals) {
    forge.refusing = refusing
    const before = asks(forge)
    await watch.poll(mapped, false)
    t.equal(asks(forge), before + 1)
    t.match(watch.of(mapped).error, words)
    state.now += 115_000
    await watch.poll(mapped, false)
    t.equal(asks(forge), before + 1, 'a forge that failed waits longer than 2 minutes')
    state.now += 1_800_000
  }
  forge.refusing = undefined
  const before = asks(forge)
  await watch.poll(mapped, false)
  t.equal(asks(forge), before, 'it asked for a pause of ten minutes')
  t.match(watch.of(mapped).error, /asked for a pause/)
})

t.test('without reports a new failed run is an event once within two minutes, also over a restart', async t => {
  const { forge, mapped, openResults, watching, events, state } = await watched(t, 'gitlab')
  forge.add('failed', { branch: 'old' })
  forge.add('success')
  await watching().poll(mapped, false)
  t.same(events, [], 'the first look makes no event')
  t.same(openResults().waiting(), { waiting: [] }, 'and asks nobody to look')
  const run = forge.add('running')
  state.now += 115_000
  const results = openResults()
  const watch = watching(results)
  await watch.poll(mapped, false)
  run.status = 'failed'
  run.updatedAt += 60_000
  state.now += 115_000
  await watch.poll(mapped, false)
  t.same(events, ['pipeline_failed', 'pipeline_broken'])
  t.same(results.waiting(), { waiting: [{ within: 'shop', count: 1 }] })
  state.now += 115_000
  await watching(openResults()).poll(mapped, false)
  t.same(events, ['pipeline_failed', 'pipeline_broken'])
  t.same(await results.see(state.now), state.now)
  t.same(results.waiting(), { waiting: [] })
})

t.test('a branch breaks once and is fixed once, also with a restart between any two runs', async t => {
  const { forge, mapped, openResults, events } = await watched(t, 'github')
  for (const status of ['success', 'failed', 'failed', 'success'] as const) {
    const run = workflowRun(forge.written(forge.add(status)))!
    await openResults().take(mapped, [run], true)
    await openResults().take(mapped, [run], true)
  }
  t.same(events, ['pipeline_failed', 'pipeline_broken', 'pipeline_failed', 'pipeline_succeeded', 'pipeline_fixed'])
})

t.test('a webhook is registered where the sandbox has a public address, and gets every new secret', async t => {
  for (const host of ['github', 'gitlab', 'forgejo', 'gitea'] as const) {
    const { forge, mapped, openResults, state } = await watched(t, host)
    const results = openResults()
    const tokens = new OwnTokens({ set: async () => {}, delete: async () => {} }, () => state.now++)
    const recorded: string[] = []
    let url: string | undefined
    const registrar = new HookRegistrar({
      host: {
        signal: new AbortController().signal,
        log: { info: () => {}, warn: () => {}, error: () => {} },
        serves: async () => true,
        call: (async (_call: string, { type }: { type: string }) => void recorded.push(type)) as never,
      },
      mapped: { all: async () => [mapped] } as never,
      ...{ results, tokens, publicAddress: async () => url, changed: () => {}, now: () => state.now },
    })
    t.equal(registrar.deliveryOf(mapped), 'none')
    await registrar.check(mapped)
    t.equal(registrar.deliveryOf(mapped), 'poll')
    t.match(results.of(mapped)?.hookWarning, /no public address/)
    url = `https://sandbox.example.org/ci/webhook/${host}`
    await registrar.check(mapped)
    t.same(forge.hooks, [], 'it is checked every 10 minutes')
    state.now += 600_000
    forge.refusing = { status: 403 }
    await registrar.check(mapped)
    t.match(results.of(mapped)?.hookWarning, /refused \(403\).*by hand/)
    forge.refusing = undefined
    state.now += 600_000
    await registrar.check(mapped)
    t.equal(registrar.deliveryOf(mapped), 'hook')
    t.equal(results.of(mapped)?.hookWarning, undefined)
    const secretThere = () => forge.hooks.map(({ config }) => config['secret'] ?? config['token'])
    t.same(secretThere(), [tokens.of(host)!.token])
    await tokens.make(host)
    await registrar.rewrite(host)
    t.same(secretThere(), [tokens.of(host)!.token], 'the one webhook has the new secret')
    forge.hooks.splice(0)
    state.now += 600_000
    await registrar.check(mapped)
    t.same(secretThere(), [tokens.of(host)!.token], 'one that was removed there is made again')
    forge.refusing = { status: 403 }
    await tokens.make(host)
    await registrar.rewrite(host)
    t.equal(registrar.deliveryOf(mapped), 'poll')
    t.same(new Set(recorded), new Set(['ci.hook_registered', 'ci.hook_failed']))
  }
})
