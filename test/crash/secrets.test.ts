import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { StoreConfig } from '../../plugins/secrets/contract.js'
import { daemonWith, folderOf, inGit, makeWorkspace, spawnDaemon, type Support } from '../support/daemon.js'
import { filesWith } from '../plugins/secrets/support.js'
import { ciServer } from '../plugins/secrets/ci-server.js'
import { exactly, spread } from '../support/lists.js'
import { dies, SECRETS_POINTS, type Where } from './failpoints/failpoints.js'
import { meantInClear } from '../support/secret-search.js'

const FILE: StoreConfig = { kind: 'vault', unlock: 'file' }
const PASSPHRASE: StoreConfig = { kind: 'vault', unlock: 'passphrase', passphrase: 'correct horse battery' }
const DOTENV: StoreConfig = { kind: 'dotenv', path: '.env' }
const OTHER: StoreConfig = { kind: 'dotenv', path: '.env.other' }
const VALUES: { readonly [key: string]: string } = { A: 'value of a $', B: 'value\nof b', C: "value of 'c'" }

const secretsIn = (t: Test): Where => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { '.gitignore': '.env*\n' })
  return where
}

/** Every stored value; unlocks the store if necessary. */
const found = async ({ client }: Pick<Support, 'client'>): Promise<{ [key: string]: string }> => {
  if ((await client.call('GET /secrets/store')).locked) await client.call('POST /secrets/store', PASSPHRASE)
  const { keys } = await client.call('GET /secrets')
  return Object.fromEntries(
    await Promise.all(
      keys.map(async key => [key, (await client.call('POST /secrets/reveal', { key })).value] as const),
    ),
  )
}

/** The values after the next start; checks that another start changes nothing and that no leftovers exist. */
const settled = async (t: Test, where: Where): Promise<{ [key: string]: string }> => {
  const first = await daemonWith(t, ['secrets'], where)
  const values = await found(first)
  const { kind, unlock, path } = await first.client.call('GET /secrets/store')
  await first.stop()
  const own = ['secrets.vault', 'keys']
  t.same(
    readdirSync(join(where.data, 'secrets')).filter(name => !own.includes(name)),
    [],
  )
  const keys = join(where.data, 'secrets/keys')
  if (kind)
    t.equal(existsSync(keys) ? readdirSync(keys).length : 0, unlock === 'passphrase' ? 0 : 1, 'old keys are removed')
  t.same(
    readdirSync(where.workspace).filter(name => name.startsWith('.sandbox-write-')),
    [],
  )
  for (const value of Object.values(values)) {
    if (kind !== 'vault') continue
    t.same([...filesWith(where.workspace, value), ...filesWith(where.data, value)], [], 'no value is left unencrypted')
  }
  for (const file of ['.env', '.env.other'].filter(name => kind === 'dotenv' && name !== path))
    t.notOk(existsSync(join(where.workspace, file)), `${file} is gone`)
  const second = await daemonWith(t, ['secrets'], where)
  t.same(await found(second), values)
  await second.stop()
  return values
}

const MOVES: readonly [from: StoreConfig, to: StoreConfig][] = [
  [FILE, PASSPHRASE],
  [PASSPHRASE, FILE],
  [FILE, DOTENV],
  [DOTENV, FILE],
  [DOTENV, OTHER],
]

const write = async (client: Support['client']): Promise<void> => {
  await client.call('POST /secrets/import', { text: 'A=\'value of a $\'\nB="value\\nof b"\n' })
  await client.call('POST /secrets', { key: 'C', value: VALUES['C']! })
}

t.jobs = 2
t.setTimeout(480_000)
const beside = { buffered: true }

const MOVED = SECRETS_POINTS.filter(name => name.startsWith('secrets.move.'))

for (const [point, from, to] of spread(
  MOVED.flatMap(point => MOVES.map(([from, to]) => [point, from, to] as const)),
  MOVED.length,
)) {
  const name = (config: StoreConfig) => (config.kind === 'vault' ? config.unlock : config.path)
  t.test(`a move from ${name(from)} to ${name(to)}, killed at ${point}`, beside, async t => {
    const where = secretsIn(t)
    const before = await daemonWith(t, ['secrets'], where)
    await before.client.call('POST /secrets/store', from)
    await write(before.client)
    await before.stop()
    await dies(t, where, point, async ({ once: client }) => {
      if (from === PASSPHRASE) await client.call('POST /secrets/store', from)
      await client.call('POST /secrets/store', to)
    })
    t.same(await settled(t, where), VALUES)
  })
}

for (const point of SECRETS_POINTS.filter(name => name.startsWith('secrets.ci.'))) {
  t.test(`a push to a CI service, killed at ${point}, is made again without a difference`, beside, async t => {
    const where = secretsIn(t)
    const server = await ciServer(t, true)
    inGit(where.workspace, 'remote', 'add', 'origin', 'git@127.0.0.1:acme/shop.git')
    const push = (client: Support['client']) =>
      client.call('POST /secrets/ci', { targets: [{ repo: 'root' }], keys: ['A', 'B'] })
    await dies(t, where, point, async daemon => {
      await daemon.once.call('POST /secrets/store', FILE)
      await write(daemon.once)
      const config = { provider: 'forgejo', url: `http://127.0.0.1:${server.port}`, token: 'forge-token' }
      for await (const step of await daemon.once.call('POST /capabilities', { id: 'forge', kind: 'cli', config }))
        void step
      await push(daemon.once)
    })
    const { client, stop } = await daemonWith(t, ['secrets', 'git', 'capabilities'], where)
    const status = point === 'secrets.ci.noted' ? 'unchanged' : 'pushed'
    for (const expected of [status, 'unchanged']) {
      const { results } = await push(client)
      t.match(results, exactly(...['A', 'B'].map(key => ({ repo: 'root', key, status: expected }))))
    }
    t.same([...server.variables].map(([key, { value }]) => [key, value]).sort(), [
      ['A', VALUES['A']],
      ['B', VALUES['B']],
    ])
    await stop()
  })
}

