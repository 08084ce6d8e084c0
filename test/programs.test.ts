// What a test or the daemon starts as a process is a file of the bundle, which people run: a module of `dist/` beside
// it may work where that one fails.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { exactly } from './support/lists.js'
import { project } from './support/browser/page.js'

const { ENTRIES } = (await import(pathToFileURL(join(project, '.ci/bundle.mjs')).href)) as { ENTRIES: string[] }
/** What of the bundle is started; modules below `openapi/` are imported. */
const programs = [...ENTRIES.filter(name => !name.startsWith('openapi/')), 'sdk/node/extension/runner']

/** The path of a program in one text, or in the parts that `join` gets. */
const named = programs.map(name => `${name.split('/').join("(?:/|', ?')")}\\.js'`).join('|')
/**
 * Before it, what leads to the bundle: the function that finds its files, the folder in some other installation, or the
 * program that a group of its own process belongs to (tests have groups of their own).
 */
const STARTED = new RegExp(`(programFile\\('|place\\.root, '|bundle(?:/|', ?'))?(?:${named})`, 'g')

const breaches = (sources: readonly { readonly file: string; readonly text: string }[]): string[] =>
  sources.flatMap(({ file, text }) =>
    text
      .replace(/^(?:import|export) [^;]*? from '.*'$/gm, '')
      .split('\n')
      .flatMap(line => [...line.matchAll(STARTED)])
      .flatMap(([found, leads]) => (leads ? [] : [`${file} names ${found.slice(0, -1)} outside of the bundle`])),
  )

t.test('whatever is started as a process is a file of the bundle', t => {
  const files = globSync('{kernel,plugins,sdk,test}/**/*.ts', { cwd: project, exclude: ['test/fixtures/**'] })
    .filter(file => file !== 'test/programs.test.ts')
    .sort()
  const sources = files.map(file => ({ file, text: readFileSync(join(project, file), 'utf8') }))
  const started = sources.flatMap(({ text }) => [...text.matchAll(STARTED)].filter(([, leads]) => leads))
  t.ok(started.length > programs.length, `${started.length} places start a program`)
  t.same(breaches(sources), [])
  t.end()
})

t.test('the rule finds a program that is not of the bundle', t => {
  const file = 'test/x.test.ts'
  const found = (text: string) => breaches([{ file, text }])
  t.match(found("spawn(node, [join(root, 'kernel', 'main.js')])"), exactly(/names kernel', 'main\.js outside/))
  t.match(found('spawn(node, [`${root}/sdk/cli.js' + "'])"), exactly(/names sdk\/cli\.js/))
  t.match(found("fork(join(root, 'plugins/chores/scans/scan-child.js'))"), exactly(/scan-child/))
  t.same(found("spawn(node, [programFile('kernel/main.js')])"), [])
  t.same(found("spawn(node, [join(copy, 'dist', 'bundle', 'sdk', 'cli.js')])"), [])
  t.same(found("import { cli } from '../sdk/cli.js'"), [])
  t.end()
})
