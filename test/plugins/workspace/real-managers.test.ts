import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { homeOfWork } from '../../../sdk/node/wall/home.js'
import { zipOf } from '../../support/documents/office.js'
import { endOf, shownIn, until } from './projects-support.js'
import { workspaceWorld } from './support.js'
import { installPeer, noPeer } from '../../support/peers.js'

const json = (value: object) => JSON.stringify(value)
const dependent = (manager: string) =>
  json({ name: 'shop', version: '1.0.0', packageManager: manager, dependencies: { lib: 'file:../lib' } })

/** A wheel of one module, so that pip needs no network. */
const wheel = await zipOf({
  'paid.py': 'price = 1\n',
  'paid-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: paid\nVersion: 1.0\n',
  'paid-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  'paid-1.0.dist-info/RECORD': 'paid.py,,\npaid-1.0.dist-info/METADATA,,\npaid-1.0.dist-info/WHEEL,,\n',
})

/** Projects whose dependencies lie beside them, and what is there once they are installed. */
const PROJECTS = [
  { dir: 'by-pnpm', manager: 'pnpm', proof: 'by-pnpm/node_modules/lib/package.json' },
  { dir: 'by-yarn', manager: 'yarn', proof: 'by-yarn/node_modules/lib/package.json' },
  { dir: 'by-pip', manager: 'pip', proof: 'by-pip/.venv' },
  { dir: 'by-cargo', manager: 'cargo', proof: 'by-cargo/Cargo.lock' },
  { dir: 'by-go', manager: 'go', proof: 'by-go/go.mod' },
] as const

const { daemon } = await workspaceWorld(t, {
  groups: ['system'],
  files: {
    'lib/package.json': json({ name: 'lib', version: '1.0.0' }),
    'by-pnpm/package.json': dependent('pnpm@10.34.9'),
    'by-yarn/package.json': dependent('yarn@1.22.22'),
    'by-pip/requirements.txt': './paid-1.0-py3-none-any.whl\n',
    'by-cargo/Cargo.toml': '[package]\nname = "shop"\nversion = "0.1.0"\n[dependencies]\nlib = { path = "lib" }\n',
    'by-cargo/src/main.rs': 'fn main() {}\n',
    'by-cargo/lib/Cargo.toml': '[package]\nname = "lib"\nversion = "0.1.0"\n',
    'by-cargo/lib/src/lib.rs': '',
    'by-go/go.mod': 'module x.org/shop\n\ngo 1.19\n\nrequire x.org/lib v1.0.0\n\nreplace x.org/lib => ./lib\n',
    'by-go/main.go': 'package main\n\nfunc main() {}\n',
    'by-go/lib/go.mod': 'module x.org/lib\n\ngo 1.19\n',
  },
})
const { client, workspace } = daemon
writeFileSync(join(workspace, 'by-pip/paid-1.0-py3-none-any.whl'), wheel)

const { dir: home } = await homeOfWork(daemon.data)
for (const [name, script] of [
  ['pnpm', 'pnpm/bin/pnpm.cjs'],
  ['yarn', 'yarn/bin/yarn.js'],
] as const)
  if (!noPeer(script)) installPeer(home, name, script)

const venv = spawnSync('python3', ['-c', 'import ensurepip, venv'], { stdio: 'ignore' }).status === 0
const { projects } = await client.call('GET /workspace/setup')
const stateOf = async (dir: string) =>
  (await client.call('GET /workspace/setup')).projects.find(project => project.dir === dir)!

for (const { dir, manager, proof } of PROJECTS) {
  const found = projects.find(project => project.dir === dir)
  const missing = found?.state === 'unsupported' || (manager === 'pip' && !venv)
  const skip = missing && !process.env.CI && `the package manager ${manager} is not installed`
  t.test(`${manager} installs a project`, { skip }, async t => {
    t.match(found, { manager, state: 'needs-setup' })
    const { sessions } = await client.call('POST /workspace/setup/install', { dirs: [dir] })
    const { exitCode } = await endOf(client, sessions[0]!.session)
    t.equal(exitCode, 0, await shownIn(client, sessions[0]!.session))
    t.ok(existsSync(join(workspace, proof)), proof)
    await until('it is ready', async () => (await stateOf(dir)).state === 'ready')
    t.same((await client.call('POST /workspace/setup/install', { dirs: [dir] })).queued, [], 'nothing is left to do')
  })
}
