import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, inGit, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { committed } from '../../support/servers/git-server.js'
import { runTurn } from '../../support/turns.js'
import { noWall } from '../../support/walls.js'
import { callTool, TURN } from './servers-support.js'
import { add, capabilitiesDaemon, inner } from './support.js'

const skip = noWall((await wallKind()) !== 'none')

/** A tool server that says where it is, what it was given, and whether it can change its own folder. */
const SERVER = `
import { createInterface } from 'node:readline'
import { writeFileSync } from 'node:fs'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const changed = () => {
  try { writeFileSync(new URL('planted', import.meta.url), ''); return true } catch { return false }
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion,
    capabilities: { tools: {} }, serverInfo: { name: 'own', version: '1' } } })
  else if (method === 'tools/list') send({ id, result: { tools: [{ name: 'where', description: 'Says where it is.',
    inputSchema: { type: 'object' } }] } })
  else if (method === 'tools/call') send({ id, result: { content: [{ type: 'text', text:
    JSON.stringify({ at: import.meta.filename, mode: process.env.MODE, changed: changed() }) }] } })
  else if (id !== undefined) send({ id, result: {} })
}
`
const FILES = {
  'skills/review/SKILL.md': '---\nname: review\ndescription: Use it to review.\n---\nRead slowly.\n',
  'agents/critic.md': '---\nname: critic\ndescription: Criticises.\n---\nBe kind.\n',
  'commands/hello.md': 'Say hello.\n',
  'hooks/hooks.json': '{"hooks":{}}',
  'server.mjs': SERVER,
  '.mcp.json': JSON.stringify({
    mcpServers: {
      own: { command: process.execPath, args: ['${CLAUDE_PLUGIN_ROOT}/server.mjs'], env: { MODE: 'kind' } },
      keyed: { command: 'x', env: { KEY: '${HOME_KEY}' } },
    },
  }),
}

const write = (root: string, files: { readonly [path: string]: string }): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}

/** A repository of the workspace with a plugin, whose own hooks and filters would leave a mark if they ran. */
const pluginIn = ({ workspace }: Pick<Support, 'workspace'>): { origin: string; ref: string; mark: string } => {
  const origin = join(workspace, 'team-plugin')
  mkdirSync(origin)
  inGit(origin, 'init', '-q', '-b', 'main')
  const mark = join(workspace, 'ran')
  write(origin, { ...FILES, '.gitattributes': '*.md filter=mark\n' })
  const ref = committed(origin)
  for (const hook of ['post-checkout', 'pre-push', 'reference-transaction'])
    writeFileSync(join(origin, '.git/hooks', hook), `#!/bin/sh\necho ${hook} >> ${mark}\n`, { mode: 0o755 })
  inGit(origin, 'config', 'filter.mark.smudge', `sh -c "echo smudge >> ${mark}; cat"`)
  inGit(origin, 'config', 'uploadpack.packObjectsHook', `sh -c "echo pack >> ${mark}; exec \\"$@\\"" sh`)
  return { origin, ref, mark }
}

const world = async (t: Test) => {
  const { daemon, vault } = await capabilitiesDaemon(t)
  return { daemon, vault, ...pluginIn(daemon) }
}
const plugin = (ref: string, more: object = {}) =>
  ({ id: 'team', kind: 'plugin', config: { url: 'team-plugin', ref, ...more } }) as const
const foldersOf = async (daemon: Support, capabilities?: string[]) =>
  (await inner(daemon, 'capabilities.agentFolders', { ...(capabilities && { capabilities }) })).folders
const stored = ({ data }: Support): string[] =>
  existsSync(join(data, 'capabilities/plugins')) ? readdirSync(join(data, 'capabilities/plugins')).sort() : []

