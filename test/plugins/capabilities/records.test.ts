import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { agentKind } from '../../../plugins/capabilities/agents/agent-kind.js'
import type { Capability } from '../../../plugins/capabilities/contract.js'
import { OfferedCards } from '../../../plugins/capabilities/cards/offered-cards.js'
import { Kinds } from '../../../plugins/capabilities/kinds/kinds.js'
import { Capabilities } from '../../../plugins/capabilities/records/capabilities.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { add, capabilitiesDaemon, inner, program } from './support.js'
import { programFile } from '../../../sdk/node/programs/package.js'

const SCRIPT_AGENT = `node ${programFile('plugins/agent/providers/script-agent.js')}`
/** An agent program that only answers where a variable has a value. */
const picky = (daemon: Support): string =>
  program(
    daemon,
    'picky',
    `#!/bin/sh\n[ "$KEY" = right-key ] && exec ${SCRIPT_AGENT}\necho "wrong key: $KEY" >&2\nexit 1\n`,
  )

const FILE = '.sandbox/config/capabilities.json'
const kept = ({ workspace }: Support): { [id: string]: { kind: string; config: { [field: string]: unknown } } } =>
  JSON.parse(readFileSync(join(workspace, FILE), 'utf8'))
const write = ({ workspace }: Support, content: unknown): void => {
  mkdirSync(join(workspace, '.sandbox/config'), { recursive: true })
  writeFileSync(join(workspace, FILE), JSON.stringify(content))
}
const post = async (daemon: Support, path: string, body: unknown) => {
  const response = await daemon.fetch(path, { method: 'POST', body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as { message: string; errors?: { path: string }[] } }
}
const secretAgent = (command: string, env = 'KEY=right-key'): Capability => ({
  id: 'picky',
  kind: 'agent',
  config: { command, env },
})

const CALLS: [method: string, path: string, body?: object][] = [
  ['GET', '/capabilities'],
  ['POST', '/capabilities', { id: 'a', kind: 'agent', config: { command: 'true' } }],
  ['DELETE', '/capabilities/a'],
  ['POST', '/capabilities/a/rename', { to: 'b' }],
  ['POST', '/capabilities/a/secret', { value: 'x' }],
  ['GET', '/capabilities/a/status'],
  ['DELETE', '/capabilities/recommendations/mcp'],
]

t.test('without a credential, or with a control token, nothing is connected, changed or read', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const tokens = await Promise.all((['editor', 'read', 'drive', 'land'] as const).map(scope => daemon.token(scope)))
  for (const [method, path, body] of CALLS) {
    const init = { method, ...(body && { body: JSON.stringify(body) }) }
    const type = { 'content-type': 'application/json' }
    t.equal((await fetch(daemon.url + path, { ...init, headers: type })).status, 401, `${method} ${path}`)
    for (const { token } of tokens) {
      const headers = { ...type, 'x-sandbox-control': token }
      t.equal((await fetch(daemon.url + path, { ...init, headers })).status, 403, `${method} ${path}`)
    }
  }
  t.notOk(existsSync(join(daemon.workspace, FILE)))
})

