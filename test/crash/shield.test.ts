import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { shieldPolicy } from '../plugins/shield/support.js'
import { until } from '../support/browser/browser.js'
import { spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { modelServer } from '../support/servers/model-server.js'
import { framesOf, runTurn } from '../support/turns.js'
import { dies, whereIn } from './failpoints/failpoints.js'

const ALICE = 'alice@example.net'
const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'm' }] })

t.test('killed at any step, the shield keeps its policy and its tokens, and never what was forgotten', async t => {
  const where = whereIn(t)
  const server = await modelServer(t, 'openai', ({ path }) =>
    path.endsWith('/models') ? { status: 200, body: MODELS } : { text: ['I wrote to [[EMAIL_1]].'] },
  )
  const asked = () => server.requests.filter(({ path }) => path.endsWith('/completions'))
  const options = { agent: 'endpoint/cloud', model: 'm' }
  await dies(t, where, 'shield.policy.kept', async ({ once }) => {
    await once.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
    await once.call('POST /shield', { policy: shieldPolicy({ countries: ['NL'] }) })
  })

  await dies(t, where, 'shield.tokens.kept', async ({ client, once }) => {
    t.match((await client.call('GET /shield')).policy, { enabled: true, countries: exactly('NL') })
    const file = readFileSync(join(where.workspace, '.sandbox/config/shield.json'), 'utf8')
    t.match(JSON.parse(file), { enabled: true }, 'the file was written after the restart')
    await once.call('POST /endpoints', { kind: 'server', id: 'cloud', baseUrl: server.address, protocol: 'openai' })
    await runTurn(once, 'c', `Write to ${ALICE}`, options)
  })
  t.equal(asked().length, 0, 'nothing had left')

  await dies(t, where, 'shield.tokens.forgotten', async ({ client, once }) => {
    // The turn goes on by itself after the restart.
    const frames = await framesOf(client, 'c').all()
    t.match(JSON.stringify(frames), new RegExp(ALICE), 'the answer was restored')
    const { tokens } = await client.call('GET /shield/conversations/{id}', { id: 'c' })
    t.match(tokens, exactly({ token: '[[EMAIL_1]]', uses: 1 }), 'the kept token was used again, and counted once')
    // The last writes of a turn end a little after its frames.
    await until(async () => {
      const gone = await once.call('DELETE /shield/conversations/{id}', { id: 'c' }).catch((error: Error) => error)
      return !(gone instanceof Error && gone.message.startsWith('a turn is running'))
    })
  })

  const { client, terminate } = await spawnDaemon(t, where)
  t.match(await client.call('POST /shield/restore', { conversationId: 'c', text: '[[EMAIL_1]]' }), {
    ...{ restored: 0, unknown: exactly('[[EMAIL_1]]') },
  })
  await runTurn(client, 'c', `Again ${ALICE}`, options)
  t.match(JSON.stringify(asked().at(-1)?.body), /Again \[\[EMAIL_2\]\]/, 'numbers go on above the old ones')
  await terminate()
})
