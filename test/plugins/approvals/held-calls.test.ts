import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { walled } from '../../attack/support.js'
import { extensionDaemon } from '../../support/extensions/world.js'
import { exactly } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'
import { itemIn } from './support.js'

const ID = 'acme.words'
const KEY = `${ID}.write-words`
const SERVER = `export const activate = host => {
  host.tools.handle('write-words', async ({ text }) => {
    await host.files.write('out/' + text + '.txt', text)
    return { text: 'written' }
  })
}`

t.test('a held call of an extension waits for a yes, and is then made', walled(), async t => {
  const tool = { name: 'write-words', title: 'Write', description: 'Writes words.', input: { type: 'object' } }
  const words: string[] = []
  const server = await modelServer(t, 'openai', ({ text }) => {
    if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
    const word = words.shift()
    return word ? { calls: [{ name: 'acme_words__write_words', input: { text: word } }] } : { text: ['Done.'] }
  })
  const daemon = await extensionDaemon(t, {
    groups: ['agent', 'agents', 'settings', 'safety', 'activity', 'workspace', 'approvals'],
    files: { 'README.md': '# work\n', 'out/kept.txt': 'kept' },
    fakes: {
      'capabilities.checkAction': () => ({ capability: 'acme', problem: 'acme has no tool words.write-words' }),
      'endpoints.choices': () => ({
        endpoints: [
          {
            ...{ id: 'local', label: 'Local', default: 'm', ready: true },
            models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
          },
        ],
      }),
      'endpoints.target': () => server.target(),
    },
  })
  const { client, workspace } = daemon
  await daemon.run(ID, {
    manifest: { contributes: { tools: [tool] }, permissions: { sandbox: ['fs:write:out/**'] } },
    server: SERVER,
  })
  const written = (word: string) => join(workspace, `out/${word}.txt`)
  const rule = (verdict: 'hold' | 'deny') =>
    client.call('POST /settings/patch', { set: { actionRules: { [KEY]: verdict } } })
  /** A turn whose call is held, and the item that it filed. */
  const held = async (id: string, word: string) => {
    words.push(word)
    const more = { agent: 'endpoint/local', model: 'm', permissionMode: 'bypassPermissions' } as const
    t.match(JSON.stringify(await runTurn(client, id, 'go', more)), /waits for a person's yes as the approval a-/)
    t.notOk(existsSync(written(word)))
    const { approvals } = await client.call('GET /approvals', { conversationId: id })
    t.match(approvals, exactly({ kind: 'action', action: { key: KEY, args: { text: word } }, via: 'executor' }))
    return approvals[0]!
  }

  await t.test('on yes the same call is made, and the agent is told', async t => {
    await rule('hold')
    const { id, digest } = await held('sends', 'one')
    await client.call('POST /approvals/{id}/approve', { id, digest })
    t.match(await itemIn(client, id, 'done'), { result: 'written' })
    t.equal(readFileSync(written('one'), 'utf8'), 'one')
    for (let tries = 0; ; tries++) {
      const { messages } = await client.call('GET /agents/{id}/transcript', { id: 'sends' })
      if (messages.some(({ role, text }) => role === 'user' && /was carried out: written/.test(text))) break
      if (tries > 500) return t.fail('the agent was not told')
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })

  await t.test('a denial that came meanwhile is stronger than the yes', async t => {
    await rule('hold')
    const { id, digest } = await held('denied', 'two')
    await rule('deny')
    await client.call('POST /approvals/{id}/approve', { id, digest })
    t.match(
      (await itemIn(client, id, 'failed')).attempts,
      exactly({ outcome: 'failed', error: /the settings deny it/ }),
    )
    t.notOk(existsSync(written('two')))
  })
})
