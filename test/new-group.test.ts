import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import ts from 'typescript'
import { transform } from 'typia/lib/transform'
import { parseManifest } from '../kernel/manifest.js'
import { openapi } from '../openapi/document.js'
import type { Contract } from '../sdk/contract.js'
import { daemonWith, makeWorkspace, root } from './support/daemon.js'
import { exactly } from './support/lists.js'

const FOLDERS = ['kernel', 'openapi', 'plugins', 'sdk', 'test/support', 'manifests']
const LINES = 'test/fixtures/access-lines.json'

/** A copy of the project's sources, which the script writes into. */
const project = (t: Test): string => {
  const folder = t.testdir()
  for (const name of [...FOLDERS, LINES, 'tsconfig.json', 'package.json'])
    cpSync(name, join(folder, name), { recursive: true })
  return folder
}

const made = (folder: string, ...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['.ci/new.mjs', ...args, `--into=${folder}`], {
    encoding: 'utf8',
  })
  return { code: status, out: stdout, err: stderr }
}

const lines = (folder: string) =>
  JSON.parse(readFileSync(join(folder, LINES), 'utf8')) as { call: string; id: string; floor: string }[]

/** Compiles files as the build does, and answers what the compiler finds wrong with them. */
const compiled = (folder: string, files: readonly string[]): string[] => {
  const { options, errors } = ts.parseJsonConfigFileContent(
    { ...ts.readConfigFile(join(folder, 'tsconfig.json'), ts.sys.readFile).config, include: [], files },
    ts.sys,
    folder,
  )
  const program = ts.createProgram(
    files.map(file => join(folder, file)),
    options,
  )
  const refused: ts.Diagnostic[] = []
  const before = [transform(program, undefined, { addDiagnostic: one => refused.push(one) })]
  const found = files.flatMap(file => {
    const source = program.getSourceFile(join(folder, file))
    program.emit(source, undefined, undefined, false, { before })
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
  })
  return [...errors, ...found, ...refused].map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

t.test('a made group compiles, is in the document and is served', async t => {
  const folder = project(t)
  const { code, out, err } = made(folder, 'build-shelf', 'What builds left behind.')
  t.equal(code, 0, err)
  const files = [...out.matchAll(/^wrote (.*)$/gm)].map(([, file]) => file!)
  t.ok(files.length <= 9, `few files: ${files.join(', ')}`)
  const sources = files.filter(file => file.endsWith('.ts'))
  t.same(compiled(folder, sources), [])
  const config = join(root, '../.ci/format.json')
  const formatter = join(root, '../node_modules/oxfmt/bin/oxfmt')
  execFileSync(process.execPath, [formatter, `--config=${config}`, '--check', ...sources], { cwd: folder })

  const dist = join(folder, 'dist')
  for (const name of ['kernel', 'sdk', 'openapi']) {
    rmSync(join(dist, name), { recursive: true, force: true })
    symlinkSync(join(root, name), join(dist, name))
  }
  const manifest = parseManifest(readFileSync(join(folder, 'manifests/build-shelf.json'), 'utf8'), 'build-shelf.json')
  const { contract } = (await import(pathToFileURL(join(dist, manifest.entry)).href)) as { contract: Contract }
  const { paths, tags } = openapi([{ manifest, contract }])
  t.match(paths!['/build-shelf']!.get, {
    summary: 'List the entries by id; `query` is looked for in their ids',
    tags: exactly('Build shelf'),
    'x-floor': 'viewer',
  })
  t.match(tags![0], { name: 'Build shelf', description: 'What builds left behind.' })

  const manifests = join(folder, 'served')
  mkdirSync(manifests)
  const entry = relative(root, join(dist, manifest.entry))
  writeFileSync(join(manifests, 'build-shelf.json'), JSON.stringify({ ...manifest, entry }))
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  const daemon = await daemonWith(t, [], { manifests, workspace, data })
  const { token } = await daemon.token('editor')
  t.equal((await fetch(`${daemon.url}/build-shelf`)).status, 401)
  t.equal((await fetch(`${daemon.url}/build-shelf`, { headers: { 'x-sandbox-control': token } })).status, 403)
  t.equal((await daemon.fetch(`/build-shelf?query=${'x'.repeat(101)}`)).status, 400)
  t.same(await (await daemon.fetch('/build-shelf')).json(), { entries: [] })
})

t.test('a made group has the access that the written contract gives its call', async t => {
  const folder = project(t)
  const served = new Set(ts.sys.readDirectory('manifests', ['.json'], ['**/schema.json']).flatMap(routesOf))
  const free = lines(folder).find(
    ({ call, id, floor }) =>
      /^GET \/[a-z]+$/.test(call) && call.slice(5) === id.split('.')[0] && floor !== 'open' && !served.has(call),
  )
  if (!free) return t.comment('every such call is served')
  const before = readFileSync(join(folder, LINES), 'utf8')
  const name = free.call.slice(5)
  t.equal(made(folder, name).code, 0)
  const { routes } = JSON.parse(readFileSync(join(folder, `manifests/${name}.json`), 'utf8')) as { routes: object }
  t.match(routes, { [free.call]: { id: free.id, role: free.floor } })
  t.equal(readFileSync(join(folder, LINES), 'utf8'), before, 'and no line of its own')
})

const routesOf = (file: string): string[] =>
  Object.keys((JSON.parse(readFileSync(file, 'utf8')) as { routes: object }).routes)

t.test('a name that cannot be a group is refused, and nothing is written', async t => {
  const folder = project(t)
  const api = readFileSync(join(folder, 'sdk/api.ts'), 'utf8')
  const names: [name: string, sentence: RegExp][] = [
    ['', /^expected npm run new -- NAME, where NAME is words of lower-case letters/],
    ['Ports', /found "Ports"\n$/],
    ['two  words', /found "two {2}words"/],
    ['a--b', /found "a--b"/],
    ['../up', /found "\.\.\/up"/],
    ['a'.repeat(41), /at most 40 characters/],
    ['schema', /^schema is a word of the project itself: choose another name/],
    ['areas', /^there is a group areas already: choose another name, or add calls to it/],
    ['members', /^\/members is a path of group system already: choose another name/],
    ['health', /^\/health is a path of the kernel already/],
    ['area', /^its types would have the names of .*AreaList of plugins\/areas\/contract\.ts.*: choose another name/],
  ]
  for (const [name, sentence] of names) t.match(made(folder, name), { code: 1, out: /^$/, err: sentence }, name)
  t.match(made(folder, 'shelf', 'no sentence'), { code: 1, err: /^expected a sentence with a full stop/ })
  t.equal(readFileSync(join(folder, 'sdk/api.ts'), 'utf8'), api)
})
