import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { wrongFragment } from '../../../plugins/extensions/manifest/fragment.js'
import { imageLines } from '../../../plugins/extensions/turns/image-lines.js'
import { root } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { inner } from '../agent/support.js'
import { approvePending, daemonWithBackends, listedUntil, recordNamed, writeExtension } from './support.js'

const source = (path: string): string => readFileSync(join(root, '..', path), 'utf8')

/** What uses each kind of contribution: a file that reads it from the manifest. */
const USED_BY: { readonly [kind: string]: string } = {
  views: 'plugins/console/web/ui/extensions/view-links.tsx',
  sideViews: 'plugins/console/web/ui/extensions/side-views.tsx',
  files: 'plugins/console/web/ui/extensions/extension-frame.tsx',
  viewers: 'plugins/console/web/ui/extensions/viewer-links.tsx',
  documents: 'plugins/extensions/backend/documents.ts',
  commands: 'plugins/console/web/ui/extensions/commands-of-extensions.ts',
  settings: 'plugins/extensions/settings/extension-settings.ts',
  processes: 'plugins/extensions/processes/extension-processes.ts',
  agent: 'plugins/extensions/turns/turn-parts.ts',
  environment: 'plugins/extensions/turns/turn-parts.ts',
  capabilities: 'plugins/extensions/turns/turn-parts.ts',
  listener: 'plugins/extensions/listeners/listeners.ts',
  automationTemplates: 'plugins/extensions/listeners/listeners.ts',
  bin: 'plugins/extensions/turns/turn-parts.ts',
  tools: 'plugins/extensions/backend/tools.ts',
}
t.test('every kind of contribution that parses is used', t => {
  const manifest = source('plugins/extensions/manifest/manifest.ts')
  const body = /export interface ExtensionContributions \{([\s\S]*?)\n\}/.exec(manifest)![1]!
  const kinds = [...body.matchAll(/^  (\w+)\?:/gm)].map(([, kind]) => kind!)
  t.ok(kinds.length >= 15)
  t.same(Object.keys(USED_BY).sort(), kinds.sort(), 'no kind is left out')
  for (const [kind, file] of Object.entries(USED_BY)) {
    const text = source(file)
    t.ok(/contributes/.test(text) && new RegExp(`\\b${kind}\\b`).test(text), `${file} reads ${kind}`)
  }
  t.end()
})

t.test('documents that derive nothing are named in the record of an extension', async t => {
  const daemon = await daemonWithBackends(t)
  const documents = [
    { id: 'notes', label: 'Notes' },
    { id: 'plans', label: 'Plans', extensions: ['plan'] },
  ]
  writeExtension(daemon, 'said', { publisher: 'ada', name: 'said', contributes: { documents } })
  await listedUntil(daemon, ({ pending }) => pending.some(({ id }) => id === 'ada.said'))
  await approvePending(daemon, 'ada.said')
  t.same((await recordNamed(daemon, 'ada.said')).problems, [
    'its documents notes derive nothing: expected extensions, the endings of their files',
    'its documents plans derive nothing: only a server derives texts',
  ])
})

t.test('lines for the image: variables are read as an image reads them, and what is not honoured is said', async t => {
  for (const [text, variables, problems] of [
    ['ENV WORD=ahoy TONE="very kind"', { WORD: 'ahoy', TONE: 'very kind' }, []],
    ['# set\nENV WORD old form\n\nenv A=1 \\\n  B=2\n', { WORD: 'old form', A: '1', B: '2' }, []],
    ['# go on \\\nENV A=1', { A: '1' }, []],
    ['ENV A=1 \\\n# between\n  B=2', { A: '1', B: '2' }, []],
    ['ENV http_proxy=http://example.org', {}, [/http_proxy is not set/]],
    ['ENV PATH=/x LD_PRELOAD=./evil.so', {}, [/PATH is not set/, /LD_PRELOAD is not set/]],
    ['ENV HOMES=$HOME/x', {}, [/HOMES is not set: its value refers/]],
    ['ENV =x', {}, [/"ENV =x" is not set/]],
    ['ENV A="open', {}, [/is not set: expected ENV NAME=value/]],
    ['RUN apt-get install -y x', {}, [/RUN lines are not in the image.*name [0-9a-f]{12} in SANDBOX_IMAGE_LINES/]],
  ] as const) {
    const found = imageLines(text, 'env.txt')
    t.same(found.variables, variables, text)
    t.match(found.problems, exactly(...problems), text)
  }
  const run = 'RUN true\n'
  process.env.SANDBOX_IMAGE_LINES = `other, ${imageLines(run, 'x').mark}`
  t.teardown(() => delete process.env.SANDBOX_IMAGE_LINES)
  t.same(imageLines(run, 'x').problems, [])
})

t.test('lines for the image are RUN and ENV alone, also behind comments that seem to go on', async t => {
  for (const [text, wrong] of [
    ['RUN one \\\n# between\n  two\nENV A=1\n', undefined],
    ['# go on \\\nFROM other\n', /has the line "FROM other"/],
    ['RUN one\nCOPY a b\n', /has the line "COPY a b"/],
  ] as const) {
    const found = await wrongFragment(t.testdir({ 'env.txt': text }), 'env.txt')
    if (wrong) t.match(found, wrong, text)
    else t.equal(found, undefined, text)
  }
})

t.test('turns get the variables of an approved extension, and its record says what is missing', async t => {
  const daemon = await daemonWithBackends(t)
  const catalog = { name: 'Desk', description: 'A computer.', category: 'computers' }
  const contributes = {
    environment: { fragment: 'env.txt' },
    capabilities: [{ id: 'desk', kind: 'host', skill: 'desk.md', catalog, fields: [] }],
  }
  writeExtension(
    daemon,
    'lines',
    { publisher: 'ada', name: 'lines', contributes },
    {
      'env.txt': 'ENV WORD=ahoy\nRUN true\n',
      'desk.md': 'Be careful.\n',
    },
  )
  const variables = async () => (await inner(daemon, 'extensions.forTurn', {})).variables
  await listedUntil(daemon, ({ pending }) => pending.some(({ id }) => id === 'ada.lines'))
  t.same(await variables(), {}, 'not before it is approved')
  await approvePending(daemon, 'ada.lines')
  t.same(await variables(), { WORD: 'ahoy' })
  const { problems } = await recordNamed(daemon, 'ada.lines')
  t.match(problems.join('\n'), /env\.txt: its RUN lines are not in the image/)
  t.match(problems.join('\n'), /its connection desk is not offered: this sandbox connects no computers/)
  await daemon.client.call('POST /extensions/{id}/enabled', { id: 'ada.lines', enabled: false })
  t.same(await variables(), {})
})
