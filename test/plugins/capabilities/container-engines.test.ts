import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  globSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ENGINE_CHILD } from '../../../plugins/capabilities/docker/engine-process.js'
import { runtimeScript } from '../../../plugins/capabilities/docker/engine-script.js'
import { ContainerEngines } from '../../../plugins/capabilities/docker/engines.js'
import { listEnv } from '../../../sdk/node/programs/run.js'
import { folderOf } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

const LONG_MS = 15_000

const until = async (holds: () => boolean): Promise<boolean> => {
  for (const end = Date.now() + LONG_MS; !holds() && Date.now() < end;) await delay(25)
  return holds()
}

/** A program in the place of an engine: it says its pid to each connection, and keeps it. */
const KEEPS = `
const kept = []
process.on('message', (_, socket) => kept.push(socket.on('error', () => {})) && socket.write(String(process.pid)))
process.once('disconnect', () => process.exit())
console.log('ready')
`
/** It answers that it is ready, and takes nothing any more. */
const STOPS = `process.stdout.write('ready\\n', () => process.kill(process.pid, 'SIGSTOP'))`

/** The engines of a daemon, of which `c` is the only conversation with a turn. */
const enginesWith = (t: Test, script: string, settings: string | { readonly insecure: readonly string[] }) => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  for (const path of [workspace, data]) mkdirSync(path)
  const command = {
    program: process.execPath,
    args: ['-e', script, '/lands'],
    env: listEnv(),
    cwd: '/',
    enforced: true,
  }
  const engines = new ContainerEngines({
    // These are the only calls that engines make.
    host: {
      call: async (name: string) => (name === 'agent.walled' ? command : { ok: true }),
      serves: async () => true,
      place: { folder: join(data, 'capabilities'), data, workspace },
      signal: new AbortController().signal,
      log: { warn: (message: string) => t.fail(message) },
    } as unknown as ConstructorParameters<typeof ContainerEngines>[0]['host'],
    settings: async () => settings,
  })
  t.teardown(() => engines.endAll())
  const dial = async (): Promise<Socket> => {
    // The path of a socket has 107 bytes at most.
    const at = openSync(await engines.open('c'), 'r')
    const client = connect({ path: `/proc/self/fd/${at}/engine.sock`, allowHalfOpen: true })
    client.on('error', () => client.destroy())
    t.teardown(() => client.destroy())
    await once(client, 'connect')
    closeSync(at)
    return client
  }
  return { engines, dial, folder: join(data, 'capabilities') }
}

const ANY = { insecure: [] }
const openFiles = (): number => readdirSync('/proc/self/fd').length
const said = async (client: Socket): Promise<string> => String((await once(client, 'data'))[0])
const within = (work: Promise<unknown>): Promise<string> =>
  Promise.race([work.then(() => 'over'), delay(LONG_MS, 'waits', { ref: false })])

t.test('connections that are refused take nothing, and hold up nothing', async t => {
  const { engines, dial } = enginesWith(t, KEEPS, 'the container engine is not connected any more')
  const before = openFiles()
  for (let n = 0; n < 80; n++) {
    const client = await dial()
    client.end('GET /_ping HTTP/1.1\r\nhost: engine\r\n\r\n')
    t.match(await said(client), /^HTTP\/1\.1 503 [^]+"the container engine is not connected any more"/)
    client.destroy()
  }
  t.ok(await until(() => openFiles() < before + 20), `${before} open files before, ${openFiles()} now`)
  const stays = await dial()
  stays.write('GET /_ping HTTP/1.1\r\n')
  await said(stays)
  t.equal(await within(engines.release('c')), 'over', 'somebody who keeps a refused connection holds up no end')
})

t.test('an engine ends although programs keep connections to it', async t => {
  const { engines, dial } = enginesWith(t, KEEPS, ANY)
  const client = await dial()
  const pid = Number(await said(client))
  t.equal(await within(engines.release('c')), 'over')
  t.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  t.ok(await until(() => client.readableEnded || client.destroyed), 'the program notices')
})