t.test('invalid connections are refused by field, and nothing is written', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const agent = (config: object, id = 'a') => ({ id, kind: 'agent', config })
  const bad: [body: object, status: number, message: RegExp][] = [
    [agent({ command: 'node' }, 'a b'), 400, /^id: /],
    [agent({ command: 'node' }, ''), 400, /^id: /],
    [agent({ command: 'node' }, 'x'.repeat(61)), 400, /^id: /],
    [agent({ command: 'node' }, 'catalog'), 400, /reserved/],
    [agent({}), 400, /config\.command/],
    [agent({ command: '' }), 400, /config\.command/],
    [agent({ command: ' ' }), 400, /expected a program/],
    [agent({ command: 'node "x' }), 400, /every quote to be closed/],
    [agent({ command: './run' }), 400, /absolute path/],
    [agent({ command: 'node', env: 'KEY' }), 400, /NAME=value in line 1/],
    [agent({ command: 'node', name: '__vaulted__' }), 400, /it is no secret/],
    [agent({ command: 'no-such-program-here' }), 501, /there is no program no-such-program-here: install/],
    [agent({ command: 'node', env: '__vaulted__' }), 422, /none is stored/],
    [{ id: 'a', kind: 'monorepo', config: {} }, 422, /expected one that can be connected here \(agent/],
    [{ id: 'a', kind: 'spaceship', config: {} }, 400, /kind/],
    [{ id: 'a', kind: 'agent' }, 400, /config/],
  ]
  for (const [body, status, message] of bad) {
    const found = await post(daemon, '/capabilities', body)
    t.match(found, { status, body: { message } }, JSON.stringify(body))
  }
  t.notMatch(await post(daemon, '/capabilities', agent({ command: 'node', env: 'hunter2-is-it' })), /hunter2/)
  for (const [method, path, body] of CALLS.slice(2)) {
    const init = { method, ...(body && { body: JSON.stringify(body) }) }
    t.equal((await daemon.fetch(path, init)).status, 404, `${method} ${path}`)
  }
  t.notOk(existsSync(join(daemon.workspace, FILE)))
})

t.test('a secret goes to the store of secrets and nowhere else', async t => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  const command = picky(daemon)
  const frames = await add(daemon, secretAgent(command))
  t.match(frames.at(-1), { kind: 'result' })
  t.same([...vault.values], [['picky/env', 'KEY=right-key']])
  t.equal(kept(daemon).picky?.config.env, '__vaulted__')
  const { capabilities } = await daemon.client.call('GET /capabilities')
  t.match(capabilities, exactly({ id: 'picky', secrets: exactly('env') }))
  t.notMatch(JSON.stringify([frames, capabilities, daemon.logged]), /right-key/)

  const changed = { ...secretAgent(command, '__vaulted__') }
  t.match(
    (await add(daemon, { ...changed, config: { command, name: 'Picky', env: '__vaulted__' } } as Capability)).at(-1),
    { kind: 'result' },
  )
  t.same([...vault.values], [['picky/env', 'KEY=right-key']])
  t.match(kept(daemon).picky?.config, { name: 'Picky', env: '__vaulted__' })
})

t.test('a wrong secret is refused without being shown, and the old one stays', async t => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  const command = picky(daemon)
  t.match(await refusalOf(() => add(daemon, secretAgent(command, 'KEY=bad-secret-value'))), {
    message: /wrong key: \[redacted\]/,
  })
  t.equal(vault.values.size, 0)
  await add(daemon, secretAgent(command))
  t.match(await post(daemon, '/capabilities/picky/secret', { value: 'KEY=bad-secret-value' }), {
    status: 424,
    body: { message: /wrong key: \[redacted\]/ },
  })
  t.same([...vault.values], [['picky/env', 'KEY=right-key']])
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'picky' }), { state: 'active' })
  t.match(await post(daemon, '/capabilities/picky/secret', { value: 'x', field: 'token' }), { status: 400 })
  t.match(await post(daemon, '/capabilities/picky/secret', { value: 'KEY=right-key\nOTHER=1', field: 'env' }), {
    status: 200,
  })
  t.same([...vault.values], [['picky/env', 'KEY=right-key\nOTHER=1']])
})

t.test('without the group of secrets a secret is refused, and all else works', async t => {
  const daemon = await daemonWith(t, ['capabilities'])
  t.match(await post(daemon, '/capabilities', secretAgent(picky(daemon))), {
    status: 503,
    body: { message: /without the group of secrets/ },
  })
  const frames = await add(daemon, { id: 'scripts', kind: 'agent', config: { command: SCRIPT_AGENT } })
  t.match(frames.at(-1), { kind: 'result' })
  t.same(await daemon.client.call('DELETE /capabilities/{id}', { id: 'scripts' }), { ok: true })
  t.same(kept(daemon), {})
  t.notOk(existsSync(join(daemon.data, 'homes/programs/scripts')))
})

