import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { walled } from '../../attack/support.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { add, capabilitiesDaemon, inner, vaultFake } from './support.js'

const github = { id: 'git-hub', kind: 'cli', config: { provider: 'github', token: 'ghp-value-of-it' } } as const

t.test('the token of a tool is a variable of turns, and is shown nowhere', async t => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  const frames = await add(daemon, github)
  t.match(frames[0], { kind: 'log', message: 'programs find it as GITHUB_TOKEN_GIT_HUB' })
  t.match(frames.at(-1), { kind: 'result' })
  t.same(await inner(daemon, 'env.variables', { conversationId: 'c' }), {
    variables: { GITHUB_TOKEN_GIT_HUB: 'ghp-value-of-it' },
  })
  t.same(await inner(daemon, 'env.variables', { conversationId: 'c', capabilities: [] }), { variables: {} })
  t.same([...vault.values], [['git-hub/token', 'ghp-value-of-it']])
  const { capabilities } = await daemon.client.call('GET /capabilities')
  t.match(capabilities, exactly({ card: 'github', label: 'GitHub', secrets: exactly('token') }))
  const file = readFileSync(join(daemon.workspace, '.sandbox/config/capabilities.json'), 'utf8')
  t.notMatch(JSON.stringify([frames, capabilities, daemon.logged, file]), /ghp-value/)
  t.same(await daemon.client.call('DELETE /capabilities/{id}', { id: 'git-hub' }), { ok: true })
  t.same(await inner(daemon, 'env.variables', { conversationId: 'c' }), { variables: {} })
})

t.test('of two forges the shell of a turn knows the one that its persona names', walled(), async t => {
  const groups = ['agent', 'agents', 'capabilities', 'personas', 'settings', 'skills']
  const daemon = await daemonWith(t, groups, { fakes: vaultFake().fakes })
  for (const name of ['a', 'b'])
    await add(daemon, {
      id: `forge-${name}`,
      kind: 'cli',
      config: { provider: 'github', token: `ghp-value-of-${name}` },
    })
  await daemon.client.call('POST /personas', { id: 'speaks-a', capabilities: ['forge-a'] })
  const command = 'run for each in A B; do eval "echo $each has \\${#GITHUB_TOKEN_FORGE_$each} characters"; done'
  const said = async (id: string, more: object) => JSON.stringify(await runTurn(daemon.client, id, command, more))
  t.match(await said('all', {}), /A has 14 characters\\nB has 14 characters/)
  t.match(await said('one', { actsAs: 'speaks-a' }), /A has 14 characters\\nB has 0 characters/)
})

t.test('a tool whose program is missing is pending, and its variables are there', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const frames = await add(daemon, {
    id: 'tea',
    kind: 'cli',
    config: { provider: 'gitea', url: 'https://git.example.org', token: 'abc-def' },
  })
  t.match(frames.at(-1), {
    kind: 'result',
    status: { state: 'pending', code: 'rebuild', detail: /tea is not installed/ },
  })
  t.same(await inner(daemon, 'env.variables', { conversationId: 'c' }), {
    variables: { GITEA_TOKEN_TEA: 'abc-def', GITEA_URL_TEA: 'https://git.example.org' },
  })
})

t.test('what does not fit a card is refused by name', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const bad: [config: object, status: number, message: RegExp][] = [
    [{}, 400, /provider/],
    [{ provider: 'nobody' }, 404, /there is no card "nobody"/],
    [{ provider: 'github' }, 400, /config\.token: expected a value/],
    [{ provider: 'github', token: 'a\nb' }, 400, /config\.token: expected one line/],
    [{ provider: 'github', token: 'a', host: 'https://github.com' }, 400, /config\.host/],
    [{ provider: 'github', token: 'a', colour: 'red' }, 400, /config\.colour: expected only provider, token, host/],
    [{ provider: 'forgejo', token: 'a' }, 400, /config\.url/],
    [{ provider: 'forgejo', token: 'a', url: 'nowhere' }, 400, /url/],
    [{ provider: 'token', token: 'a', name: 'lower' }, 400, /config\.name/],
    [{ provider: 'token', token: 'a', name: 'LD_PRELOAD' }, 400, /config\.name/],
    [{ provider: 'github', token: '__vaulted__' }, 422, /none is stored/],
  ]
  for (const [config, status, message] of bad) {
    const body = JSON.stringify({ id: 'x', kind: 'cli', config })
    const response = await daemon.fetch('/capabilities', { method: 'POST', body })
    t.equal(response.status, status, body)
    t.match(await response.json(), { message }, body)
  }
})

t.test('another kind under the same id is refused, and the first stays', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  await add(daemon, github)
  const body = JSON.stringify({ id: 'git-hub', kind: 'agent', config: { command: 'node' } })
  t.equal((await daemon.fetch('/capabilities', { method: 'POST', body })).status, 409)
  t.match((await daemon.client.call('GET /capabilities')).capabilities, exactly({ kind: 'cli' }))
})

t.test('the catalogue is for all readers, and the connected capabilities are for maintainers', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  t.equal((await fetch(`${daemon.url}/capabilities/catalog`)).status, 401)
  const editor = await daemon.token('editor')
  t.equal(
    (await fetch(`${daemon.url}/capabilities/catalog`, { headers: { 'x-sandbox-control': editor.token } })).status,
    403,
  )
  await add(daemon, github)
  const { cards, categories } = await daemon.client.call('GET /capabilities/catalog')
  t.match(
    cards.find(({ id }) => id === 'github'),
    { connected: true, instances: exactly('git-hub') },
  )
  t.ok(cards.every(({ category }) => categories.some(({ id }) => id === category)))
  const { client } = await daemon.token('read')
  t.match(
    (await client.call('GET /capabilities/catalog')).cards.find(({ id }) => id === 'github'),
    {
      connected: false,
      instances: exactly(),
    },
  )
})

t.test('tools are refused without a credential, with a token, and where there are none', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const { token } = await daemon.token('land')
  const path = `${daemon.url}/capabilities/git-hub/tools`
  t.equal((await fetch(path)).status, 401)
  t.equal((await fetch(path, { headers: { 'x-sandbox-control': token } })).status, 403)
  t.equal((await daemon.fetch('/capabilities/git-hub/tools')).status, 404)
  t.equal((await daemon.fetch('/capabilities/git-hub/tools?refresh=maybe')).status, 400)
  await add(daemon, github)
  t.equal((await daemon.fetch('/capabilities/git-hub/tools')).status, 409)
})
