import t from 'tap'
import { MODEL_ROLES } from '../../../plugins/settings/models/ladder.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { startAccountServer } from '../../support/servers/account-server.js'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'
import { accountWorld } from '../accounts/support.js'
import { inner } from '../capabilities/support.js'

const GROUPS = [
  'accounts',
  'agent',
  'agents',
  'capabilities',
  'endpoints',
  'personas',
  'providers',
  'secrets',
  'settings',
  'skills',
]
const server = await startAccountServer(t)
const prices = { models: { builtIn: [{ id: 'm', label: 'M' }], prices: { m: { input: 1, output: 2 } } } }
const it = await accountWorld(t, {
  ...{ server, groups: GROUPS },
  others: { beta: server.definition('beta', prices), gamma: server.definition('gamma') },
})
const { daemon, call } = it
const [first, second] = [...server.keys] as [string, string]
const rows = async () => (await call('GET /settings/models')).roles
const row = async (role: string) => (await rows()).find(each => each.role === role)!
const complete = (role?: string) =>
  inner(daemon, 'agent.complete', {
    ...{ models: [], system: 'be short', prompt: 'a title', timeoutMs: 10_000 },
    ...(role !== undefined && { role }),
  })
const save = (set: object) => call('POST /settings/patch', { set })

t.test('every automatic job has a row, and a role that is none is refused', async t => {
  t.same(
    (await rows()).map(({ role }) => role),
    MODEL_ROLES,
  )
  t.match(await row('quickModel'), { from: 'none', configured: exactly(), resolved: exactly() })
  t.match(await row('loop-iteration'), { from: 'composer', resolved: exactly() })
  t.match(await refusalOf(() => inner(daemon, 'models.ladder', { role: 'nobody' })), { status: 422 })
})

t.test('without a list what is connected is tried, the cheapest first', async t => {
  await it.key(first)
  const beta = { provider: 'beta' } as const
  const { handshake } = await call('POST /accounts/{provider}/login/start', { ...beta, flow: 'key' })
  await call('POST /accounts/{provider}/login/finish', { ...beta, handshake, key: second })
  t.match(await row('safety-judge'), {
    from: 'auto',
    resolved: exactly({ provider: 'beta', model: 'm', usable: true }, { provider: 'acme', model: 'm', usable: true }),
  })
  t.match(await complete('safety-judge'), { model: 'beta:m' })
  t.equal(server.used.at(-1), second)
})

t.test('a rung whose account is spent is named with the reason, and the next job runs on the next one', async t => {
  await save({ quickModel: ['gamma:m', 'acme:m', 'beta:other', 'beta:m'] })
  const body = { error: { message: 'the week is used up' } }
  server.script.refuses.set(first, { status: 429, body, headers: { 'retry-after': '3600' } })
  await runTurn(daemon.client, 'spends', 'hello', { agent: 'acme' })
  await until(async () => (await row('quickModel')).resolved[1]?.usable === false)
  t.match(await row('quickModel'), {
    from: 'list',
    resolved: exactly(
      { provider: 'gamma', usable: false, reason: /no account/ },
      { provider: 'acme', usable: false, reason: /used up|reopens|spent|limit/i },
      { provider: 'beta', model: 'other', usable: false, reason: 'it does not offer other' },
      { provider: 'beta', model: 'm', usable: true },
    ),
  })
  const asked = server.used.length
  t.match(await complete(), { model: 'beta:m' })
  t.same(server.used.slice(asked), [second], 'nobody else was asked')
  t.match(await inner(daemon, 'agent.completes', { models: [] }), { available: true, model: 'beta:m' })
  server.script.refuses.clear()
})

t.test('a new conversation that starts by itself runs on the first model that can be used', async t => {
  await save({ agentRunModels: ['gamma:m', 'beta:m'], agentRunEffort: 'high' })
  const init = async (id: string, options: object) =>
    (await runTurn(daemon.client, id, 'say hi', options)).find(({ kind }) => kind === 'init')
  t.match(await init('alone', { unattended: true }), { provider: 'beta', model: 'm' })
  t.match(await init('role', { runRole: 'loop-iteration' }), { provider: 'beta' })
  t.match(await init('named', { unattended: true, agent: 'script' }), { provider: 'script' })
  t.match(await init('person', { agent: 'script' }), { provider: 'script' })
  t.match(await init('person', { unattended: true }), { provider: 'script' }, 'it stays on its model')
  t.match(await row('loop-iteration'), { from: 'list', configured: exactly('gamma:m', 'beta:m') })
  const ladder = await inner(daemon, 'models.ladder', { role: 'loop-iteration' })
  t.equal(ladder.effort, 'high')
  await call('POST /settings', {})
})

t.test('custom instructions reach the model, unless the persona says what its turns start from', async t => {
  const models = await modelServer(t, 'openai', ({ text }) =>
    text ? { text: ['done'] } : { status: 200, body: '{"data":[{"id":"m"}]}' },
  )
  await call('POST /endpoints', { id: 'local', kind: 'server', protocol: 'openai', baseUrl: models.address })
  const system = async (id: string, options: object = {}) => {
    await runTurn(daemon.client, id, 'hello', { agent: 'endpoint/local', ...options })
    return models.told(-1)
  }
  t.match(await system('usual'), /You are a coding agent/)
  const rule = {
    id: 'more',
    label: 'More',
    moment: 'turn.ending',
    action: { kind: 'instruct', text: 'Tidy up.' },
  } as const
  await save({ rules: [rule] })
  const asked = models.requests.length
  t.match(await system('round'), /hello.*done.*Tidy up\./, 'a round of a rule goes on in the session of the model')
  t.equal(models.requests.length, asked + 2)
  await save({ rules: [] })
  await save({ systemPrompt: 'Speak like a pirate.' })
  t.notMatch(await system('unused'), /pirate/, 'the mode is core')
  await save({ systemPromptMode: 'custom' })
  const custom = await system('usual')
  t.match(custom, /Speak like a pirate/)
  t.notMatch(custom, /You are a coding agent/)
  await call('POST /personas', { id: 'plain', capabilities: [], systemPromptMode: 'core' })
  t.notMatch(await system('worn', { actsAs: 'plain' }), /pirate/)
  await call('POST /personas', { id: 'open', capabilities: [] })
  t.match(await system('open', { actsAs: 'open' }), /pirate/)
})