t.test('of two at once one is refused', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const both = await Promise.allSettled(
    [1, 2].map(() => add(daemon, { id: 'scripts', kind: 'agent', config: { command: SCRIPT_AGENT } })),
  )
  t.same(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  t.match(
    both.find(({ status }) => status === 'rejected'),
    { reason: { status: 409 } },
  )
})

t.test('a new id keeps the secrets and the home folder', async t => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  await add(daemon, secretAgent(picky(daemon)))
  writeFileSync(join(daemon.data, 'homes/programs/picky/home/signed-in'), 'yes')
  t.match(await post(daemon, '/capabilities/picky/rename', { to: 'catalog' }), { status: 409 })
  t.match(await post(daemon, '/capabilities/picky/rename', { to: 'picky' }), { status: 200 })
  t.match(await post(daemon, '/capabilities/picky/rename', { to: 'choosy' }), { status: 200 })
  t.same([...vault.values.keys()], ['choosy/env'])
  t.same(Object.keys(kept(daemon)), ['choosy'])
  t.ok(existsSync(join(daemon.data, 'homes/programs/choosy/home/signed-in')))
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'choosy' }), { state: 'active' })
  t.same(await daemon.client.call('DELETE /capabilities/{id}', { id: 'choosy' }), { ok: true })
  t.same([vault.values.size, kept(daemon)], [0, {}])
})

t.test(
  'what the file holds starts no program until a maintainer saves it, and secrets in it move to the store',
  async t => {
    const { daemon, vault } = await capabilitiesDaemon(t)
    write(daemon, {
      scripts: { kind: 'agent', config: { command: SCRIPT_AGENT, env: 'KEY=typed-by-hand' } },
      'bad id': { kind: 'agent', config: {} },
      wrong: { kind: 'agent', config: { command: ['x'] } },
    })
    const { capabilities } = await daemon.client.call('GET /capabilities')
    t.match(
      capabilities,
      exactly({
        id: 'scripts',
        status: { code: 'unauthorized', detail: /came with the code/ },
        secrets: exactly('env'),
      }),
    )
    t.match(await refusalOf(() => inner(daemon, 'capabilities.runtime', { id: 'scripts' })), { status: 409 })
    t.same([...vault.values], [], 'a read stores nothing')
    t.equal(kept(daemon).scripts?.config.env, 'KEY=typed-by-hand')
    t.same(Object.keys(kept(daemon)), ['scripts', 'bad id', 'wrong'])
    t.notMatch(JSON.stringify(daemon.logged), /typed-by-hand/)
    await add(daemon, { id: 'scripts', kind: 'agent', config: { command: SCRIPT_AGENT, env: '__vaulted__' } })
    t.same([...vault.values], [['scripts/env', 'KEY=typed-by-hand']])
    t.equal(kept(daemon).scripts?.config.env, '__vaulted__')
    t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'scripts' }), { state: 'active' })
  },
)

t.test('a file that sends stored secrets elsewhere gets none until a maintainer saves it', async t => {
  const { daemon } = await capabilitiesDaemon(t)
  const command = picky(daemon)
  await add(daemon, secretAgent(command))
  const thief = program(daemon, 'thief', '#!/bin/sh\necho "$KEY" > stolen\n')
  write(daemon, { picky: { kind: 'agent', config: { command: thief, env: '__vaulted__' } } })
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'picky' }), {
    state: 'error',
    code: 'unauthorized',
    detail: /changed by hand/,
  })
  t.notOk(existsSync(join(daemon.workspace, 'stolen')))
  t.match(await refusalOf(() => inner(daemon, 'capabilities.runtime', { id: 'picky' })), { status: 409 })
  t.match(await post(daemon, '/capabilities/picky/secret', { value: 'A=1', field: 'env' }), { status: 424 })
  await add(daemon, secretAgent(command, '__vaulted__'))
  t.match(await inner(daemon, 'capabilities.runtime', { id: 'picky' }), {
    command: exactly(command),
    env: { KEY: 'right-key' },
  })
})

