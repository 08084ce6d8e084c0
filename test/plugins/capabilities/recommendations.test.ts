import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { vaultFake } from './support.js'

const SERVERS = {
  mcpServers: {
    files: { command: 'npx', args: ['-y', 'files-server'], env: { KEY: 'a-secret-value' } },
    web: { url: 'https://mcp.example.org/mcp', headers: { authorization: 'Bearer a-secret-value' } },
    odd: { command: 7 },
  },
}

t.test('remotes and lists of tool servers are suggested until they are connected or dismissed', async t => {
  const { client, workspace } = await daemonWith(t, ['capabilities', 'git'], { fakes: vaultFake().fakes })
  const suggested = async () => (await client.call('GET /capabilities')).recommendations
  const dismiss = (card: string) => client.call('DELETE /capabilities/recommendations/{card}', { card })
  t.same(await suggested(), [])
  t.match(await refusalOf(() => dismiss('mcp')), { status: 404, message: /not suggested now/ })
  inGit(workspace, 'remote', 'add', 'origin', 'git@gitlab.example.org:acme/shop.git')
  mkdirSync(join(workspace, 'api'))
  inGit(join(workspace, 'api'), 'init', '-q')
  inGit(join(workspace, 'api'), 'commit', '-q', '--allow-empty', '-m', 'first')
  inGit(join(workspace, 'api'), 'remote', 'add', 'origin', 'https://github.com/acme/api')
  writeFileSync(join(workspace, '.mcp.json'), JSON.stringify(SERVERS))
  const all = await suggested()
  t.match(
    all,
    exactly(
      { card: 'gitlab', evidence: 'remote of root: gitlab.example.org', prefill: { host: 'gitlab.example.org' } },
      { card: 'github', evidence: 'remote of api: github.com', prefill: {} },
      { card: 'mcp', evidence: '.mcp.json', prefill: { command: 'npx', args: '-y\nfiles-server' } },
      { card: 'mcp', evidence: '.mcp.json', prefill: { url: 'https://mcp.example.org/mcp' } },
    ),
  )
  t.notMatch(JSON.stringify(all), /a-secret-value/)

  const config = { provider: 'github', token: 'ghp_0123456789' }
  for await (const step of await client.call('POST /capabilities', { id: 'gh', kind: 'cli', config })) void step
  t.match(
    (await suggested()).map(({ card }) => card),
    exactly('gitlab', 'mcp', 'mcp'),
  )
  await dismiss('mcp')
  t.match(
    (await suggested()).map(({ card }) => card),
    exactly('gitlab'),
  )
  const more = { ...SERVERS.mcpServers, new: { command: 'another' } }
  writeFileSync(join(workspace, '.mcp.json'), JSON.stringify({ mcpServers: more }))
  t.match(
    (await suggested()).filter(({ card }) => card === 'mcp'),
    exactly({ prefill: { command: 'another' } }),
    'other evidence brings it back',
  )
})

t.test('a compose file suggests the container engine until it is dismissed, and another file again', async t => {
  const { client, workspace } = await daemonWith(t, ['capabilities', 'git'], { fakes: vaultFake().fakes })
  const suggested = async () => (await client.call('GET /capabilities')).recommendations
  mkdirSync(join(workspace, 'compose.yaml'))
  t.same(await suggested(), [], 'a folder is no such file')
  writeFileSync(join(workspace, 'docker-compose.yml'), 'services: {}\n')
  t.match(await suggested(), exactly({ card: 'docker', evidence: 'docker-compose.yml', prefill: {} }))
  await client.call('DELETE /capabilities/recommendations/{card}', { card: 'docker' })
  t.same(await suggested(), [])
  writeFileSync(join(workspace, 'compose.yml'), 'services: {}\n')
  t.match(await suggested(), exactly({ card: 'docker', evidence: 'compose.yml' }))
})

t.test('an invalid list, or one outside of the workspace, suggests nothing', async t => {
  const { client, workspace, data } = await daemonWith(t, ['capabilities'], { fakes: vaultFake().fakes })
  writeFileSync(join(workspace, '.mcp.json'), '{"mcpServers": [1, null, "x"')
  mkdirSync(join(workspace, '.vscode'))
  writeFileSync(join(data, 'outside.json'), JSON.stringify(SERVERS))
  symlinkSync(join(data, 'outside.json'), join(workspace, '.vscode/mcp.json'))
  t.same((await client.call('GET /capabilities')).recommendations, [])
})
