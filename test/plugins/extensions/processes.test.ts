import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BACKEND_LIMITS } from '../../../plugins/extensions/backend/process/limits.js'
import type { ExtensionProcessStatus } from '../../../plugins/extensions/contract.js'
import { processSessionOf } from '../../../plugins/extensions/processes/process-sessions.js'
import { SupervisedProcess } from '../../../plugins/extensions/processes/supervised-process.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { endTerminals, folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { inner } from '../agent/support.js'
import { attach } from '../system/terminals/terminals-support.js'
import { approvePending, daemonWithBackends, isRunning, listedUntil, writeExtension } from './support.js'

const daemon = await daemonWithBackends(t, ['secrets', 'activity', 'logs', 'system'])
const { client } = daemon
const id = 'ada.web'
const PROGRAM = `
const { createServer } = require('node:http')
const { readFileSync, writeFileSync } = require('node:fs')
const at = process.env.SANDBOX_SECRETS_DIR
const attempts = []
for (const path of [process.argv[1], '/etc/passwd.new'])
  try { writeFileSync(path, 'x'); attempts.push(path) } catch {}
console.log('listening for ' + process.env.GREETING)
process.stdin.on('data', line => console.log('heard ' + line))
createServer((request, response) => {
  if (request.url === '/end') return process.exit(3)
  const secret = () => { try { return readFileSync(at + '/WORD', 'utf8') } catch { return 'none' } }
  const { argv, env } = process
  const told = { secret: secret(), attempts, args: argv.slice(2), env: Object.keys(env) }
  response.end(JSON.stringify({ ...told, workspace: env.SANDBOX_WORKSPACE }))
}).listen(Number(process.env.PORT), '127.0.0.1')
`
const manifest = (more: object = {}) => ({
  ...{ publisher: 'ada', name: 'web', version: '1.0.0' },
  contributes: {
    settings: [{ key: 'greeting', type: 'string', title: 'Greeting', default: 'everybody', env: 'GREETING' }],
    processes: [
      { name: 'web', command: 'node web.cjs "two words"', port: 'auto', secrets: ['WORD'], ...more },
      { name: 'gone', command: './gone' },
      { name: 'none', command: 'no-such-program-here' },
      { name: 'once', command: 'node -e "console.log(1)"' },
    ],
  },
})
const folder = writeExtension(daemon, 'web', manifest(), { 'web.cjs': PROGRAM })
const call = (verb: 'start' | 'stop', name: string) =>
  client.call(`POST /extensions/{id}/processes/{name}/${verb}`, { id, name })