t.test('a commit is fetched, nothing of it runs, and the stream says what it brings', async t => {
  const { daemon, ref, mark, origin } = await world(t)
  const frames = await add(daemon, plugin(ref))
  const said = frames.flatMap(frame => (frame.kind === 'log' ? [frame.message] : [])).join('\n')
  for (const sentence of [
    /nothing of it runs/,
    /skills for turns: review/,
    /tool servers .*: own$/m,
    /critic/,
    /hooks: /,
  ])
    t.match(said, sentence)
  t.match(said, /tool server "keyed" is not used: it needs \$\{HOME_KEY\}/)
  t.match(frames.at(-1), { kind: 'result', id: 'team', status: { state: 'active' } })
  t.notOk(existsSync(mark), 'no hook, no filter')
  const folders = await foldersOf(daemon)
  t.match(folders, exactly({ id: 'team' }))
  t.equal(readFileSync(join(folders[0]!.dir, 'commands/hello.md'), 'utf8'), 'Say hello.\n')
  t.notOk(existsSync(join(folders[0]!.dir, '.mcp.json')), 'agent programs do not start its servers a second time')
  t.same(await foldersOf(daemon, []), [], 'a persona without it')
  write(origin, { 'commands/hello.md': 'Say nothing.\n' })
  committed(origin)
  t.equal(readFileSync(join((await foldersOf(daemon))[0]!.dir, 'commands/hello.md'), 'utf8'), 'Say hello.\n')
  const { cards } = await daemon.client.call('GET /capabilities/catalog')
  t.match(
    cards.find(({ id }) => id === 'plugin'),
    { kind: 'plugin', connected: true, instances: exactly('team') },
  )
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'team' }), { state: 'active' })
})

t.test('what is no plugin at a full commit is refused, by field, and leaves nothing', async t => {
  const { daemon, ref, origin } = await world(t)
  const refused = async (config: object) => refusalOf(() => add(daemon, plugin(ref, config)))
  for (const [config, field] of [
    [{ ref: 'main' }, 'ref'],
    [{ ref: ref.slice(0, 12) }, 'ref'],
    [{ url: 'ext::sh -c x' }, 'url'],
    [{ url: 'file:///etc' }, 'url'],
    [{ url: '/etc' }, 'url'],
    [{ url: 'http://10.0.0.1/x.git' }, 'url'],
    [{ path: '../x' }, 'path'],
    [{ path: '.git' }, 'path'],
    [{ token: 'abc' }, 'token'],
  ] as const)
    t.match(await refused(config), { status: 400, message: new RegExp(field) }, JSON.stringify(config))
  t.match(await refused({ ref: '0'.repeat(40) }), { status: 424, message: /no commit|refused/ })
  t.match(await refused({ path: 'skills' }), { status: 422, message: /there is no plugin in skills/ })
  t.match(await refused({ path: 'none' }), { status: 422 })
  symlinkSync('/etc/passwd', join(origin, 'skills/leaves'))
  t.match(await refused({ ref: committed(origin) }), { status: 422, message: /skills\/leaves is a link that leaves/ })
  symlinkSync('.', join(origin, 'here'))
  t.match(await refused({ ref: committed(origin), path: 'here' }), { status: 422, message: /here is a link/ })
  t.same(stored(daemon), ['.staging'])
  t.same(readdirSync(join(daemon.data, 'capabilities/plugins/.staging')), [])
  t.same((await daemon.client.call('GET /capabilities')).capabilities, [])
  const { client: land } = await daemon.token('land')
  t.equal((await refusalOf(() => land.call('POST /capabilities', plugin(ref)))).status, 403)
})