t.test('an engine that takes no connection any more fills no table of the daemon', async t => {
  const { engines, dial } = enginesWith(t, STOPS, ANY)
  let closed = 0
  for (let n = 0; n < 100; n++)
    (await dial())
      .once('close', () => closed++)
      .once('end', () => closed++)
      .resume()
  t.ok(await until(() => closed >= 30), `${closed} were closed`)
  t.equal(await within(engines.release('c')), 'over')
  t.ok(await until(() => closed >= 99), `${closed} were closed, of which one was sent before it stopped`)
})

t.test('other settings end an engine, and leave its socket to the turn that runs', async t => {
  const { engines, dial } = enginesWith(t, KEEPS, ANY)
  const first = await dial()
  const pid = await said(first)
  await engines.restart()
  t.ok(await until(() => first.readableEnded || first.destroyed))
  const [socket = ''] = globSync(join(await engines.open('c'), '*'))
  t.match(socket, /engine\.sock$/)
  t.not(await said(await dial()), pid)
})

t.test('a turn that reaches something else, or whose work is of another trust, ends the engine', async t => {
  const { engines, dial } = enginesWith(t, KEEPS, ANY)
  await engines.open('c', { trust: 'lands', reach: '["one"]' })
  const pid = await said(await dial())
  await engines.open('c', { trust: 'lands', reach: '["one"]' })
  t.equal(await said(await dial()), pid)
  await engines.open('c', { trust: 'lands', reach: '["two"]' })
  t.throws(() => process.kill(Number(pid), 0), { code: 'ESRCH' })
  const next = await said(await dial())
  await engines.open('c', { trust: 'waits', reach: '["two"]' })
  t.throws(() => process.kill(Number(next), 0), { code: 'ESRCH' })
})

t.test('what a turn left in the background finds no engine of a turn that reaches more', async t => {
  const { engines, dial } = enginesWith(t, KEEPS, ANY)
  const narrow = await engines.open('c', { trust: 'lands', reach: '["docs"]' })
  t.ok(existsSync(join(narrow, 'engine.sock')))
  const wide = await engines.open('c', { trust: 'lands', reach: '[]' })
  t.match(await said(await dial()), /^\d+$/)
  t.notOk(existsSync(join(narrow, 'engine.sock')))
  t.ok(existsSync(join(wide, 'engine.sock')))
  t.equal(await engines.open('c', { trust: 'lands', reach: '["docs"]' }), narrow, 'its own comes back')
  t.ok(existsSync(join(narrow, 'engine.sock')))
})

t.test('what is left of conversations is removed, but not what a first turn opens meanwhile', async t => {
  const { engines, dial, folder } = enginesWith(t, KEEPS, ANY)
  mkdirSync(join(folder, 'engine-stores/gone/lands'), { recursive: true })
  await engines.open('c')
  await engines.sweep()
  t.same(readdirSync(join(folder, 'engine-stores')), [])
  t.match(await said(await dial()), /^\d+$/)
})

t.test('the settings of a container are changed wherever the program is installed', t => {
  const folder = join(folderOf(t), "o'brien $& \"; exit 7; '")
  const bundle = join(folder, 'bundle')
  mkdirSync(bundle, { recursive: true })
  const [node, child, script] = [join(folder, 'node'), join(folder, 'child.js'), join(folder, 'runtime')]
  symlinkSync(process.execPath, node)
  symlinkSync(ENGINE_CHILD, child)
  writeFileSync(script, runtimeScript(node, child))
  const config = join(bundle, 'config.json')
  for (const how of [['--bundle', bundle], ['-b', bundle], [`--bundle=${bundle}`]]) {
    writeFileSync(config, JSON.stringify({ mounts: [{ destination: '/proc', type: 'proc', source: 'proc' }] }))
    // There is no crun here, which it starts last.
    const { status, stderr } = spawnSync('/bin/sh', [script, '--root', '/r', 'create', ...how, 'id'], {
      env: { PATH: join(folder, 'none') },
      encoding: 'utf8',
    })
    t.equal(status, 127, stderr)
    t.match(JSON.parse(readFileSync(config, 'utf8')), { mounts: exactly({ destination: '/proc', type: 'bind' }) })
  }
  t.end()
})