const stateOf = (name: string) => client.call('GET /extensions/{id}/processes/{name}', { id, name })
const seen = (name: string) => inner(daemon, 'GET /extensions/{id}/processes/{name}', { id, name })
const until = async (name: string, fits: (status: ExtensionProcessStatus) => boolean) => {
  for (const end = Date.now() + 15_000; ;) {
    const status = await seen(name)
    if (fits(status)) return status
    if (Date.now() > end) throw new Error(`${name} did not become as expected: ${JSON.stringify(status)}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
const answerOf = async (
  port: number,
): Promise<{ secret: string; attempts: string[]; args: string[]; env: string[] }> => {
  for (const end = Date.now() + 15_000; ;)
    try {
      return (await (await fetch(`http://127.0.0.1:${port}/`)).json()) as never
    } catch (error) {
      if (Date.now() > end) throw error
      await new Promise(resolve => setTimeout(resolve, 20))
    }
}
const status = async (asked: Promise<unknown>) => (await refusalOf(() => asked)).status

t.test('programs are started by maintainers, once their extension is approved', async t => {
  const { client: lander } = await daemon.token('land')
  const { client: reader } = await daemon.token('read')
  const web = { id, name: 'web' }
  t.equal((await fetch(`${daemon.url}/extensions/${id}/processes/web`)).status, 401)
  t.equal(await status(lander.call('POST /extensions/{id}/processes/{name}/start', web)), 403)
  t.equal(await status(lander.call('POST /extensions/{id}/processes/{name}/stop', web)), 403)
  t.equal(await status(client.call('GET /extensions/{id}/processes/{name}', { id, name: 'No Slug' })), 400)
  t.equal(await status(stateOf('other')), 404)
  t.equal(
    await status(client.call('POST /extensions/{id}/processes/{name}/start', { id: 'no.such', name: 'web' })),
    404,
  )
  t.equal(await status(call('stop', 'other')), 404)
  t.match(await refusalOf(() => call('start', 'web')), { status: 409, message: /waits for approval/ })
  t.same(await reader.call('GET /extensions/{id}/processes/{name}', web), {
    ...{ name: 'web', running: false, state: 'stopped', session: 'proc-ada-web-web', restarts: 0 },
  })
  await approvePending(daemon, id)
  t.match(await refusalOf(() => call('start', 'web')), { status: 409, message: /secret WORD/ })
  t.match(await refusalOf(() => call('start', 'gone')), { status: 409, message: /gone is not there/ })
  t.match(await refusalOf(() => call('start', 'none')), { status: 501, message: /no-such-program-here/ })
})

t.test('a program runs with its port, settings and secrets, its own code read-only', async t => {
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /secrets', { key: 'WORD', value: 'open sesame' })
  await call('start', 'web')
  const found = await stateOf('web')
  t.match(found, { running: true, state: 'running', pid: Number, port: Number, since: Number, restarts: 0 })
  const answer = await answerOf(found.port!)
  t.match(answer, { secret: 'open sesame', args: exactly('two words'), workspace: daemon.workspace })
  t.same(answer.attempts, [], 'neither its code nor the system can be written')
  t.notOk(answer.env.some(name => /TOKEN|CONTROL|KEY/.test(name)))
  const logged = () => readFileSync(join(daemon.data, 'logs/terminals/proc-ada-web-web.log'), 'utf8')
  await listedUntil(daemon, () => logged().includes('listening for everybody'))
  await call('start', 'web')
  t.equal((await stateOf('web')).pid, found.pid, 'one that runs is left alone')
  await client.call('POST /secrets', { key: 'WORD', value: 'another' })
  for (const end = Date.now() + 10_000; (await answerOf(found.port!)).secret !== 'another' && Date.now() < end;);
  t.match(await answerOf(found.port!), { secret: 'another' }, 'without a new process')
  t.equal((await stateOf('web')).pid, found.pid)
})

t.test('a process runs in a terminal that maintainers attach to', async t => {
  const { session, pid } = await stateOf('web')
  t.equal(session, 'proc-ada-web-web')
  const { sessions } = await client.call('GET /system/terminals')
  t.match(
    sessions.find(({ name }) => name === session),
    { kind: 'process', label: 'web of ada.web', running: true },
  )
  const { client: reader } = await daemon.token('read')
  t.equal(await status(reader.call('GET /system/terminals/{name}/scrollback', { name: session })), 403)
  const terminal = await attach(t, daemon, session)
  await terminal.shows(/listening for everybody/)
  terminal.type('typed by a person\r')
  await terminal.shows(/heard typed by a person/)
  await client.call('DELETE /system/terminals/{name}', { name: session })
  t.ok(await until('web', ({ running, pid: now }) => running && now !== pid), 'its rule starts it again')
  t.notOk(isRunning(pid!))
  await call('stop', 'web')
  t.notOk((await client.call('GET /system/terminals')).sessions.some(({ name }) => name === session))
  await call('start', 'web')
  await answerOf((await stateOf('web')).port!)
  t.same(
    ['a'.repeat(60), 'b'.repeat(60)].map(name => processSessionOf(`ada.${name}`, 'web').length),
    [63, 63],
    'a long name is cut',
  )
})

t.test('a failed process is restarted on its port, a finished one is not', async t => {
  const before = await stateOf('web')
  await fetch(`http://127.0.0.1:${before.port}/end`).catch(() => {})
  t.match(await until('web', ({ state }) => state === 'restarting'), { exitCode: 3, detail: /starts again in [12] s/ })
  const after = await until('web', ({ running }) => running)
  t.match(after, { restarts: 1, port: before.port })
  t.not(after.pid, before.pid)
  await answerOf(after.port!)
  await call('start', 'once')
  t.match(await until('once', ({ state }) => state === 'exited'), { running: false, exitCode: 0 })
})

t.test('stopping and switching off leave no process and no file of a secret', async t => {
  const { pid, port } = await stateOf('web')
  await call('stop', 'web')
  t.notOk(isRunning(pid!))
  t.match(await stateOf('web'), { running: false, state: 'stopped' })
  t.ok(await fetch(`http://127.0.0.1:${port}/`).catch(() => true))
  await call('stop', 'web')
  await call('start', 'web')
  const again = await stateOf('web')
  const places = readdirSync('/dev/shm').filter(name => name.startsWith('sandbox-secrets-'))
  t.ok(places.length > 0)
  await client.call('POST /extensions/{id}/enabled', { id, enabled: false })
  t.notOk(isRunning(again.pid!))
  t.match(await refusalOf(() => call('start', 'web')), { status: 409, message: /switched off/ })
  await call('stop', 'web')
  t.notOk(
    places.some(name => readdirSync(join('/dev/shm', name)).some(at => existsSync(join('/dev/shm', name, at, 'WORD')))),
  )
  await client.call('POST /extensions/{id}/enabled', { id, enabled: true })
  t.match(await stateOf('web'), { running: false }, 'without autoStart nobody starts it')
})

t.test('an automatic process stays stopped after a stop, and restarts with new code', async t => {
  writeExtension(daemon, 'web', manifest({ autoStart: true }))
  await listedUntil(daemon, ({ pending }) => pending.some(each => each.id === id))
  await approvePending(daemon, id)
  t.match(await stateOf('web'), { running: false }, 'a person stopped it, so it waits for a person')
  await call('start', 'web')
  const first = await until('web', ({ running }) => running)
  writeExtension(daemon, 'web', manifest({ autoStart: true }), { 'more.txt': 'x' })
  t.match(await until('web', ({ running, pid }) => running && pid !== first.pid), { restarts: 0 })
  t.ok(existsSync(folder))
})

t.test('an automatic process runs once it is approved, and not while its manifest does not parse', async t => {
  const own = 'ada.auto'
  const processes = [{ name: 'tick', command: 'sleep 1000', autoStart: true }]
  const manifest = { publisher: 'ada', name: 'auto', contributes: { processes } }
  const folder = writeExtension(daemon, 'auto', manifest)
  await listedUntil(daemon, ({ pending }) => pending.some(each => each.id === own))
  const tick = () => inner(daemon, 'GET /extensions/{id}/processes/{name}', { id: own, name: 'tick' })
  t.match(await tick(), { running: false })
  await approvePending(daemon, own)
  const { pid: first, running } = await tick()
  t.ok(running)
  t.ok(isRunning(first!))
  writeFileSync(join(folder, 'intentic-extension.json'), '{"publisher": "ada", ')
  await listedUntil(daemon, ({ invalid }) => invalid.length > 0 && !isRunning(first!))
  writeExtension(daemon, 'auto', manifest)
  await listedUntil(daemon, ({ extensions }) => extensions.some(each => each.id === own))
  let pid = first
  for (const end = Date.now() + 15_000; (pid ?? first) === first && Date.now() < end;) pid = (await tick()).pid
  t.ok(isRunning(pid!), 'once its manifest parses again it runs without another approval')
  await client.call('POST /extensions/{id}/remove', { id: own })
  t.notOk(isRunning(pid!), 'a removal ends it')
})

t.test('a process that ends at once is not restarted after five times', async t => {
  const starts: number[] = []
  const told: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const process = new SupervisedProcess(
    { name: 'bad', command: 'false', restart: 'always' },
    {
      ...{ limits: { ...BACKEND_LIMITS, backoff: { first: 40, most: 100 } }, session: 'proc-bad' },
      purpose: () => `start ${starts.length}`,
      command: async () => {
        starts.push(performance.now())
        return { program: '/bin/false', args: [], env: {}, ended: () => {} }
      },
      run: async purpose => ({ purpose, running: false, exitCode: 1 }),
      end: async () => {},
      exited: () => {},
      changed: () => {},
      quarantined: why => {
        told.push(why)
        resolve()
      },
    },
  )
  await process.start()
  await promise
  t.equal(starts.length, 5)
  t.ok(starts[2]! - starts[1]! > 60, 'each wait is longer')
  t.match(process.status, { state: 'quarantined', restarts: 4, exitCode: 1 })
  t.same(told, ['it ended with 1'])
  await process.start()
  t.match(process.status, { restarts: 0 }, 'a person ends the quarantine')
  await process.stop()
})

t.test('with tmux programs outlive the daemon, and the next one takes over what still may run', async t => {
  const where = folderOf(t)
  const [workspace, data] = [join(where, 'workspace'), join(where, 'data')]
  makeWorkspace(workspace)
  t.teardown(() => endTerminals(data))
  const sleeper = (name: string, more: object = {}) =>
    writeExtension({ workspace }, name, {
      ...{ publisher: 'ada', name, version: '1.0.0', ...more },
      contributes: { processes: [{ name: 'tick', command: 'sleep 1000' }] },
    })
  for (const name of ['kept', 'changed', 'gone']) sleeper(name)
  sleeper('calls', { permissions: { daemon: ['GET /agents'] } })
  const first = await spawnDaemon(t, { workspace, data })
  const ids = ['ada.kept', 'ada.calls', 'ada.changed', 'ada.gone']
  for (const id of ids) {
    const { pending } = await first.client.call('GET /extensions')
    await first.client.call('POST /extensions/{id}/approve', {
      id,
      digest: pending.find(each => each.id === id)!.digest,
    })
    await first.client.call('POST /extensions/{id}/processes/{name}/start', { id, name: 'tick' })
  }
  const pidsAt = async ({ client }: Pick<typeof first, 'client'>) =>
    Promise.all(
      ids.map(async id => (await client.call('GET /extensions/{id}/processes/{name}', { id, name: 'tick' })).pid),
    )
  const before = await pidsAt(first)
  await first.kill9()
  for (const pid of before) t.ok(isRunning(pid!))
  const tick = { contributes: { processes: [{ name: 'tick', command: 'sleep 1000' }] } }
  writeExtension({ workspace }, 'changed', { publisher: 'ada', name: 'changed', version: '1.0.1', ...tick }, { a: 'a' })
  writeExtension({ workspace }, 'gone', {
    ...{ publisher: 'ada', name: 'gone', permissions: { daemon: ['GET /agents'] } },
    contributes: { processes: [{ name: 'tick', command: 'sleep 1000' }] },
  })
  const second = await spawnDaemon(t, { workspace, data })
  let after = await pidsAt(second)
  for (const end = Date.now() + 20_000; after.filter(Boolean).length < 3 && Date.now() < end;) {
    // More calls in a minute would be too many.
    await new Promise(resolve => setTimeout(resolve, 250))
    after = await pidsAt(second)
  }
  t.equal(after[0], before[0], 'the same process')
  t.ok(after[1] && after[1] !== before[1], 'one with a credential is started anew')
  t.ok(after[2] && after[2] !== before[2], 'one with other code too')
  t.equal(after[3], undefined, 'one that waits for approval is ended')
  for (const pid of before.slice(1)) t.notOk(isRunning(pid!))
  await second.client.call('POST /extensions/{id}/processes/{name}/stop', { id: 'ada.kept', name: 'tick' })
  t.notOk(isRunning(before[0]!), 'the next daemon ends it too')
})