t.test('what other groups store is listed, changed and removed with its secrets', async t => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  const given = { id: 'local', kind: 'endpoint', label: 'Local', config: { baseUrl: 'http://127.0.0.1:1' } }
  t.match(await inner(daemon, 'capabilities.put', { ...given, secrets: { apiKey: 'k-1', headers: 'x: 1' } }), {
    ...given,
    secrets: exactly('apiKey', 'headers'),
  })
  t.match(await inner(daemon, 'capabilities.put', { ...given, secrets: { headers: '', apiKey: '__vaulted__' } }), {
    secrets: exactly('apiKey'),
  })
  t.same([...vault.values], [['local/apiKey', 'k-1']])
  t.match(await inner(daemon, 'capabilities.records', { kind: 'endpoint' }), { capabilities: exactly(given) })
  t.same(await inner(daemon, 'capabilities.records', { kind: 'agent' }), { capabilities: [] })
  t.match(await refusalOf(() => inner(daemon, 'capabilities.put', { ...given, kind: 'vpn' })), { status: 409 })
  t.match(await refusalOf(() => inner(daemon, 'capabilities.put', { ...given, kind: 'agent' })), { status: 409 })
  t.match(await refusalOf(() => inner(daemon, 'capabilities.runtime', { id: 'local' })), { status: 409 })
  t.match(await refusalOf(() => inner(daemon, 'capabilities.runtime', { id: 'x' })), { status: 404 })
  t.same(await inner(daemon, 'capabilities.drop', { id: 'local' }), { ok: true })
  t.same(await inner(daemon, 'capabilities.drop', { id: 'local' }), { ok: true })
  t.same([vault.values.size, kept(daemon)], [0, {}])
})

t.test('an interrupted change is taken back or finished at the next start', async t => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  const store = new Map<string, unknown>()
  const host = {
    place: { workspace: daemon.workspace, data: daemon.data, hidden: [], grants: { read: [], write: [] } },
    store: {
      get: async (key: string) => store.get(key),
      set: async (key: string, value: unknown) => void store.set(key, value),
      delete: async (key: string) => void store.delete(key),
      all: async () => [...store],
    },
    log: { info: () => {}, warn: () => {}, error: () => {} },
    signal: new AbortController().signal,
    emit: () => {},
    collect: async () => [],
    serves: async (call: string) => call in vault.fakes,
    call: async (call: 'secrets.drop', input: never) =>
      (vault.fakes[call] as unknown as (input: never) => unknown)(input),
  } as never
  const recovered = async () => {
    const { workspace, data } = daemon
    const kind = agentKind({ ...(host as object), place: { workspace, data, hidden: [], grants: {} } } as never)
    await new Capabilities(host, new Kinds(host, [kind]), new OfferedCards(host)).recover()
    return [[...vault.values.keys()], Object.keys(kept(daemon)), [...store]]
  }
  const home = (id: string) => join(daemon.data, 'homes/programs', id)
  const entry = { kind: 'agent', config: { command: SCRIPT_AGENT, env: '__vaulted__' } }

  write(daemon, {})
  store.set('unfinished/cut', { kind: 'agent' })
  vault.values.set('cut/env', 'A=1')
  mkdirSync(home('cut'), { recursive: true })
  t.same(await recovered(), [[], [], []], 'cut off before it was recorded')
  t.notOk(existsSync(home('cut')))

  write(daemon, { old: entry })
  store.set('unfinished/old', { kind: 'agent', to: 'new' })
  vault.values.set('new/env', 'A=1')
  mkdirSync(home('new'), { recursive: true })
  t.same(await recovered(), [['old/env'], ['old'], []], 'a new id that was not recorded')
  t.ok(existsSync(home('old')))

  write(daemon, { new: entry, box: { kind: 'browser', config: { platform: 'site', identity: 'old' } } })
  store.set('unfinished/old', { kind: 'agent', to: 'new' })
  vault.values.clear()
  vault.values.set('new/env', 'A=1')
  t.same(await recovered(), [['new/env'], ['new', 'box'], []], 'a new id that was recorded')
  t.match(kept(daemon).box, { config: { identity: 'new' } }, 'and what names it')
})
