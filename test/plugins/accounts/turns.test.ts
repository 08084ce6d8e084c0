import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { accessViewWith } from '../../../sdk/node/access/access-view.js'
import { cardFor } from '../../../sdk/node/access/card-view.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { startAccountServer } from '../../support/servers/account-server.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { inner } from '../capabilities/support.js'
import { accountWorld, rowsOf, type AccountWorld } from './support.js'

const acme = { provider: 'acme' } as const
const GROUPS = ['accounts', 'agent', 'agents', 'providers', 'settings']

const world = (t: Test, more: { [field: string]: unknown } = {}) => accountWorld(t, { groups: GROUPS, acme: more })

const turn = ({ daemon }: AccountWorld, conversationId: string, options: object = {}): Promise<Frame[]> =>
  runTurn(daemon.client, conversationId, 'hello', { agent: 'acme', ...options })

const signIn = async ({ call, server }: AccountWorld, email: string): Promise<void> => {
  const { url } = await call('POST /accounts/{provider}/login/start', { ...acme, flow: 'redirect' })
  await fetch(await server.approve(url, email))
}

t.test('a turn runs on an account, and its conversation stays there', async t => {
  const windows = [{ kind: 'week', percent: 'x-week-used', resetsAt: 'x-week-opens' }]
  const it = await world(t, { limits: { from: 'headers', windows } })
  const first = await it.key()
  const frames = await turn(it, 'one')
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { provider: 'acme', account: first.id, model: 'm' },
  )
  t.match(frames.at(-1), { kind: 'done' })
  t.notOk(
    frames.some(({ kind }) => kind === 'error'),
    JSON.stringify(frames),
  )
  await until(async () => (await rowsOf(it))[0]?.usage !== undefined)
  t.match(await rowsOf(it), exactly({ usage: { windows: exactly({ kind: 'week', utilization: 42 }) } }))
  t.match(
    frames.find(({ kind }) => kind === 'account_usage'),
    { account: first.id, windows: exactly({ kind: 'week', utilization: 42 }) },
  )
  const card = await it.call('GET /agents/{id}', { id: 'one' })
  t.match(card, { account: first.id, placement: { kind: 'local' } })
  const everything = accessViewWith(it.daemon.workspace, undefined)
  t.notOk('account' in cardFor({ ...everything, isToken: true }, card), 'a token sees no account')
  t.equal(cardFor(everything, card).account, first.id)
  const second = await it.key([...it.server.keys][1]!)
  await it.call('POST /accounts/{provider}/disconnect', { ...acme, id: first.id })
  t.match(
    (await turn(it, 'one')).find(({ kind }) => kind === 'init'),
    { account: second.id },
    'its account is gone',
  )
  const third = await it.key([...it.server.keys][0]!)
  t.match(
    (await turn(it, 'one')).find(({ kind }) => kind === 'init'),
    { account: second.id },
    'it stays',
  )
  t.match(
    (await turn(it, 'two', { account: third.id })).find(({ kind }) => kind === 'init'),
    { account: third.id },
  )
  await it.call('POST /agent/switch-account', { conversationId: 'one', account: third.id })
  t.match(
    (await turn(it, 'one')).find(({ kind }) => kind === 'init'),
    { account: third.id },
    'it was switched',
  )
  const unknown = { conversationId: 'three', prompt: 'x', agent: 'acme', account: 'nobody' }
  t.match(await refusalOf(() => it.call('POST /agent', unknown)), { status: 422, message: /no account/ })
})

t.test('limits by the minute are shown with the account, and are no allowance', async t => {
  const it = await world(t)
  it.server.script.headers = {
    ...{
      'x-ratelimit-limit-requests': '10',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '1s',
    },
    ...{ 'x-ratelimit-limit-tokens': '1000', 'x-ratelimit-remaining-tokens': '250', 'x-ratelimit-reset-tokens': '30s' },
  }
  await it.key()
  await turn(it, 'one')
  await until(async () => (await rowsOf(it))[0]?.rates !== undefined)
  const [row] = await rowsOf(it)
  t.match(row!.rates, exactly({ kind: 'requests', utilization: 100 }, { kind: 'tokens', utilization: 75 }))
  t.equal(row!.usage, undefined)
  t.match(
    (await it.call('GET /accounts/{provider}/limits', acme)).limits,
    exactly({ standing: 'unmeasured', room: 100 }),
  )
  it.server.script.headers = {}
  const frames = await turn(it, 'two')
  t.match(
    frames.filter(({ kind }) => kind === 'notice'),
    exactly({ text: /^waiting \d s: then the provider allows more requests again$/ }),
    'another conversation on the account waits too',
  )
  await until(async () => (await rowsOf(it))[0]?.rates?.length === 1)
})

