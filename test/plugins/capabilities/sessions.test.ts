import t from 'tap'
import { Elicitations } from '../../../plugins/capabilities/servers/elicitations.js'
import { ServerSessions } from '../../../plugins/capabilities/servers/sessions.js'
import { Capabilities } from '../../../plugins/capabilities/records/capabilities.js'
import type { ForwardedKind } from '../../../plugins/capabilities/records/forwards.js'
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

t.test('a kind that another group serves is connected and asked by that group', async t => {
  const folder = folderOf(t)
  makeWorkspace(`${folder}/workspace`)
  const status = { state: 'active' as const, checkedAt: 1 }
  const given: object[] = []
  const forward: ForwardedKind = {
    apply: async asked => {
      given.push(asked)
      return { status, log: ['asked for its models'] }
    },
    status: async () => status,
  }
  const store = new Map<string, unknown>()
  const host = {
    place: placeOf(folder),
    log: SILENT,
    signal: new AbortController().signal,
    emit: () => {},
    serves: async () => false,
    call: async () => ({ ok: true }),
    store: {
      get: async (key: string) => store.get(key),
      set: async (key: string, value: unknown) => void store.set(key, value),
      delete: async (key: string) => void store.delete(key),
      all: async () => [...store],
    },
  }
  const capabilities = new Capabilities(host as never, new Map(), new Map([['endpoint', forward]]))
  const capability = { id: 'local', kind: 'endpoint', config: { baseUrl: 'http://127.0.0.1:1' } } as const
  const frames: object[] = []
  const caller = { kind: 'session', actor: 'ada@example.org', role: 'owner' } as const
  for await (const frame of await capabilities.add(capability, { caller })) frames.push(frame)
  t.same(given, [capability])
  t.same(frames, [
    { kind: 'log', message: 'asked for its models' },
    { kind: 'status', status },
    { kind: 'result', ok: true, id: 'local', status },
  ])
  await capabilities.put({ ...capability, label: 'Local' })
  t.match(await capabilities.list(), { 0: { id: 'local', label: 'Local', status }, length: 1 })
  t.same(await capabilities.status('local'), status)
})
