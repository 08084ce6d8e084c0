import t from 'tap'
import type { Client } from '../../../sdk/client.js'
import { endTerminals, spawnDaemon } from '../../support/daemon.js'
import { framesOf } from '../../support/turns.js'
import { dies, LATE_MS, whereIn } from '../failpoints/failpoints.js'

const running = async (client: Client): Promise<string[]> =>
  (await client.call('GET /system/terminals')).sessions.flatMap(({ name, running }) => (running ? [name] : []))

t.test('killed after the answer, a turn that does not go on leaves no terminal that it handed over', async t => {
  const where = whereIn(t, { '.sandbox/config/settings.json': '{"autoResumeOnRestart":false}\n' })
  t.teardown(() => endTerminals(where.data))
  const asked = { conversationId: 'typed', prompt: 'handover terminal Type it.\nsay done' }
  await dies(t, where, 'agent.card.answered', async ({ client, once }) => {
    const { run } = await client.call('POST /agent', asked)
    const { requestId } = await framesOf(client, 'typed', { run }).until(({ kind }) => kind === 'terminal_help')
    t.equal((await running(client)).length, 1)
    await once.call('POST /agent/reply', { kind: 'terminal_help', requestId, helped: true })
  })
  const { client } = await spawnDaemon(t, where)
  for (const end = Date.now() + LATE_MS; (await running(client)).length > 0 && Date.now() < end;)
    await new Promise(resolve => setTimeout(resolve, 50))
  t.same(await running(client), [])
})
