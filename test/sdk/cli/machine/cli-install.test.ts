import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { registry } from '../../../shipped/registry.js'
import { makeWorkspace, root } from '../../../support/daemon.js'
import { PROGRAM } from '../cli-process.js'

const project = dirname(root.replace(/\/$/, ''))
const run = promisify(execFile)
const json = (file: string) => JSON.parse(readFileSync(join(project, file), 'utf8'))
const manifest = json('package.json') as {
  version: string
  dependencies: { [name: string]: string }
  engines: { node: string }
}

/** A fresh home folder outside of this package. */
const freshHome = (t: Test) => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'home-')))
  t.teardown(() => rmSync(home, { recursive: true, force: true }))
  const prefix = join(home, 'global')
  const path = [join(prefix, 'bin'), dirname(process.execPath), process.env.PATH]
  const env = {
    HOME: home,
    PATH: path.join(':'),
    npm_config_prefix: prefix,
    npm_config_update_notifier: 'false',
    LANG: 'C.UTF-8',
  }
  return { home, prefix, env }
}

t.test('an installation brings exactly the packages that the bundle leaves out', async t => {
  const bundler = pathToFileURL(join(project, '.ci/bundle.mjs')).href
  const { EXTERNAL } = (await import(bundler)) as { EXTERNAL: string[] }
  t.same(Object.keys(manifest.dependencies).sort(), [...EXTERNAL].sort())
})

t.test('the package installs globally with one command, and runs a turn from there', async t => {
  const { home, prefix, env } = freshHome(t)
  const [{ stdout }, url] = await Promise.all([
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', home], { cwd: project, env }),
    registry(t),
  ])
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }]
  const names = files.map(({ path }) => path)
  t.equal(filename, `sandbox-daemon-${manifest.version}.tgz`)
  const page = /^dist\/bundle\/console\/.+\.(js|css|svg|html|json)(\.(br|gz))?$/
  const types = /^dist\/types\/.+\.d\.ts$/
  const rest = [
    /^dist\/bundle\/(.+\.js|openapi\/build\.json)$/,
    /^(manifests\/[\w-]+\.json|package\.json|LICENSE|plugins\/.+\.png)$/,
    /^((README|CONTRIBUTING)|(kernel|sdk|sdk\/cli|plugins\/[\w/-]+|test|test\/bench)\/[\w-]+)\.md$/,
    /^sdk\/examples\/[\w-]+\/(intentic-extension\.json|server\.ts|page\.js|hook\.mjs|image\.txt)$/,
    /^sdk\/examples\/team-kit\/(bin\/[\w-]+|kit\/.*\.md)$/,
  ]
  t.same(
    names.filter(name => ![page, types, ...rest].some(known => known.test(name))),
    [],
  )
  const bundled = readdirSync(join(root, 'bundle'), { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.js'),
  )
  t.same(
    bundled.filter(name => !names.includes(`dist/bundle/${name}`)),
    [],
  )

  // The registry serves packages with their compiled native parts, so no install script is needed.
  const install = [
    'install',
    '--global',
    '--registry',
    url,
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    `./${filename}`,
  ]
  t.match((await run('npm', install, { cwd: home, env })).stdout, /^added \d+ packages/m)
  const installed = join(prefix, 'lib', 'node_modules', 'sandbox-daemon')
  const nested = Object.keys(manifest.dependencies).map(name => join(installed, 'node_modules', name, 'package.json'))
  t.same(
    nested.filter(file => !existsSync(file)),
    [],
  )

  const workspace = join(home, 'my code')
  makeWorkspace(workspace)
  t.equal((await run('sandbox', ['--version'], { cwd: workspace, env })).stdout, `${manifest.version}\n`)
  const daemon = spawn('sandbox', ['serve', '--port', '0', '--json'], {
    cwd: workspace,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = new Promise(resolve => daemon.once('close', resolve))
  t.teardown(async () => {
    daemon.kill('SIGTERM')
    await ended
  })
  t.match(JSON.parse(String((await daemon.stdout.take(1).toArray())[0])), { ready: true })
  const turn = await run('sandbox', ['run', 'write notes.md\n| # Notes', '--conversation', 'notes'], {
    cwd: workspace,
    env,
  })
  t.match(turn.stdout, /✓ Write notes\.md.*next: sandbox diff notes {2}or {2}sandbox land notes\n$/s)
  await run('sandbox', ['land', 'notes'], { cwd: workspace, env })
  t.equal(readFileSync(join(workspace, 'notes.md'), 'utf8'), '# Notes\n')
})

t.test('an older Node gets a clear message', async t => {
  const versions = "{...process.versions,node:'22.12.0'}"
  const old = `data:text/javascript,Object.defineProperty(process,'versions',{value:${versions}})`
  const found = await run(process.execPath, ['--import', old, PROGRAM, 'agents']).catch(
    error => error as { code: number; stderr: string },
  )
  t.match(found, {
    code: 1,
    stderr: /^sandbox: expected Node 24 or newer, found 22\.12\.0 at .+; put a newer one first on PATH\n$/,
  })
  t.equal(manifest.engines.node, '>=24')
})
