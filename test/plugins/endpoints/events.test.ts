import t from 'tap'
import { CapabilityStore } from '../../support/capability-store.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { type Opened, openEvents } from '../system/stream/events-support.js'
import { startModelServer } from './model-lists.js'

/** The next change of a domain. */
const changeOf = async (events: Opened, domain: string) => {
  for (;;) {
    const event = await events.next()
    if (event.kind === 'runtimeChanged' && event.domains.some(each => each === domain)) return event
  }
}

for (const apart of [[], ['endpoints', 'providers']]) {
  t.test(`watchers get each change of a model server${apart.length ? ', with its groups apart' : ''}`, async t => {
    const { fakes } = new CapabilityStore()
    const daemon = await daemonWith(t, ['system', 'endpoints', 'providers'], { apart, fakes })
    const server = await startModelServer(t, { protocol: 'openai', models: [{ id: 'm' }] })
    const events = await openEvents(t, daemon, '?clientId=watcher')
    const { call } = daemon.client
    await call('POST /endpoints', { id: 'desk', kind: 'server', protocol: 'openai', baseUrl: server.url })
    t.match(await changeOf(events, 'endpoints'), { keys: exactly('desk') })
    t.match(await call('GET /providers/models', { ready: '1' }), {
      choices: exactly({ provider: 'endpoint/desk', model: { id: 'm' }, ready: true }),
    })
    await call('DELETE /endpoints/{id}', { id: 'desk' })
    t.match(await changeOf(events, 'endpoints'), { keys: exactly('desk') })
    t.match(await call('GET /providers/models', { ready: '1' }), { total: 0 })
  })
}