t.test('its tool server runs behind the wall, with its folder read-only, and is listed', { skip }, async t => {
  const { daemon, ref, mark } = await world(t)
  await add(daemon, plugin(ref))
  const { tools, problems } = await inner(daemon, 'mcp.tools', TURN)
  t.same(problems, [])
  t.match(tools, exactly({ server: 'team.own', name: 'where', agentName: 'team_own__where', approve: true }))
  t.notOk('action' in tools[0]!, 'nothing could carry it out later')
  const answer = (await callTool(daemon, { server: 'team.own', name: 'where', input: {} })).at(-1)
  t.match(answer, { kind: 'result', ok: true })
  const { text } = answer as { text: string }
  t.same(JSON.parse(text), { at: '/run/sandbox-plugins/team/server.mjs', mode: 'kind', changed: false })
  t.match(await daemon.client.call('GET /capabilities/{id}/tools', { id: 'team' }), {
    tools: exactly({ name: 'where', agentName: 'team_own__where', offered: true }),
  })
  const bare = await inner(daemon, 'mcp.tools', { ...TURN, run: 'r-2', capabilities: [] })
  t.same(bare.tools, [], 'a persona without it')
  t.notOk(existsSync(mark))
})

t.test('a server at a private address is not asked: its address came with the code', async t => {
  const { daemon, origin } = await world(t)
  let asked = 0
  const server = createServer((_, response) => {
    asked++
    response.end()
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  write(origin, { '.mcp.json': JSON.stringify({ mcpServers: { near: { url: `http://127.0.0.1:${port}/mcp` } } }) })
  await add(daemon, plugin(committed(origin)))
  const { tools, problems } = await inner(daemon, 'mcp.tools', TURN)
  t.match(problems, exactly(/^team\.near: 127\.0\.0\.1:\d+ is not asked/))
  t.same(tools, [])
  t.equal((await refusalOf(() => daemon.client.call('GET /capabilities/{id}/tools', { id: 'team' }))).status, 424)
  t.equal(asked, 0)
})

t.test('a server that ended three times is started again once the plugin is asked how it is', { skip }, async t => {
  const { daemon, origin } = await world(t)
  const own = { command: process.execPath, args: ['-e', 'process.exit(3)'] }
  write(origin, { '.mcp.json': JSON.stringify({ mcpServers: { own } }) })
  await add(daemon, plugin(committed(origin)))
  let runs = 0
  const problem = async () =>
    (await inner(daemon, 'mcp.tools', { conversationId: 'c', run: `r-${++runs}` })).problems.join('\n')
  const paused = /not started again.*GET \/capabilities\/team\/status/
  for (const _ of [1, 2, 3]) t.notMatch(await problem(), paused)
  t.match(await problem(), paused)
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'team' }), { state: 'active' })
  t.notMatch(await problem(), paused)
})

t.test('an entry that came with the code brings nothing until a maintainer saves it', async t => {
  const { daemon, ref, origin } = await world(t)
  await add(daemon, plugin(ref))
  write(origin, { 'commands/hello.md': 'Say evil.\n' })
  const other = committed(origin)
  const file = join(daemon.workspace, '.sandbox/config/capabilities.json')
  writeFileSync(file, readFileSync(file, 'utf8').replace(ref, other))
  t.same(await foldersOf(daemon), [])
  t.same((await inner(daemon, 'mcp.tools', TURN)).tools, [])
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'team' }), { state: 'error' })
  await add(daemon, plugin(other))
  t.equal(readFileSync(join((await foldersOf(daemon))[0]!.dir, 'commands/hello.md'), 'utf8'), 'Say evil.\n')
})

t.test('a change puts the new commit in force, a name carries it, and removing takes every file', async t => {
  const { daemon, ref, origin } = await world(t)
  await add(daemon, plugin(ref))
  write(origin, { 'commands/hello.md': 'Say more.\n' })
  const other = committed(origin)
  await add(daemon, plugin(other))
  const text = async () => readFileSync(join((await foldersOf(daemon))[0]!.dir, 'commands/hello.md'), 'utf8')
  t.equal(await text(), 'Say more.\n')
  t.equal((await refusalOf(() => add(daemon, plugin('0'.repeat(40))))).status, 424)
  t.equal(await text(), 'Say more.\n', 'a change that failed changes nothing')
  await daemon.client.call('POST /capabilities/{id}/rename', { id: 'team', to: 'ours' })
  t.match(await foldersOf(daemon), exactly({ id: 'ours' }))
  t.equal(await text(), 'Say more.\n')
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'ours' }), { state: 'active' })
  await daemon.client.call('DELETE /capabilities/{id}', { id: 'ours' })
  t.same(await foldersOf(daemon), [])
  t.same(stored(daemon), ['.staging'])
})

