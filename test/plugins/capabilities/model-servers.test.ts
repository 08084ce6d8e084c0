import t from 'tap'
import type { ApplyFrame, Capability } from '../../../plugins/capabilities/contract.js'
import { exactly } from '../../support/lists.js'
import { daemonWith } from '../../support/daemon.js'
import { modelServer } from '../../support/servers/model-server.js'

t.test('a model server is connected like anything else, and listed with the servers of models', async t => {
  const server = await modelServer(t, 'openai', [{ status: 200, body: '{"data":[{"id":"m"}]}' }])
  const { client } = await daemonWith(t, ['capabilities', 'endpoints'])
  const add = async (config: { [field: string]: string }): Promise<ApplyFrame[]> => {
    const frames: ApplyFrame[] = []
    const given: Capability = { id: 'local', kind: 'endpoint', config }
    for await (const frame of await client.call('POST /capabilities', given)) frames.push(frame)
    return frames
  }
  await t.rejects(add({ protocol: 'morse', baseUrl: 'x' }), { message: /protocol: expected one of openai, .*"morse"/ })
  t.same((await client.call('GET /endpoints')).endpoints, [], 'nothing half-added stays')
  const { baseUrl } = server.target()
  t.match((await add({ protocol: 'openai', baseUrl })).at(-1), {
    kind: 'result',
    ok: true,
    status: { state: 'active' },
  })
  t.match((await client.call('GET /endpoints')).endpoints, exactly({ id: 'local', status: 'ready', models: 1 }))
  t.match((await client.call('GET /capabilities')).capabilities, exactly({ id: 'local', kind: 'endpoint' }))
})