t.test('a refused token is renewed within the turn; what cannot be renewed ends it', async t => {
  const it = await world(t)
  await signIn(it, 'ada@example.org')
  await turn(it, 'one')
  it.server.script.refuses.set(it.server.used.at(-1)!, { status: 401, body: { error: { message: 'token expired' } } })
  const frames = await turn(it, 'one')
  t.notOk(
    frames.some(({ kind }) => kind === 'error'),
    JSON.stringify(frames),
  )
  it.server.script.refuses.set(it.server.used.at(-1)!, { status: 401, body: { error: { message: 'token expired' } } })
  it.server.script.answers = [{ status: 400, body: { error: 'invalid_grant', error_description: 'it was ended' } }]
  t.match(
    (await turn(it, 'one')).find(({ kind }) => kind === 'error'),
    { code: 'reauth', message: /it was ended/ },
  )
  t.match(await rowsOf(it), exactly({ needsReauth: true }))
})

t.test('single answers come from an account too, and one that cannot serve is named', async t => {
  const it = await world(t)
  const completes = () => inner(it.daemon, 'agent.completes', { models: [] })
  const complete = (models: string[]) =>
    inner(it.daemon, 'agent.complete', { models, system: 'be short', prompt: 'a title', timeoutMs: 5000 })
  t.match(await completes(), { available: false, reason: /an account of a provider/ })
  await it.key()
  t.match(await completes(), { available: true, model: 'acme:m' })
  const { text, model } = await complete([])
  t.ok(text.length > 0)
  t.equal(model, 'acme:m')
  t.match(await complete(['endpoint/none:x', 'acme:m']), { model: 'acme:m' })
  await t.rejects(complete(['other:m']), { message: /none of other:m is connected/ })
  const body = { error: { message: 'no such seat' } }
  it.server.script.refuses.set([...it.server.keys][0]!, { status: 403, body })
  await t.rejects(complete([]), { message: /no such seat/ })
  await until(async () => !(await completes()).available)
  t.match(await it.call('GET /accounts/{provider}/limits', acme), { limits: exactly({ standing: 'refused' }) })
})

t.test('a loop runs on the account that it names, and an automation names one that is connected', async t => {
  const it = await accountWorld(t, { groups: [...GROUPS, 'automations', 'loops'] })
  await it.key()
  const { id } = await it.key([...it.server.keys][1]!)
  const named = { agent: 'acme', account: id }
  await it.call('POST /loops', {
    ...{ conversationId: 'looped', goal: 'g', prompt: 'hello', isolated: false },
    ...{ context: 'continue', maxIterations: 1, stallLimit: 1, ...named },
    ...{ output: { kind: 'none' }, checks: [{ kind: 'command', command: 'true' }] },
  })
  t.match(
    (await framesOf(it.daemon.client, 'looped').all()).find(({ event }) => event.kind === 'init'),
    { event: { account: id } },
  )
  const automation = {
    ...{ id: 'nightly', name: 'Nightly', enabled: true },
    trigger: { kind: 'schedule', cron: '0 3 * * *' },
    ...{ prompt: 'hello', ...named },
  } as const
  t.same(await it.call('POST /automations', automation), { ok: true })
  t.match(await refusalOf(() => it.call('POST /automations', { ...automation, account: 'nobody' })), {
    status: 422,
    message: /ACME has no account "nobody"/,
  })
})

