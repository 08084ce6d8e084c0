import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { LogFile, LogLine } from '../../../plugins/logs/contract.js'
import type { Client } from '../../../sdk/client.js'
import { daemonWith, endTerminals, folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { People } from '../../support/people.js'
import { tookLess } from '../../support/in-time.js'

const makeIn = (folder: string): string => {
  const workspace = join(folder, 'workspace')
  makeWorkspace(workspace)
  return workspace
}
/** The first line of a log that fits, as its stream tells it. */
const followed = async (
  client: Client,
  name: string,
  fits: (line: LogLine) => boolean,
  from?: number,
): Promise<LogLine> => {
  for await (const event of await client.call('GET /logs/follow', { name, ...(from !== undefined && { from }) })) {
    if ('text' in event && fits(event)) return event
  }
  throw new Error(`${name} is over`)
}
const appears = async (client: Client, fits: (file: LogFile) => boolean): Promise<LogFile> => {
  for (;;) {
    const found = (await client.call('GET /logs')).files.find(fits)
    if (found) return found
  }
}

t.test('a real error in a group is followed within a second, and found with its words afterwards', async t => {
  const folder = folderOf(t)
  const daemon = await spawnDaemon(t, { workspace: makeIn(folder), data: join(folder, 'data') })
  const { client, once } = daemon
  writeFileSync(join(folder, 'data', 'system', 'terminals'), 'in the way')
  const fails = () => t.rejects(once.call('POST /system/terminals', {}), { name: 'Refusal' })
  await fails()
  const { sizeBytes } = await appears(client, ({ name }) => name === 'daemon.log')
  const line = followed(
    client,
    'daemon.log',
    ({ level, text }) => level === 'error' && text.includes('EEXIST'),
    sizeBytes,
  )
  const at = Date.now()
  await fails()
  const { text, level } = await line
  t.ok(tookLess(Date.now() - at, 1_000), `${Date.now() - at} ms`)
  t.equal(level, 'error')
  const found = await client.call('GET /logs/file', { name: 'daemon.log', find: 'EEXIST', level: 'error' })
  t.ok(found.text.split('\n').includes(text))
})

t.test('what a terminal shows of a credential is in no log, only what stands in its place', async t => {
  const folder = folderOf(t)
  const data = join(folder, 'data')
  t.teardown(() => endTerminals(data))
  const { client } = await spawnDaemon(t, { workspace: makeIn(folder), data })
  const { ticket } = await client.call('POST /system/ws-ticket', { for: 'terminal', name: 'web-a' })
  await client.call('POST /system/terminals', {
    name: 'web-a',
    command:
      `echo "ws://x/system/terminal?session=web-a&ticket=${ticket}"; echo 'authorization: Bearer of-mine'; `
      + 'echo la""st',
  })
  const { name, kind, live } = await appears(client, file => file.kind === 'terminal' && file.sizeBytes > 0)
  t.same({ name, kind, live }, { name: 'terminals/web-a.log', kind: 'terminal', live: true })
  await followed(client, name, ({ text }) => text === 'last', 0)
  const { text } = await client.call('GET /logs/file', { name })
  t.notMatch(text, new RegExp(`${ticket}|of-mine`))
  t.match(text, /\n.*ticket=\[redacted\]\n/)
  t.match(text, /\nauthorization: \[redacted\]\n/)
  await client.call('DELETE /system/terminals/{name}', { name: 'web-a' })
  // Its last lines are written after the answer.
  await appears(client, file => file.name === name && !file.live)
})

t.test('a viewer and a collaborator read no logs', async t => {
  const people = new People()
  people.add('vic@example.org', 'viewer')
  people.add('cleo@example.org', 'collaborator')
  people.add('max@example.org', 'maintainer')
  const daemon = await daemonWith(t, ['logs'], { fakes: people.fakes })
  people.admit(daemon)
  const status = async (who: string, path: string) =>
    (await fetch(daemon.url + path, { headers: { authorization: `Bearer ${who}` } })).status
  for (const path of ['/logs', '/logs/file?name=daemon.log', '/logs/follow?name=daemon.log']) {
    t.equal(await status('vic@example.org', path), 403, path)
    t.equal(await status('cleo@example.org', path), 403, path)
    t.not(await status('max@example.org', path), 403, path)
  }
})
