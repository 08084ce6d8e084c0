import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { automationsDaemon, runsOf, settled } from '../../support/automations.js'

const FILE = '.sandbox/config/automations.json'

t.test('without a credential nothing is read, written or fired', async t => {
  const daemon = await daemonWith(t, ['automations', 'agent'])
  const send = (method: string, path: string) => fetch(daemon.url + path, { method })
  for (const path of ['/automations', '/automations/catalog', '/automations/pending', '/automations/x'])
    t.equal((await send('GET', path)).status, 401, path)
  t.equal((await send('POST', '/automations')).status, 401)
  t.equal((await send('POST', '/automations/x/run')).status, 401)
  t.equal((await send('POST', '/automations/x/fire')).status, 404)
})

t.test('automations', async t => {
  const daemon = await automationsDaemon(t)
  const { client } = daemon

  t.test('a schedule is saved, listed with its next time, and run by hand as a real turn', async t => {
    await client.call('POST /automations', {
      id: 'nightly',
      trigger: { kind: 'schedule', cron: '0 3 * * *', timeZone: 'Europe/Berlin' },
      prompt: 'say it is done',
      enabled: true,
    })
    const { automations } = await client.call('GET /automations')
    t.match(automations, exactly({ id: 'nightly', runs: exactly(), failures: 0, enabled: true }))
    t.ok(automations[0]!.nextRun! > Date.now())
    t.match(JSON.parse(readFileSync(join(daemon.workspace, FILE), 'utf8')), { nightly: { prompt: 'say it is done' } })
    const fired = await client.call('POST /automations/{id}/run', { id: 'nightly' })
    t.match(fired, { ok: true, conversationId: /^a-nightly-/, run: /^r-/ })
    await settled(daemon, 'nightly', 1)
    t.match(await runsOf(daemon, 'nightly'), exactly({ outcome: 'completed', cause: 'hand', run: fired.run! }))
    const { messages } = await client.call('GET /agents/{id}/transcript', { id: fired.conversationId as string })
    t.match(messages.at(-1), { role: 'assistant', text: 'it is done' })
  })

  t.test('a removed automation leaves no trace in the list and the file', async t => {
    await client.call('DELETE /automations/{id}', { id: 'nightly' })
    t.same(await client.call('GET /automations'), { automations: [], problems: [] })
    t.ok(existsSync(join(daemon.workspace, FILE)))
    t.equal((await daemon.fetch('/automations/nightly')).status, 404)
  })
})