t.test('a refused key is a refusal of its account, which falls when a turn runs on it', async t => {
  const it = await world(t, { refusals: [{ match: 'seat is switched off', kind: 'entitlement' }] })
  const { id } = await it.key()
  const key = [...it.server.keys][0]!
  it.server.script.refuses.set(key, {
    status: 403,
    body: { error: { message: `the seat is switched off for ${key}` } },
  })
  const error = (await turn(it, 'one')).find(({ kind }) => kind === 'error')
  t.match(error, { code: 'token-refused', message: /refused the account ACME 1 \(403\).*seat is switched off/ })
  t.match(await it.call('GET /agent/refusals'), { refusals: { acme: { kind: 'auth', account: id } } })
  const token = (await it.daemon.token('read')).client
  t.notOk('account' in (await token.call('GET /agent/refusals')).refusals.acme!, 'tokens see no account')
  const limits = () => it.call('GET /accounts/{provider}/limits', acme)
  await until(async () => (await limits()).refusal !== undefined)
  t.match(await limits(), { limits: exactly({ standing: 'refused', refusal: { kind: 'entitlement' } }) })
  const row = async () => (await it.call('GET /providers')).providers.find(each => each.id === 'acme')
  t.match(await row(), { ready: 'refused', detail: /switched off/, accounts: 1 })
  t.match(await rowsOf(it), exactly({ id, detail: /switched off/ }))
  it.server.script.refuses.clear()
  await turn(it, 'one')
  await until(async () => (await row())?.ready === 'yes')
  t.match(
    it.recorded.filter(({ type }) => type === 'account.refused'),
    exactly({ extra: { kind: 'entitlement' } }),
  )
})

t.test('a used-up limit ends the turn with the time it opens, and the next account serves', async t => {
  const it = await world(t)
  const [first, second] = [await it.key(), await it.key([...it.server.keys][1]!)]
  const body = { error: { message: 'the week is used up' } }
  it.server.script.refuses.set([...it.server.keys][0]!, { status: 429, body, headers: { 'retry-after': '3600' } })
  const error = (await turn(it, 'one', { account: first.id })).find(({ kind }) => kind === 'error')
  t.match(error, { code: 'rate_limit', message: /used up/ })
  const { limits, next } = await it.call('GET /accounts/{provider}/limits', acme)
  t.equal(next, second.id)
  t.match(limits, exactly({ account: second.id }, { account: first.id, standing: 'spent', room: 0 }))
  t.ok(Math.abs(limits[1]!.reopensAt! - Date.now() - 3_600_000) < 60_000)
  t.match(
    (await turn(it, 'two')).find(({ kind }) => kind === 'init'),
    { account: second.id },
  )
})

t.test('a provider without an account says so, and with one it is ready and asked for its models', async t => {
  const it = await world(t)
  const row = async () => (await it.call('GET /providers')).providers.find(each => each.id === 'acme')
  t.match(await row(), { ready: 'no-account', accounts: 0 })
  t.match(
    (await turn(it, 'one')).find(({ kind }) => kind === 'error'),
    { message: /no account of ACME is connected/ },
  )
  const before = it.published.length
  const { id } = await it.key()
  t.match(await row(), { ready: 'yes', accounts: 1 })
  t.ok(
    it.published.slice(before).some(args => args.includes('"providers"')),
    'watchers of providers know',
  )
  const models = (more: object = {}) => it.call('GET /providers/{provider}/models', { ...acme, ...more })
  t.match(await models(), { source: 'live', models: exactly({ id: 'm' }, { id: 'n' }) })
  t.match(await models({ account: id }), { models: exactly({ id: 'm' }, { id: 'n' }) })
  t.match(await refusalOf(() => models({ account: 'nobody' })), { status: 404 })
  t.match(await it.call('GET /providers/models', { ready: '1', provider: 'acme' }), { total: 2 })
})

t.test('a provider that is reached through a program which is missing says how to install it', async t => {
  const server = await startAccountServer(t)
  const it = await accountWorld(t, {
    server,
    acme: { serving: 'routed', harness: { program: 'acme-agent-that-is-not-here', install: 'npm i -g acme-agent' } },
  })
  await it.key()
  t.match(
    (await it.call('GET /providers')).providers.find(({ id }) => id === 'acme'),
    {
      ready: 'missing-program',
      detail: /acme-agent-that-is-not-here is not installed: npm i -g acme-agent/,
    },
  )
  writeFileSync(join(it.folder, 'definitions', 'acme.json'), JSON.stringify(server.definition('acme')))
  await until(async () => (await it.call('GET /providers')).providers.some(({ ready }) => ready === 'yes'))
})

t.test('the inventory of secrets names accounts, and reveals none', async t => {
  const it = await accountWorld(t, { groups: ['accounts', 'providers', 'secrets'] })
  const { id } = await it.key()
  const { entries } = await it.call('GET /secrets/inventory')
  t.match(entries, exactly({ key: `acme/${id}`, kind: 'provider', label: 'ACME 1', revealable: false }))
})
