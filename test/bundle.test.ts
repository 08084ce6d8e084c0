import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { wallKind } from '../sdk/node/wall/wall.js'
import { shellTurn } from './attack/support.js'
import { folderOf, makeWorkspace, root, spawnDaemon } from './support/daemon.js'
import { add } from './plugins/capabilities/support.js'
import { sshKey, sshServer, withSshd } from './support/ssh-server.js'
import { STARTER } from './plugins/agent/starter-program.js'
import { framesOf } from './support/turns.js'

const run = promisify(execFile)
const bundle = join(root, 'bundle')
const files = globSync('**/*.js', { cwd: bundle, exclude: ['console/**'] }).sort()
/** What acts when it is loaded: tests start each of these as the daemon does. */
const isProgram = (file: string): boolean =>
  /(?:^kernel\/main|^sdk\/cli|^openapi\/describe-build|-?child|-worker|script-agent|bridge|runner)\.js$/.test(file)

/** Files that each one imports before it runs itself. */
const imported = new Map(
  files.map(file => {
    const text = readFileSync(join(bundle, file), 'utf8')
    const named = text.matchAll(/^(?:import|export|\})[^'"\n]*["'](\.{1,2}\/[^"']+)["'];$/gm)
    return [file, [...named].map(([, name = '']) => join(dirname(file), name))]
  }),
)

/** Imports files one after the other in one process; answers those that threw, each with its reason. */
const LOAD = `
const failed = []
for (const file of JSON.parse(process.argv[1]))
  try { await import(file) } catch (error) { failed.push(file + ': ' + error.message.split('\\n')[0]) }
process.stdout.write(JSON.stringify({ failed, modules: process.moduleLoadList }))
process.exit()`

const load = async (names: readonly string[]): Promise<{ failed: string[]; modules: string[] }> => {
  const args = ['--input-type=module', '--eval', LOAD, JSON.stringify(names.map(name => join(bundle, name)))]
  const { stdout } = await run(process.execPath, args, { maxBuffer: 32 * 1024 * 1024, timeout: 120_000 })
  return JSON.parse(stdout) as { failed: string[]; modules: string[] }
}

t.test('every file of the bundle loads', async t => {
  const loaded = files.filter(file => !isProgram(file))
  t.ok(loaded.length > 200)
  t.same((await load(loaded)).failed, [])
  for (const file of files.filter(isProgram))
    await t.resolves(run(process.execPath, ['--check', join(bundle, file)]), file)
})

t.test('no file of the bundle asks for what only the older format of modules has', t => {
  t.same(
    files.filter(file => /(?<![\w.$])__(?:dirname|filename)\b/.test(readFileSync(join(bundle, file), 'utf8'))),
    [],
  )
  t.end()
})

t.test('no files of the bundle wait for each other', t => {
  t.ok([...imported.values()].flat().length > 1_000)
  const visited = new Set<string>()
  const cycleFrom = (file: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (visited.has(file)) return undefined
    visited.add(file)
    return imported
      .get(file)!
      .map(next => cycleFrom(next, [...path, file]))
      .find(cycle => cycle !== undefined)
  }
  t.same(
    files.map(file => cycleFrom(file, [])).filter(cycle => cycle !== undefined),
    [],
  )
  t.end()
})

t.test('a daemon loads no built-in part that it does not use', async t => {
  const daemon = files.filter(file => /^chunks\/daemon-/.test(file))
  t.equal(daemon.length, 1)
  const { failed, modules } = await load(daemon)
  t.same(failed, [])
  t.ok(modules.includes('NativeModule http'))
  t.notOk(modules.includes('NativeModule internal/deps/undici/undici'), 'all of fetch is loaded when it is used')
})

const FAILED = /"level":"(?:warn|error|fatal)"/
const CONNECTED = { kind: 'result', ok: true, status: { state: 'active' } }

const skip = (await wallKind()) === 'none' ? 'this machine has no wall' : false

t.test('an agent program calls a tool of the sandbox', { skip }, async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'agent.mjs': STARTER })
  const daemon = await spawnDaemon(t, where)
  const config = { command: `node ${join(where.workspace, 'agent.mjs')}` }
  t.match((await add(daemon, { id: 'starter', kind: 'agent', config })).at(-1), CONNECTED)
  await daemon.client.call('POST /agent', { conversationId: 'c', agent: 'agent/starter', isolated: true, prompt: 'go' })
  const frames = (await framesOf(daemon.client, 'c').all()).map(({ event }) => event)
  const prose = frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')
  t.match(prose, /Ask .*Delegate .*Todo.*; false text/)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.notMatch(daemon.stderr(), FAILED)
  t.equal(await daemon.terminate(), 0)
})

t.test('a server is reached over ssh with a key', { skip, ...withSshd() }, async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const daemon = await spawnDaemon(t, where)
  await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  const keys = folderOf(t)
  const key = sshKey(keys, 'mine')
  const server = await sshServer(t, keys, [key.public])
  const user = /\/\/([^@]+)@/.exec(server.url(''))![1]!
  const config = { host: 'localhost', port: server.port, user, auth: 'key', privateKey: key.private } as const
  t.match((await add(daemon, { id: 'box', kind: 'ssh', config })).at(-1), CONNECTED)
  t.same(await shellTurn(daemon.client, 'c', ['ssh box echo reached']), ['reached'])
  t.notMatch(daemon.stderr(), FAILED)
  t.equal(await daemon.terminate(), 0)
})