const WRITES = SECRETS_POINTS.filter(name => !/^secrets\.(?:move|ci)\./.test(name))

for (const [point, config, nth] of spread(
  WRITES.flatMap(point => [FILE, DOTENV].flatMap(config => [1, 2, 3].map(nth => [point, config, nth] as const))),
  WRITES.length,
)) {
  t.test(`writes into ${config.kind}, killed at ${point} for the ${nth}. time`, beside, async t => {
    const where = secretsIn(t)
    const acknowledged: { [key: string]: string | undefined } = {}
    await dies(t, where, `${point}:${nth}`, async ({ once: client }) => {
      await client.call('POST /secrets/store', config)
      const put = async (key: string, value: string) => {
        acknowledged[key] = undefined
        await client.call('POST /secrets', { key, value })
        acknowledged[key] = value
      }
      await put('A', 'first value')
      await put('B', 'second value')
      acknowledged['A'] = undefined
      await client.call('DELETE /secrets/{key}', { key: 'A' })
      delete acknowledged['A']
      await put('B', 'third value')
    })
    const values = await settled(t, where)
    for (const [key, value] of Object.entries(acknowledged))
      if (value !== undefined) t.equal(values[key], value, `${key} is as it was acknowledged`)
    const possible: { [key: string]: readonly string[] } = {
      A: ['first value'],
      B: ['second value', 'third value'],
    }
    for (const [key, value] of Object.entries(values)) t.ok(possible[key]?.includes(value), `${key} is whole`)
  })
}

t.test('the first choice of a store, killed at each step, can be repeated', beside, async t => {
  for (const point of MOVED) {
    const where = secretsIn(t)
    await dies(t, where, point, ({ once: client }) => client.call('POST /secrets/store', FILE))
    const next = await daemonWith(t, ['secrets'], where)
    t.match(await next.client.call('POST /secrets/store', FILE), { ok: true, moved: 0 }, point)
    await next.client.call('POST /secrets', { key: 'A', value: VALUES['A']! })
    await next.stop()
    t.same(await settled(t, where), { A: VALUES['A'] })
  }
})

t.test('the first value, killed at each step of making the store, leaves none or a usable one', beside, async t => {
  for (const point of [...MOVED, ...WRITES]) {
    const where = secretsIn(t)
    await dies(t, where, point, ({ once: client }) => client.call('POST /secrets', { key: 'A', value: VALUES['A']! }))
    const next = await daemonWith(t, ['secrets'], where)
    const { configured, locked } = await next.client.call('GET /secrets/store')
    t.equal(locked, false, point)
    const left = await found(next)
    t.ok(left['A'] === undefined || left['A'] === VALUES['A'], `${point}: nothing half stored`)
    t.match(await next.client.call('POST /secrets', { key: 'B', value: VALUES['B']! }), {
      ok: true,
      store: configured ? undefined : 'made',
    })
    await next.stop()
    t.same(await settled(t, where), { ...left, B: VALUES['B'] })
  }
})

t.test('a kill at any moment of writes loses nothing acknowledged', beside, async t => {
  const where = secretsIn(t)
  const start = await daemonWith(t, ['secrets'], where)
  await start.client.call('POST /secrets/store', FILE)
  await start.stop()
  const kept = new Map<string, string>()
  for (const writes of [1, 3, 7, 12]) {
    const daemon = await spawnDaemon(t, where)
    const enough = Promise.withResolvers<void>()
    let done = 0
    const asked = new Map<string, string>()
    const writer = async (key: string) => {
      for (let n = 0; ; n++) {
        const value = `${key} ${writes} ${n} ${'x'.repeat(n * 500)}`
        asked.set(key, value)
        await daemon.once.call('POST /secrets', { key, value })
        kept.set(key, value)
        if (++done >= writes) enough.resolve()
      }
    }
    const all = ['A', 'B', 'C'].map(key => writer(key).catch(() => {}))
    await enough.promise
    await daemon.kill9()
    await Promise.all(all)
    const next = await daemonWith(t, ['secrets'], where)
    const values = await found(next)
    for (const [key, value] of kept) t.ok([value, asked.get(key)].includes(values[key]), `${key} after ${writes}`)
    for (const [key, value] of Object.entries(values)) kept.set(key, value)
    await next.stop()
  }
})

t.test('an interrupted move into an existing .env file leaves the file unchanged', beside, async t => {
  const where = secretsIn(t)
  const before = await daemonWith(t, ['secrets'], where)
  await before.client.call('POST /secrets/store', FILE)
  await write(before.client)
  await before.stop()
  const mine = `# mine\nOWN=1\nB="value\\nof b"\n`
  writeFileSync(join(where.workspace, '.env'), mine)
  await dies(t, where, 'secrets.move.filled', ({ once: client }) => client.call('POST /secrets/store', DOTENV))
  const next = await daemonWith(t, ['secrets'], where)
  meantInClear(next, 'workspace: .env', 'somebody wrote a value there before')
  t.same(await found(next), VALUES)
  t.equal(readFileSync(join(where.workspace, '.env'), 'utf8'), mine)
})
