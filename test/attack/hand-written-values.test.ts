import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { put } from '../plugins/git/support.js'
import { filesWith, openVaultOf } from '../plugins/secrets/support.js'
import { daemonWith } from '../support/daemon.js'
import { meantInClear } from '../support/secret-search.js'
import { ROUTED } from './calls.js'

const VALUE = 'tr0ub4dor-and-by-hand'
const FILE = '.sandbox/config/capabilities.json'
/** A connection of each kind whose secret somebody wrote into the file instead of storing it. */
const PLANTED = {
  program: { kind: 'agent', config: { command: 'node', env: `KEY=${VALUE}` } },
  server: { kind: 'mcp', config: { url: 'https://tools.example.org/mcp', headers: `authorization: ${VALUE}` } },
  git: { kind: 'cli', config: { provider: 'github', token: VALUE } },
  ssh: { kind: 'ssh', config: { host: 'shell.example.org', user: 'ada', privateKey: VALUE } },
}
const GROUPS = ['capabilities', 'secrets', 'agent', 'agents', 'settings', 'personas', 'skills', 'activity', 'needs']

t.test('a value that stands in a file of connections is moved by a call that changes it, never by a read', async t => {
  const daemon = await daemonWith(t, GROUPS)
  const { client, workspace, data } = daemon
  await openVaultOf(daemon)
  put(workspace, { [FILE]: JSON.stringify(PLANTED) })
  meantInClear(daemon, `workspace: ${FILE}`, 'somebody wrote them there')
  const before = readFileSync(join(workspace, FILE), 'utf8')
  const { capabilities } = await client.call('GET /capabilities')
  t.ok(capabilities.length > 1)
  t.ok(
    capabilities.some(({ secrets }) => secrets.length > 0),
    'it is listed as a secret field',
  )
  const reads = ROUTED.filter(({ method, path }) => method === 'GET' && !/attach|events|view/.test(path))
  await Promise.all(
    reads.map(async ({ path }) => {
      const answer = await daemon.fetch(path.replace('c-1', 'program')).catch(() => undefined)
      const streams = /event-stream/.test(answer?.headers.get('content-type') ?? '')
      const text = streams ? await answer!.body!.cancel().then(() => '') : await answer?.text()
      t.notMatch(text ?? '', VALUE, `${path} does not show it`)
    }),
  )
  t.equal(readFileSync(join(workspace, FILE), 'utf8'), before, 'the file is as it was')
  t.same(filesWith(data, VALUE), [])
  t.same(await client.call('GET /secrets'), { keys: [] })
  const { status } = (await client.call('GET /capabilities')).capabilities.find(({ id }) => id === 'program')!
  t.equal(status.state === 'active', false)
  const set = { id: 'program', field: 'env', value: 'KEY=another' }
  await client.call('POST /capabilities/{id}/secret', set).catch(() => undefined)
  t.notMatch(JSON.parse(readFileSync(join(workspace, FILE), 'utf8')).program.config.env, VALUE)
})
