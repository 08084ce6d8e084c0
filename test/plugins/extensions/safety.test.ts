import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { SafetyRule } from '../../../plugins/safety/contract.js'
import { walled } from '../../attack/support.js'
import { extensionDaemon } from '../../support/extensions/world.js'
import { exactly } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'

const ID = 'acme.words'
const SERVER = `export const activate = host => {
  host.tools.handle('write-words', async ({ text }) => {
    await host.files.write('out/words.txt', text)
    return { text: 'written' }
  })
  host.routes.handle('POST /remove', {}, async () => {
    try {
      return { body: await host.processes.run('rm', ['-rf', '/workspace/out']) }
    } catch (error) {
      return { status: 403, body: { message: error.message } }
    }
  })
}`

t.test('what an extension does passes the safety policy', walled(), async t => {
  const tool = { name: 'write-words', title: 'Write', description: 'Writes words.', input: { type: 'object' } }
  let asked = 0
  const server = await modelServer(t, 'openai', ({ text }) =>
    text
      ? ++asked % 2 === 1
        ? { calls: [{ name: 'acme_words__write_words', input: { text: 'one two' } }] }
        : { text: ['Done.'] }
      : { status: 200, body: '{"data":[{"id":"m"}]}' },
  )
  const daemon = await extensionDaemon(t, {
    groups: ['agent', 'agents', 'settings', 'safety', 'activity', 'workspace'],
    files: { 'README.md': '# work\n' },
    fakes: {
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
  mkdirSync(join(workspace, 'out'))
  writeFileSync(join(workspace, 'out/kept.txt'), 'kept')
  await daemon.run(ID, {
    manifest: {
      contributes: { tools: [tool] },
      permissions: { sandbox: ['fs:write:out/**', 'run:rm', 'serve:viewer:POST /remove'] },
    },
    server: SERVER,
  })
  const turn = (id: string) =>
    runTurn(client, id, 'go', { agent: 'endpoint/local', model: 'm', permissionMode: 'bypassPermissions' })
  const rules = async (rules: SafetyRule[]) => {
    const { policy } = await client.call('GET /safety')
    await client.call('POST /safety', { policy: { ...policy, rules } })
  }

  await t.test('a tool that writes is refused where a rule says so', async t => {
    const glob = 'acme_words__write_words'
    const rule = { id: 'no-words', label: 'No words', target: 'tool', match: { glob }, verdict: 'deny' } as const
    await rules([{ ...rule, message: 'words are written by people' }])
    t.match(JSON.stringify(await turn('denied')), /words are written by people/)
    t.notOk(existsSync(join(workspace, 'out/words.txt')))
    await rules([])
    await turn('allowed')
    t.ok(existsSync(join(workspace, 'out/words.txt')))
  })

  await t.test('a program is refused where its class is denied', async t => {
    const remove = () => daemon.ask(ID, '/remove', { method: 'POST' })
    await client.call('POST /settings/patch', { set: { commandRules: { 'files.destructive': 'deny' } } })
    t.match(await remove(), { status: 403, body: { message: /safety policy does not let acme\.words run rm/ } })
    t.ok(existsSync(join(workspace, 'out/kept.txt')))
    const { verdicts } = await client.call('GET /safety/verdicts', { class: 'files.destructive' })
    t.match(verdicts, exactly({ subject: { kind: 'command', text: 'rm -rf /workspace/out' }, verdict: 'deny' }))
    await client.call('POST /settings/patch', { unset: ['commandRules'] })
    t.match(await remove(), { status: 200 })
    t.notOk(existsSync(join(workspace, 'out/kept.txt')))
  })
})
