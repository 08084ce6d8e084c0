import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, inGit, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { ciServer } from './ci-server.js'
import { filesWith } from './support.js'

t.jobs = 4

const WORKFLOW = `on: push
jobs:
  test:
    steps:
      - run: npm publish
        env:
          TOKEN: \${{ secrets.NPM_TOKEN }}
          OTHER: \${{ secrets['DEPLOY_KEY'] }}
          OWN: \${{ secrets.GITHUB_TOKEN }}
          GONE: \${{ secrets.NOT_STORED }}
`

const repositoryAt = ({ workspace }: Support, remote: string): void => {
  inGit(workspace, 'init', '-q')
  inGit(workspace, 'remote', 'add', 'origin', remote)
  mkdirSync(join(workspace, '.github/workflows'), { recursive: true })
  writeFileSync(join(workspace, '.github/workflows/ci.yml'), WORKFLOW)
}

const VALUES: { readonly [key: string]: string } = {
  NPM_TOKEN: 'npm-token-0123456789',
  DEPLOY_KEY: 'line one\nline "two"\n',
  API_KEY: 'api-key-0123456789',
}

const stored = async (t: Test, config: (port: number) => { [field: string]: string } & { provider: string }) => {
  const server = await ciServer(t)
  const daemon = await daemonWith(t, ['secrets', 'git', 'capabilities'])
  const { client } = daemon
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  for (const [key, value] of Object.entries(VALUES)) await client.call('POST /secrets', { key, value })
  const steps = await client.call('POST /capabilities', {
    id: 'forge',
    kind: 'cli',
    config: { ...config(server.port), token: 'forge-token' },
  })
  for await (const step of steps) void step
  repositoryAt(daemon, 'git@127.0.0.1:acme/shop.git')
  const push = (keys?: string[]) =>
    client.call('POST /secrets/ci', { targets: [{ repo: 'root' }], ...(keys && { keys }) })
  return { server, daemon, client, push }
}

const CONFIGS: readonly ((port: number) => { [field: string]: string } & { provider: string })[] = [
  port => ({ provider: 'github', host: `127.0.0.1:${port}` }),
  port => ({ provider: 'gitlab', host: `127.0.0.1:${port}` }),
  port => ({ provider: 'forgejo', url: `https://127.0.0.1:${port}` }),
]

t.test('an invalid target and a sandbox without repositories are refused', async t => {
  const { client } = await daemonWith(t, ['secrets'])
  const targets = [{ repo: 'root' }]
  t.match(await refusalOf(() => client.call('POST /secrets/ci', { targets: [] })), { status: 400 })
  t.match(await refusalOf(() => client.call('POST /secrets/ci', { targets, keys: ['a b'] })), { status: 400 })
  t.match(await refusalOf(() => client.call('POST /secrets/ci', { targets })), { status: 422, message: /group git/ })
})

for (const config of CONFIGS) {
  t.test(`values are in the CI service of ${config(1).provider}, and a second push changes nothing`, async t => {
    const { server, client, push, daemon } = await stored(t, config)
    const keys = ['NPM_TOKEN', 'DEPLOY_KEY']
    t.match(await push(keys), {
      results: exactly(...keys.map(key => ({ repo: 'root', key, status: 'pushed' }))),
      stale: exactly(),
    })
    for (const key of keys) t.equal(server.variables.get(key)?.value, VALUES[key])
    const before = server.requests.length
    t.match(await push(keys), { results: exactly(...keys.map(key => ({ repo: 'root', key, status: 'unchanged' }))) })
    t.same(
      server.requests.slice(before).filter(({ method }) => method !== 'GET'),
      [],
    )
    const entryOf = async (key: string) =>
      (await client.call('GET /secrets/inventory')).entries.find(entry => entry.key === key)
    t.match(await entryOf('NPM_TOKEN'), { ci: { synced: true, pushedAt: /^20\d\d-/ } })
    await client.call('POST /secrets', { key: 'NPM_TOKEN', value: 'another-value-1' })
    t.match(await entryOf('NPM_TOKEN'), { ci: { synced: false } })
    server.variables.set('DEPLOY_KEY', { value: 'changed there', at: 99 })
    t.match(
      (await push(keys)).results.map(({ status }) => status),
      exactly('pushed', 'pushed'),
      'what changed here and what changed there',
    )
    t.equal(server.variables.get('DEPLOY_KEY')?.value, VALUES['DEPLOY_KEY'])
    await client.call('DELETE /secrets/{key}', { key: 'NPM_TOKEN' })
    t.match((await push(['DEPLOY_KEY'])).stale, exactly({ repo: 'root', key: 'NPM_TOKEN' }))
    for (const value of Object.values(VALUES))
      t.same([...filesWith(daemon.workspace, value), ...filesWith(daemon.data, value)], [])
  })
}

t.test('without keys, the keys that workflow files name are pushed', async t => {
  const { push } = await stored(t, CONFIGS[0]!)
  t.match(
    (await push()).results,
    exactly(
      { key: 'DEPLOY_KEY', status: 'pushed' },
      { key: 'NOT_STORED', status: 'failed', detail: 'nothing is stored under NOT_STORED' },
      { key: 'NPM_TOKEN', status: 'pushed' },
    ),
  )
})

t.test('one failing key stops no other, and its value is in no answer', async t => {
  const { push, server, client } = await stored(t, CONFIGS[2]!)
  server.state.only = 'DEPLOY_KEY'
  await client.call('POST /secrets', { key: 'API_KEY', value: '__vaulted__', hosts: ['api.example.org'] })
  const { results } = await push(['NPM_TOKEN', 'DEPLOY_KEY', 'API_KEY'])
  t.match(
    results,
    exactly(
      { key: 'NPM_TOKEN', status: 'failed', detail: /refused \(422\): … is not accepted$/ },
      { key: 'DEPLOY_KEY', status: 'pushed' },
      { key: 'API_KEY', status: 'failed', detail: /bound to api\.example\.org/ },
    ),
  )
  server.state.refuse = 'Resource not accessible'
  t.match(await refusalOf(() => push(['NPM_TOKEN', 'DEPLOY_KEY'])), { status: 424, message: /Resource not accessible/ })
})

t.test('a host that is not a known CI service gets no value', async t => {
  const { push, client, daemon, server } = await stored(t, CONFIGS[0]!)
  t.match(await refusalOf(() => client.call('POST /secrets/ci', { targets: [{ repo: 'none' }] })), { status: 404 })
  inGit(daemon.workspace, 'remote', 'set-url', 'origin', 'https://git.example.org/acme/shop')
  t.match(await refusalOf(() => push()), { status: 422, message: /git\.example\.org/ })
  t.match(
    await refusalOf(() => client.call('POST /secrets/ci', { targets: [{ repo: 'root', connection: 'forge' }] })),
    { status: 422, message: /forge is for 127\.0\.0\.1/ },
    'a credential goes to its own host alone',
  )
  inGit(daemon.workspace, 'remote', 'set-url', 'origin', 'https://github.com/acme/shop')
  t.match(await refusalOf(() => push()), { status: 424, message: /no connection for github\.com/ })
  t.same(server.requests, [])
})