t.test('what is whole stays when the same commit is saved again, and what is not is fetched anew', async t => {
  const { daemon, ref } = await world(t)
  await add(daemon, plugin(ref))
  const { dir } = (await foldersOf(daemon))[0]!
  const is = () => statSync(dir).ino
  const before = is()
  await add(daemon, plugin(ref))
  t.equal(is(), before, 'turns that run go on reading it')
  writeFileSync(join(dir, 'commands/hello.md'), '')
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'team' }), { state: 'error' })
  await add(daemon, plugin(ref))
  t.match(await daemon.client.call('GET /capabilities/{id}/status', { id: 'team' }), { state: 'active' })
  t.equal(readFileSync(join(dir, 'commands/hello.md'), 'utf8'), 'Say hello.\n')
})

/** An agent program that says which plugins its session was opened with, and what is in the first. */
const PROGRAM = `
import { createInterface } from 'node:readline'
import { readdirSync, readFileSync } from 'node:fs'
const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
let opened = {}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  else if (method === 'session/new') {
    opened = params._meta ?? {}
    send({ id, result: { sessionId: 's-1' } })
  } else if (method === 'session/prompt') {
    const plugins = opened.claudeCode?.options.plugins ?? []
    const [path] = plugins.map(each => each.path)
    const text = JSON.stringify({ plugins, command: path && readFileSync(path + '/commands/hello.md', 'utf8'),
      has: path && readdirSync(path).sort() })
    send({ method: 'session/update', params: { sessionId: 's-1', update:
      { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } } })
    send({ id, result: { stopReason: 'end_turn' } })
  }
}
`

t.test(
  'agent programs get its folder as a plugin, and turns its skills, as far as the persona names it',
  { skip },
  async t => {
    const daemon = await daemonWith(
      t,
      ['agent', 'agents', 'capabilities', 'personas', 'secrets', 'settings', 'skills'],
      { files: { 'docs/agent.mjs': PROGRAM } },
    )
    const { client, workspace } = daemon
    const { ref } = pluginIn(daemon)
    await add(daemon, plugin(ref))
    const command = `${process.execPath} ${join(workspace, 'docs/agent.mjs')}`
    await add(daemon, { id: 'program', kind: 'agent', config: { command } })
    const answer = async (id: string, more: object = {}) => {
      const frames = await runTurn(client, id, 'go', { agent: 'agent/program', ...more })
      const text = frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')
      return JSON.parse(text || JSON.stringify(frames)) as object
    }
    t.match(await answer('one'), {
      plugins: exactly({ type: 'local', path: '/run/sandbox-plugins/team' }),
      command: 'Say hello.\n',
      has: exactly('.gitattributes', 'agents', 'commands', 'hooks', 'server.mjs', 'skills'),
    })
    t.match(
      (await client.call('GET /skills')).filter(({ origin }) => origin === 'plugin'),
      exactly({ id: 'plugin:team:review', owner: 'team', enabled: true, switchable: false }),
    )
    const refused = await refusalOf(() => client.call('POST /skills/remove', { name: 'review' }))
    t.match(refused, { status: 409, message: /review belongs to the plugin team/ })
    await client.call('POST /personas', { id: 'bare', capabilities: ['program'] })
    t.match(await answer('two', { actsAs: 'bare' }), { plugins: exactly() })
    const skills = async (capabilities?: string[]) =>
      (await inner(daemon, 'skills.forTurn', { ...(capabilities && { capabilities }) })).skills.map(({ name }) => name)
    t.same([(await skills()).includes('review'), await skills([])], [true, []])
    await client.call('DELETE /capabilities/{id}', { id: 'team' })
    t.match(await answer('three'), { plugins: exactly() })
  },
)
