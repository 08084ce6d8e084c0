import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'
import { GROUPS, routedWorld } from './support.js'

const TURNS = [...GROUPS, 'agent', 'agents', 'settings']

t.test('the loop edits files over a provider of the other protocol', async t => {
  const model = await modelServer(t, 'openai', (_, nth) =>
    nth === 0
      ? {
          thoughts: ['two ', 'files'],
          calls: [
            { name: 'Write', input: { path: 'one.txt', content: 'first' } },
            { name: 'Write', input: { path: 'two.txt', content: 'second' } },
          ],
          usage: { input: 10, output: 5, read: 4 },
        }
      : { text: ['Both ', 'are written.'], usage: { input: 20, output: 3 } },
  )
  const it = await routedWorld(t, {
    groups: TURNS,
    providers: { acme: { baseUrl: `${model.address}/v1` } },
  })
  await it.signIn('acme')
  const frames = await runTurn(it.daemon.client, 'one', 'write two files', { agent: 'acme' })
  console.error(JSON.stringify(frames, null, 1).slice(0, 4000))
  console.error(JSON.stringify(model.requests.map(r => r.body), null, 1).slice(0, 3000))
})
