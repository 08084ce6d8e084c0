import t from 'tap'
import { Elicitations } from '../../../plugins/capabilities/servers/elicitations.js'
import { ServerSessions } from '../../../plugins/capabilities/servers/sessions.js'
import { folderOf, makeWorkspace } from '../../support/daemon.js'
import { realServer } from './servers-support.js'

const placeOf = (folder: string) => ({
  workspace: `${folder}/workspace`,
  data: `${folder}/data`,
  hidden: [],
  grants: { read: [], write: [] },
})
const SILENT = { info: () => {}, warn: () => {}, error: () => {} }

t.test('the servers of a conversation end some time after its last turn, and not during one', async t => {
  const folder = folderOf(t)
  makeWorkspace(`${folder}/workspace`)
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const sessions = new ServerSessions({
    host: {
      place: placeOf(folder),
      log: SILENT,
      signal: stop.signal,
      call: async () => ({}),
      serves: async () => false,
    } as never,
    elicitations: new Elicitations(),
    tokens: { token: async () => undefined },
    crashed: () => {},
    toolsChanged: () => {},
    idleMs: 100,
  })
  const config = { transport: 'stdio', command: `node ${realServer('memory')}` }
  sessions.begun('c', 'r-1')
  const connection = await sessions.get('c', { id: 'memory', config, secrets: {} })
  sessions.begun('c', 'r-2')
  sessions.ended('c', 'r-1')
  await new Promise(resolve => setTimeout(resolve, 300))
  t.equal(connection.closed, false)
  sessions.ended('c', 'r-2')
  sessions.begun('c', 'r-3')
  await new Promise(resolve => setTimeout(resolve, 300))
  t.equal(connection.closed, false)
  sessions.ended('c', 'r-3')
  await connection.over
  t.equal(await sessions.live('memory'), undefined)
})
