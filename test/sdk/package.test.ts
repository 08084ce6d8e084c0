import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { scaffoldFiles } from '../../plugins/extensions/scaffold/scaffold-files.js'
import { sdkReference } from '../../openapi/sdk-reference.js'
import { project } from '../support/browser/page.js'

const run = promisify(execFile)
const COMPILER = join(project, 'node_modules/typescript/bin/tsc')

/** What a command printed, and how it ended. */
const ended = async (
  command: string,
  args: string[],
  cwd: string,
  home = cwd,
): Promise<{ code: number; out: string }> => {
  const env = { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8', npm_config_update_notifier: 'false' }
  try {
    const { stdout, stderr } = await run(command, args, { cwd, env, maxBuffer: 32 * 1024 * 1024 })
    return { code: 0, out: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, out: stdout + stderr }
  }
}

/** A folder with the packed package in it, and the types of Node: all tests use one, because packing takes seconds. */
const makeAuthorsFolder = async (): Promise<string> => {
  // Outside of the project: the compiler looks for types in the folders above.
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'author-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const part of ['packed', 'author/node_modules/@types']) mkdirSync(join(folder, part), { recursive: true })
  const packing = ['pack', '--json', '--ignore-scripts', '--pack-destination', join(folder, 'packed')]
  const { out } = await ended('npm', packing, project, folder)
  const [{ filename, files }] = JSON.parse(out) as [{ filename: string; files: { path: string }[] }]
  t.ok(files.some(({ path }) => path === 'sdk/REFERENCE.md'))
  await run('tar', ['-xzf', join(folder, 'packed', filename), '-C', join(folder, 'packed')])
  const modules = join(folder, 'author/node_modules')
  // What an installation of the package brings besides is for the daemon: here it is missing on purpose.
  cpSync(join(folder, 'packed/package'), join(modules, 'sandbox-daemon'), { recursive: true })
  for (const name of ['@types/node', 'undici-types'])
    symlinkSync(join(project, 'node_modules', name), join(modules, name))
  rmSync(join(folder, 'packed'), { recursive: true })
  return join(folder, 'author')
}

const author = await makeAuthorsFolder()

t.test('every link of a page in the package leads to a file in the package', async t => {
  const installed = join(author, 'node_modules/sandbox-daemon')
  const pages = globSync('**/*.md', { cwd: installed })
  t.ok(pages.includes('plugins/agent/README.md'), `${pages.length} pages`)
  const lost = pages.flatMap(page =>
    [...readFileSync(join(installed, page), 'utf8').matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
      .map(([, link = '']) => link)
      .filter(link => !/^[a-z]+:/.test(link) && !existsSync(join(installed, dirname(page), link)))
      .map(link => `${page}: ${link}`),
  )
  t.same(lost, [])
})

t.test('a new extension compiles against the packed package, and its test passes', async t => {
  for (const [file, text] of Object.entries(scaffoldFiles('ada', 'hello'))) writeFileSync(join(author, file), text)
  const check = () => ended(process.execPath, [COMPILER, '--incremental'], author)
  const test = () => ended(process.execPath, ['--test'], author)
  t.match(await test(), { code: 0, out: /pass 1\b/ })

  const server = readFileSync(join(author, 'server.ts'), 'utf8')
  writeFileSync(join(author, 'server.ts'), server.replace('Hello from', 'Goodbye from'))
  t.match(await test(), { code: 1, out: /fail 1\b/ }, 'the test can fail')

  const uses = `import type { ExtensionHost, ExtensionManifest, UiHost } from 'sandbox-daemon/sdk'
import { createClient } from 'sandbox-daemon/sdk/client'
export const manifest: ExtensionManifest = { name: 'hello', permissions: { daemon: ['GET /agents'] } }
export const activate = async (host: ExtensionHost): Promise<void> => {
  const { agents } = await host.call('GET /agents')
  await host.storage.set('first', agents[0]?.title)
  for await (const event of host.stream('GET /events', { clientId: 'hello', roster: 'delta' }))
    host.log.info(event.kind)
}
export const page = async (host: UiHost): Promise<string> => (await host.call('GET /agents/{id}', { id: 'first' })).id
export const count = async (): Promise<number> =>
  (await createClient({ url: 'http://127.0.0.1:8787' }).call('GET /agents')).agents.length
`
  writeFileSync(join(author, 'uses.ts'), uses)
  t.match(await check(), { code: 0, out: '' })
  writeFileSync(
    join(author, 'uses.ts'),
    `${uses}
export const wrong = (host: ExtensionHost) => host.call('GET /agnets')
export const misread = async (host: ExtensionHost): Promise<number> => (await host.call('GET /agents')).agents[0]!.title
export const misasked = (host: UiHost) => host.call('GET /agents/{id}', { name: 'first' })
`,
  )
  const { out } = await check()
  t.same(
    [...out.matchAll(/uses\.ts\((\d+),/g)].map(([, line]) => Number(line)),
    [14, 15, 16],
    'the types of calls are those of the daemon',
  )
  rmSync(join(author, 'uses.ts'))
})

t.test('the examples are in the package, and compile as they are copied', async t => {
  const examples = join(author, 'node_modules/sandbox-daemon/sdk/examples')
  const names = globSync('*', { cwd: examples }).sort()
  t.same(names, globSync('*', { cwd: join(project, 'sdk/examples') }).sort())
  for (const name of names) {
    const copy = join(author, `copy-of-${name}`)
    cpSync(join(examples, name), copy, { recursive: true })
    const { server, entry } = JSON.parse(readFileSync(join(copy, 'intentic-extension.json'), 'utf8')) as {
      server?: string
      entry?: string
    }
    const halves = [server, entry].filter(file => file !== undefined)
    t.same(
      halves.filter(file => !existsSync(join(copy, file))),
      [],
      name,
    )
  }
  t.match(await ended(process.execPath, [COMPILER, '--incremental'], author), { code: 0, out: '' })
})

t.test('the types of the package name no other package', t => {
  const types = join(author, 'node_modules/sandbox-daemon/dist/types')
  const outside = globSync('**/*.d.ts', { cwd: types }).flatMap(file =>
    [...readFileSync(join(types, file), 'utf8').matchAll(/(?:\bfrom |\bimport\()['"]((?!\.|node:)[^'"]+)['"]/g)].map(
      ([, name = '']) => `${file}: ${name}`,
    ),
  )
  t.same(outside, [])
  t.end()
})

t.test('the modules of the package load without the libraries of the daemon', async t => {
  for (const [module, name] of [
    ['sdk', ''],
    ['sdk/client', 'createClient'],
    ['sdk/page', 'activatePage'],
    ['sdk/testing', 'hostFor'],
  ] as const) {
    const script = `const loaded = await import('sandbox-daemon/${module}')
if (${JSON.stringify(name)} && typeof loaded[${JSON.stringify(name)}] !== 'function') throw new Error('missing')`
    t.match(
      await ended(process.execPath, ['--input-type=module', '--eval', script], author),
      { code: 0, out: '' },
      module,
    )
  }
  for (const module of ['client', 'page'])
    t.notMatch(
      readFileSync(join(author, 'node_modules/sandbox-daemon/dist/bundle/sdk', `${module}.js`), 'utf8'),
      /node:|getBuiltinModule|require\(/,
      `browsers load ${module}`,
    )
})

t.test('the reference of the packages is that of the sources, and every exported name has a sentence', t => {
  t.equal(readFileSync(join(project, 'sdk/REFERENCE.md'), 'utf8'), sdkReference(project))
  t.end()
})
