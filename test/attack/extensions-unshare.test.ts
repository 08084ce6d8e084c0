import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { writeExtension } from '../plugins/extensions/support.js'
import { hiding } from './support.js'

const STARTER = hiding('bwrap')
const works = process.getuid?.() === 0 && spawnSync(STARTER[0]!, [...STARTER.slice(1), 'true']).status === 0
const ID = 'evil.all'
const PLANT = 'planted-for-the-daemon-alone'

/** Says of each attempt that succeeded what it got; the last line says that it is done. */
const PROGRAM = `
const fs = require('node:fs')
const { execFileSync } = require('node:child_process')
const [data, daemon] = process.argv.slice(2)
const attempts = {
  own: () => fs.existsSync(__filename) && 'seen',
  key: () => fs.readFileSync(data + '/machine.key', 'hex'),
  record: () => fs.readFileSync(data + '/daemon.json', 'utf8'),
  planted: () => fs.writeFileSync(data + '/planted', 'x') ?? (fs.existsSync('/proc/' + daemon) && 'of the daemon'),
  others: () => fs.readdirSync(data + '/extensions/data').filter(name => name !== '${ID}').join(),
  code: () => fs.writeFileSync(__filename, '') ?? 'written',
  system: () => fs.writeFileSync('/etc/planted', 'x') ?? 'written',
  daemon: () => process.kill(Number(daemon), 'SIGKILL') && 'killed',
  environment: () => execFileSync('sh', ['-c', 'cat /proc/[0-9]*/environ | tr "\\\\0" "\\\\n" | grep ^PLANTED= || :'], 
    { encoding: 'utf8' }),
  mount: () => execFileSync('mount', ['-t', 'tmpfs', 'none', '/mnt'], { stdio: 'ignore' }) && 'mounted',
  enter: () => execFileSync('nsenter', ['-t', '1', '-m', 'cat', data + '/machine.key'], { encoding: 'utf8' }),
}
const did = []
for (const [name, attempt] of Object.entries(attempts))
  try { const got = attempt(); if (got) did.push(name + ': ' + got) } catch {}
fs.writeFileSync(process.env.SANDBOX_EXTENSION_DATA + '/found.json', JSON.stringify(did))
setInterval(() => {}, 1e6)
`

/** A backend that answers with what it got. */
const serverFor = (data: string, daemon: number): string => `
import fs from 'node:fs'
import net from 'node:net'
const got = []
const attempts = {
  ...Object.fromEntries(
    [
      '/etc/passwd', '/usr/bin/env', '/dev/old', '/proc/1/root', '/proc/1/environ', '/proc/${daemon}/environ',
      '/sys/kernel', ${JSON.stringify(data)} + '/machine.key', '..', '/runtime/node',
    ].map(path => ['read ' + path, () =>
      fs.statSync(path).isDirectory() ? fs.readdirSync(path) : fs.readFileSync(path)]),
  ),
  write: () => fs.writeFileSync(${JSON.stringify(join(data, 'planted'))}, 'x') ?? 'written',
  kill: () => process.kill(${daemon}, 'SIGKILL'),
}
for (const [name, attempt] of Object.entries(attempts)) try { attempt(); got.push(name) } catch {}
export const activate = async host => {
  const socket = net.connect({ host: '127.0.0.1', port: 22 })
  await new Promise(done => socket.on('error', done).on('connect', () => done(got.push('network'))))
  host.routes.handle('GET /got', {}, () => ({ body: got }))
}
`

t.test(
  'without bubblewrap a backend and a program of an extension get nothing of the machine',
  { skip: !works && 'only the superuser can hide programs' },
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
    makeWorkspace(workspace)
    const daemon = await spawnDaemon(t, { workspace, data, starter: STARTER, env: { PLANTED: PLANT } })
    const { client } = daemon
    const command = `node evil.cjs ${data} ${daemon.pid}`
    const parts = { server: 'server.js', contributes: { processes: [{ name: 'evil', command }] } }
    writeExtension(
      { workspace },
      'all',
      { publisher: 'evil', name: 'all', ...parts },
      {
        'evil.cjs': PROGRAM,
        'server.js': serverFor(data, daemon.pid),
      },
    )
    const until = async <T>(find: () => Promise<T | undefined>): Promise<T> => {
      for (const end = Date.now() + 20_000; ;) {
        const found = await find()
        if (found !== undefined) return found
        if (Date.now() > end) throw new Error('it did not become as expected')
        await new Promise(resolve => setTimeout(resolve, 50))
      }
    }
    const { digest } = await until(async () =>
      (await client.call('GET /extensions')).pending.find(({ id }) => id === ID),
    )
    await client.call('POST /extensions/{id}/approve', { id: ID, digest })
    const backend = await until(async () => {
      const found = (await client.call('GET /extensions')).extensions.find(({ id }) => id === ID)?.backend
      return found?.state === 'starting' ? undefined : found
    })
    t.match(backend, { state: 'running' })
    const headers = { authorization: `Bearer ${daemon.session}` }
    const answer = await fetch(`${daemon.url}/x/${ID}/got`, { headers })
    t.same(await answer.json(), [], 'every attempt of the backend is refused')

    await client.call('POST /extensions/{id}/processes/{name}/start', { id: ID, name: 'evil' })
    const found = join(data, 'extensions/data', ID, 'found.json')
    await until(async () => (existsSync(found) && readFileSync(found, 'utf8').endsWith(']') ? true : undefined))
    t.same(JSON.parse(readFileSync(found, 'utf8')), ['own: seen'], 'it sees its own code, and every attempt is refused')
    t.notOk(existsSync(join(data, 'planted')))
    t.notOk(existsSync('/etc/planted'))
    t.ok((await client.call('GET /extensions')).extensions.length > 0, 'the daemon goes on')
    await client.call('POST /extensions/{id}/processes/{name}/stop', { id: ID, name: 'evil' })
  },
)
