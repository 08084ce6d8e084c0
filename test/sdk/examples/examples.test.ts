import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseExtension } from '../../../plugins/extensions/manifest/parse.js'
import * as failureNotes from '../../../sdk/examples/failure-notes/server.js'
import * as glossary from '../../../sdk/examples/glossary/server.js'
import * as openTasks from '../../../sdk/examples/open-tasks/server.js'
import { hostFor } from '../../../sdk/node/extension/testing.js'
import { approvePending, daemonWithBackends, listedUntil, writeExtension } from '../../plugins/extensions/support.js'

const EXAMPLES = ['failure-notes', 'glossary', 'open-tasks'] as const
const MOST_LINES = 150
const source = (name: string, file: string) => join('sdk/examples', name, file)
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

t.test('failure-notes files one line for each failure', async t => {
  const files: { [path: string]: string } = {}
  const tested = hostFor(t, manifestOf('failure-notes'), { files })
  await tested.activate(failureNotes)
  const card = { id: 'first', title: 'Fix the\nbuild', status: 'idle' }
  await tested.send('agent', { agent: { ...card, failure: 'the provider refused' } })
  await tested.send('agent', { agent: { ...card, failure: 'the provider refused' } })
  const noted = async () => {
    for (const end = Date.now() + 5_000; tested.stored.size === 0 && Date.now() < end;)
      await new Promise(resolve => setImmediate(resolve))
    return Buffer.from(await tested.host.files.read('notes/failures.md')).toString()
  }
  t.match(await noted(), /^# Turns that failed\n\n- \d{4}-\d\d-\d\d Fix the build \(first\): the provider refused\n$/)
})

t.test('open-tasks runs as it is in a sandbox: its route answers', async t => {
  const docs = { 'docs/a.md': '# A\n\n- [ ] write it\n- [x] done\n', 'docs/deep/b.md': '* [ ] read it\n' }
  const daemon = await daemonWithBackends(t, [], { files: { ...docs, 'other.md': '- [ ] not here\n' } })
  const server = readFileSync(join('dist/sdk/examples/open-tasks/server.js'), 'utf8')
  const page = readFileSync(source('open-tasks', 'page.js'), 'utf8')
  writeExtension(daemon, 'open-tasks', manifestOf('open-tasks'), { 'server.js': server, 'page.js': page })
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
