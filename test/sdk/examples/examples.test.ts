import { cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseExtension } from '../../../plugins/extensions/manifest/parse.js'
import * as failedTurns from '../../../sdk/examples/failed-turns/server.js'
import * as fontNames from '../../../sdk/examples/font-names/server.js'
import * as glossary from '../../../sdk/examples/glossary/server.js'
import * as openTasks from '../../../sdk/examples/open-tasks/server.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { font } from '../../support/documents/font.js'
import { hostFor } from '../../../sdk/node/extension/testing.js'
import { approvePending, daemonWithBackends, listedUntil } from '../../plugins/extensions/support.js'

const EXAMPLES = ['failed-turns', 'font-names', 'glossary', 'open-tasks'] as const
const MOST_LINES = 150
const source = (name: string, file: string) => join('sdk/examples', name, file)
/** Makes an example an extension of the workspace, as somebody does who begins from it. */
const copyExample = ({ workspace }: { readonly workspace: string }, name: string): void =>
  cpSync(`sdk/examples/${name}`, join(workspace, '.sandbox/config/workspace-extensions', name), { recursive: true })
const manifestOf = (name: string) => JSON.parse(readFileSync(source(name, 'intentic-extension.json'), 'utf8')) as object

t.test('each example has a valid manifest and fewer than 150 lines', async t => {
  for (const name of EXAMPLES) {
    const bytes = readFileSync(source(name, 'intentic-extension.json'))
    t.match(parseExtension(bytes, name), { id: `examples.${name}`, compatible: true })
    const files = ['intentic-extension.json', 'server.ts', 'page.js'].filter(file => existsSync(source(name, file)))
    const lines = files.map(file => readFileSync(source(name, file), 'utf8').split('\n').length - 1)
    t.ok(lines.reduce((sum, each) => sum + each, 0) < MOST_LINES, `${name}: ${lines}`)
  }
})

t.test('glossary gives agents a tool that says what a term means', async t => {
  const tested = hostFor(t, manifestOf('glossary'), {
    files: {
      'docs/glossary.md': '# Words\n\n- **Turn**: the work that one message starts\n- **Turn log**: its lines\n',
    },
  })
  await tested.activate(glossary)
  t.match(await tested.tool('define', { term: 'turn' }), { text: 'Turn: the work that one message starts' })
  t.match(await tested.tool('define', { term: 'log' }), { text: 'not found; there is: turn log', error: true })
  t.match(await tested.tool('define', { term: 'zebra' }), { text: 'not found', error: true })
})

t.test('font-names reads what a font says of itself', async t => {
  const tested = hostFor(t, manifestOf('font-names'))
  await tested.activate(fontNames)
  const bytes = font({ 1: 'Grötesk', 4: 'Grötesk Bold', 5: 'Version 1.2' })
  t.match(await tested.document('fonts', 'bold.ttf', bytes), {
    title: 'Grötesk Bold',
    markdown: '- Family: Grötesk\n- Version: Version 1.2',
  })
  await t.rejects(tested.document('fonts', 'bold.ttf', Buffer.alloc(64)), { message: /it is no font/ })
  await t.rejects(tested.document('fonts', 'bold.ttf', bytes.subarray(0, 50)))
  await t.rejects(tested.document('pictures', 'a.png', bytes), { message: /does not derive pictures/ })
})

t.test('failed-turns asks a person about a failure', async t => {
  const asked: unknown[] = []
  const tested = hostFor(t, manifestOf('failed-turns'), { calls: { 'POST /needs': input => void asked.push(input) } })
  await tested.activate(failedTurns)
  const card = { id: 'first', title: 'Fix the\nbuild', status: 'idle' }
  await tested.send('agent', { agent: card })
  await tested.send('agent', { agent: { ...card, failure: 'the provider refused' } })
  for (const end = Date.now() + 5_000; asked.length === 0 && Date.now() < end;)
    await new Promise(resolve => setImmediate(resolve))
  t.match(asked, exactly({ conversationId: 'first', title: 'What now: Fix the build', why: /the provider refused/ }))
})

t.test('failed-turns runs as it is in a sandbox: a failed turn becomes a need, whose answer goes on', async t => {
  const daemon = await daemonWithBackends(t, ['agent', 'agents', 'system', 'needs'])
  const { client } = daemon
  copyExample(daemon, 'failed-turns')
  const id = 'examples.failed-turns'
  await listedUntil(daemon, ({ pending }) => pending.some(each => each.id === id))
  await approvePending(daemon, id)
  await listedUntil(daemon, ({ extensions }) =>
    extensions.some(each => each.id === id && each.backend?.state === 'running'),
  )
  await runTurn(client, 'first', 'fail on purpose', { title: 'Fix the build' })
  await until(async () => (await client.call('GET /needs', {})).open === 1)
  const [need] = (await client.call('GET /needs', {})).needs
  t.match(need, { title: 'What now: Fix the build', raisedBy: `extension:${id}`, why: /on purpose/ })
  const { run } = await client.call('POST /needs/{id}/give', { id: need!.id, answers: { answer: 'try again' } })
  await framesOf(client, 'first', { run: run! }).all()
  t.match((await client.call('GET /agents/{id}/transcript', { id: 'first' })).messages.at(-2), {
    text: /try again/,
  })
})

t.test('open-tasks runs as it is in a sandbox: its route answers', async t => {
  const docs = { 'docs/a.md': '# A\n\n- [ ] write it\n- [x] done\n', 'docs/deep/b.md': '* [ ] read it\n' }
  const daemon = await daemonWithBackends(t, [], { files: { ...docs, 'other.md': '- [ ] not here\n' } })
  copyExample(daemon, 'open-tasks')
  const id = 'examples.open-tasks'
  await listedUntil(daemon, ({ pending }) => pending.some(each => each.id === id))
  await approvePending(daemon, id)
  await listedUntil(daemon, ({ extensions }) =>
    extensions.some(each => each.id === id && each.backend?.state === 'running'),
  )
  t.same(await (await daemon.fetch(`/x/${id}/tasks`)).json(), {
    tasks: [
      { path: 'docs/a.md', line: 3, text: 'write it' },
      { path: 'docs/deep/b.md', line: 1, text: 'read it' },
    ],
  })
  const { extensions } = await daemon.client.call('GET /extensions')
  t.same(extensions.find(each => each.id === id)?.problems, [])
  t.type(openTasks.activate, 'function')
})
