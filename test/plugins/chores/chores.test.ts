import { chmodSync, globSync, lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mock } from 'node:test'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { ProbeId } from '../../../plugins/chores/contract.js'
import { homeOfWork } from '../../../sdk/node/wall/home.js'
import { inGit, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runningCommands } from '../../support/running-commands.js'
import { until } from '../workspace/projects-support.js'
import { workspaceWorld } from '../workspace/support.js'
import { startRegistry } from './registry.js'
import { installPeer, noPeer } from '../../support/peers.js'

const json = (value: object): string => JSON.stringify(value)
const DEPENDENCIES = { lib: '1.0.0', same: '^1.0.0' }
const LOCK = {
  name: 'shop',
  lockfileVersion: 3,
  packages: {
    '': { name: 'shop', devDependencies: DEPENDENCIES },
    'node_modules/lib': { version: '1.0.0', dev: true },
    'node_modules/same': { version: '1.0.0', dev: true },
  },
}
const PNPM_LOCK = `lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      lib: { specifier: 1.0.0, version: 1.0.0 }
      same: { specifier: ^1.0.0, version: 1.0.0 }
packages:
  lib@1.0.0: { resolution: { integrity: sha512-YQ== } }
  same@1.0.0: { resolution: { integrity: sha512-YQ== } }
snapshots:
  lib@1.0.0: {}
  same@1.0.0: {}
`
const YARN_LOCK = `# yarn lockfile v1

lib@1.0.0:
  version "1.0.0"

same@^1.0.0:
  version "1.0.0"
`
/** What knip 6.44 prints of a repository with an unused file, export and dependency. */
const KNIP = {
  issues: [
    { file: 'src/b.ts', dependencies: [], devDependencies: [], exports: [], files: [{ name: 'src/b.ts' }], types: [] },
    { file: 'package.json', dependencies: [{ name: 'left' }], devDependencies: [], exports: [], files: [], types: [] },
    {
      file: 'src/a.ts',
      dependencies: [],
      exports: [{ name: 'unused', line: 2, col: 14, pos: 35 }],
      files: [],
      types: [],
    },
  ],
}
/** What jscpd 5.3 writes of a repository with a copied block. */
const JSCPD = {
  duplicates: [
    {
      format: 'typescript',
      fragment: 'export …',
      lines: 62,
      tokens: 1031,
      firstFile: { name: 'src/a.ts', start: 4, end: 65 },
      secondFile: { name: 'src/b.ts', start: 1, end: 62 },
    },
  ],
  statistics: { total: { clones: 1, duplicatedLines: 62, lines: 127, percentage: 48.818897637795274 } },
}

/** The words of a program that runs until it is ended, and of its child. */
const ENDLESS = 'sleep\x0086311'
const endless = () => runningCommands().filter(words => words.startsWith(ENDLESS)).length

// The passes of the background begin when the test says so.
mock.timers.enable({ apis: ['setInterval'] })
t.teardown(() => mock.timers.reset())

void t.test('chores', async t => {
  const registry = await startRegistry(t)
  let isBusy = true
  const live = [{ conversation: {}, live: { state: 'running' }, waiting: 0, queuePaused: false }]
  const { daemon, ask, as } = await workspaceWorld(t, {
    groups: ['chores', 'activity', 'system'],
    files: { 'docs/a.md': 'a', Dockerfile: '' },
    fakes: { 'agent.conversations': (() => ({ conversations: isBusy ? live : [] })) as never },
  })
  const { client, workspace } = daemon
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const npmrc = `registry=${registry.url}\n`
  const repo = (path: string, files: { readonly [name: string]: string }) => makeWorkspace(join(workspace, path), files)
  const program = (path: string, text: string) => {
    mkdirSync(join(workspace, path, '..'), { recursive: true })
    writeFileSync(join(workspace, path), `#!/bin/sh\n${text}\n`)
    chmodSync(join(workspace, path), 0o755)
  }
  const evil = `node -e "fetch('${registry.url}evil')"`
  repo('shop', {
    'package.json': json({
      ...{ name: 'shop', version: '1.0.0', engines: { node: '>=24' }, devDependencies: DEPENDENCIES },
      scripts: { preinstall: evil, prepare: evil, outdated: evil },
    }),
    '.npmrc': npmrc,
    'README.md': '# shop\n',
    '.github/workflows/test.yml': 'on: push\n',
    'src/ui/button.tsx': 'export const PlainButton = () => <button type="button" />\n',
    'src/page.tsx': 'export const Page = () => <div onClick={x} style={{ top: 1 }}><button /><button /></div>\n',
    'crates/core/Cargo.toml': '[package]\nname = "core"\nrust-version = "1.80"\n[dependencies]\nserde = "1"\n',
    '.gitignore': 'dist\nnode_modules\n',
  })
  const dist = 'console.log(1)\n'.repeat(100)
  mkdirSync(join(workspace, 'shop/dist/assets'), { recursive: true })
  writeFileSync(join(workspace, 'shop/dist/assets/app.js'), dist)
  writeFileSync(join(workspace, 'shop/dist/assets/app.js.map'), '{}')
  const packages = { name: 'other', version: '1.0.0', dependencies: DEPENDENCIES }
  repo('by-pnpm', { 'package.json': json(packages), '.npmrc': npmrc, 'pnpm-lock.yaml': PNPM_LOCK })
  repo('by-yarn', { 'package.json': json(packages), '.npmrc': npmrc, 'yarn.lock': YARN_LOCK })
  repo('plain', { 'a.txt': 'a' })

  const read = async (name: string) => {
    const { repos, ...rest } = await client.call('GET /chores', { repo: name })
    return { ...rest, ...repos[0]! }
  }
  const resultOf = async (name: string, id: ProbeId) => (await read(name)).probes.find(probe => probe.id === id)
  const isIdle = async () => (await client.call('GET /chores', {})).running.length === 0
  /** Takes a measurement. */
  const measured = async (name: string, id: ProbeId) => {
    const { position } = await client.call('POST /chores/probe', { repo: name, id })
    t.equal(position, 0, `${id} of ${name} begins at once`)
    await until(`${id} of ${name} is measured`, isIdle)
    return (await resultOf(name, id))!
  }
  const types = async () => (await client.call('GET /activity', {})).events.map(({ type }) => type)

  await t.test('without a credential and with too little of one nothing is read, measured or concluded', async t => {
    const scopes = [await daemon.token('editor'), await daemon.token('read'), await daemon.token('drive')]
    for (const [method, path] of [
      ['GET', '/chores'],
      ['POST', '/chores/probe'],
      ['POST', '/chores/probe/stop'],
      ['POST', '/chores/ledger'],
    ] as const) {
      const send = async (headers: { [name: string]: string }) =>
        (await fetch(daemon.url + path, { method, headers })).status
      t.equal(await send({}), 401, path)
      const found = await Promise.all(scopes.map(({ token }) => send({ 'x-sandbox-control': token })))
      t.same(found, method === 'GET' ? [403, 200, 200] : [403, 403, 400], path)
      if (method === 'POST') t.equal((await ask('vic', path, 'POST', {})).status, 403, path)
    }
  })

  await t.test('bad input, unknown measurements and unknown repositories are refused', async t => {
    const conclusion = { repo: 'shop', chore: 'audit', ranAt: 1, runId: '', outcome: 'clean', digest: 'a' }
    const refused = async (path: string, body: object, status: number, message: RegExp) => {
      const answer = await ask('mai', path, 'POST', body)
      t.equal(answer.status, status, JSON.stringify(body))
      t.match(((await answer.json()) as { message: string }).message, message)
    }
    await refused('/chores/probe', { repo: 'shop', id: 'tests' }, 400, /^id: expected /)
    await refused('/chores/probe/stop', { repo: 'shop' }, 400, /^id: expected /)
    for (const path of ['/chores/probe', '/chores/probe/stop'])
      for (const name of ['gone', 'docs', '..', 'shop/src'])
        t.ok([400, 404].includes((await ask('mai', path, 'POST', { repo: name, id: 'ui' })).status), `${path} ${name}`)
    await refused('/chores/probe', { repo: 'gone', id: 'ui' }, 404, /gone/)
    await refused('/chores/ledger', { ...conclusion, repo: 'gone' }, 404, /gone/)
    await refused('/chores/ledger', { ...conclusion, chore: 'a'.repeat(61) }, 400, /^chore: expected /)
    await refused('/chores/ledger', { ...conclusion, outcome: 'done' }, 400, /^outcome: expected /)
    await refused('/chores/ledger', { ...conclusion, digest: '' }, 400, /^digest: expected /)
    await refused('/chores/ledger', { ...conclusion, ranAt: Date.now() + 360_000 }, 400, /^ranAt: .* 6 minutes ahead/)
    t.equal((await ask('mai', '/chores?repo=gone')).status, 404)
  })

  await t.test('manifests and the index are read now, by people limited to areas of what they reach', async t => {
    await until('the index is built', async () => (await read('shop')).signals.indexed)
    const { signals, probes, node } = await read('shop')
    t.same(probes, [])
    t.equal(node, process.versions.node)
    t.match(signals, {
      packages: exactly(
        {
          ...{ dir: '', name: 'shop', engines: { node: '>=24' }, documented: true, dependencies: exactly() },
          devDependencies: exactly('lib', 'same'),
        },
        { dir: 'crates/core', engines: { rust: '1.80' }, dependencies: exactly('serde'), documented: false },
      ),
      shape: {
        ...{ docs: exactly('README.md'), dockerfiles: exactly(), ci: exactly('.github/workflows/test.yml') },
        ...{ lockfile: false, packageManifest: true, deps: exactly('lib', 'same', 'serde') },
      },
      hotspots: exactly(),
      totals: { files: Number, hotspots: 0 },
    })
    const { repos } = await client.call('GET /chores', {})
    t.same(
      repos.map(each => each.repo),
      ['root', 'by-pnpm', 'by-yarn', 'plain', 'shop'],
    )
    t.same((await as('ann').call('GET /chores', {})).repos, [])
    t.equal((await ask('ann', '/chores?repo=shop')).status, 404)
    t.equal((await ask('ann', '/chores/probe', 'POST', { repo: 'shop', id: 'ui' })).status, 404)
  })

  await t.test('npm lists the package that is a major version behind, and only reads', async t => {
    const times = () =>
      globSync('**', { cwd: join(workspace, 'shop') }).map(path => {
        const { mtimeMs, ctimeMs } = lstatSync(join(workspace, 'shop', path))
        return [path, mtimeMs, ctimeMs]
      })
    t.match(await measured('shop', 'outdated'), { state: 'unavailable', reason: /^2 declared packages/ })
    for (const name of ['lib', 'same']) {
      mkdirSync(join(workspace, 'shop/node_modules', name), { recursive: true })
      writeFileSync(join(workspace, 'shop/node_modules', name, 'package.json'), json({ name, version: '1.0.0' }))
    }
    const before = times()
    const result = await measured('shop', 'outdated')
    t.match(result, {
      ...{ id: 'outdated', state: 'ok', reason: 'not measured: crates/core: no lock file: cargo reads Cargo.lock' },
      facts: {
        packages: exactly({
          name: 'lib',
          current: '1.0.0',
          latest: '2.0.0',
          kind: 'major',
          section: 'devDependencies',
        }),
      },
      trend: exactly({ value: 1 }),
    })
    t.equal(result.staleAt - result.ranAt - result.tookMs, 86_400_000)
    t.match(await measured('shop', 'audit'), {
      state: 'unavailable',
      reason: /^no lock file: npm audits .*; crates\/core: cargo is not asked what is vulnerable$/,
    })
    t.same(times(), before)
    t.equal(inGit(join(workspace, 'shop'), 'status', '--porcelain'), '')
    t.notOk(
      registry.asked.some(path => path.includes('evil')),
      'no script ran',
    )
    t.same(readdirSync(join(daemon.data, 'chores')), [], 'temporary files are gone')
    writeFileSync(join(workspace, 'shop/package-lock.json'), json(LOCK))
    t.match(await measured('shop', 'audit'), {
      state: 'ok',
      facts: {
        advisories: exactly({
          ...{ name: 'lib', severity: 'high', title: 'Reads beyond its end', patched: '>=2.0.0', dev: true },
        }),
      },
    })
  })

  const skip = noPeer('pnpm/bin/pnpm.cjs')
  await t.test('pnpm and yarn are asked too, and what nobody can measure is not clean', { skip }, async t => {
    const { dir } = await homeOfWork(daemon.data)
    installPeer(dir, 'pnpm', 'pnpm/bin/pnpm.cjs')
    installPeer(dir, 'yarn', 'yarn/bin/yarn.js')
    const lib = { name: 'lib', current: '1.0.0', latest: '2.0.0', kind: 'major', section: 'dependencies' }
    for (const name of ['by-pnpm', 'by-yarn'])
      t.match(await measured(name, 'outdated'), { state: 'ok', facts: { packages: exactly(lib) } }, name)
    t.match(await measured('by-pnpm', 'audit'), {
      ...{
        state: 'ok',
        facts: { advisories: exactly({ name: 'lib', severity: 'high', patched: '>=2.0.0', dev: false }) },
      },
    })
    t.match(await measured('plain', 'outdated'), { state: 'unavailable', reason: /^no manifest/ })
  })

  await t.test('dead and copied code is what the tools of the repository find, and unknown output fails', async t => {
    t.match(await measured('shop', 'knip'), { state: 'unavailable', reason: /^knip is not installed/ })
    t.match(await measured('shop', 'jscpd'), { state: 'unavailable', reason: /^jscpd is not installed/ })
    program('shop/node_modules/.bin/knip', `cat <<'END'\n${json(KNIP)}\nEND\nexit 1`)
    const folder = 'while [ $# -gt 0 ]; do [ "$1" = --output ] && to=$2; shift; done'
    const write = `${folder}\ncat >"$to/jscpd-report.json" <<'END'`
    program('shop/node_modules/.bin/jscpd', `${write}\n${json(JSCPD)}\nEND\necho saved`)
    t.match(await measured('shop', 'knip'), {
      state: 'ok',
      facts: {
        deadCode: {
          ...{ files: 1, exports: 1, types: 0, dependencies: 1, devDependencies: 0 },
          sample: exactly('src/b.ts', 'package.json: left', 'src/a.ts: unused'),
        },
      },
      trend: exactly({ value: 3 }),
    })
    t.match(await measured('shop', 'jscpd'), {
      state: 'ok',
      facts: {
        duplication: {
          ...{ percentage: 48.82, clones: 1 },
          top: exactly({ lines: 62, first: 'src/a.ts:4', second: 'src/b.ts:1' }),
        },
      },
    })
    program('shop/node_modules/.bin/knip', 'echo "no issues found"')
    const failed = await measured('shop', 'knip')
    t.match(failed, {
      ...{ state: 'failed', facts: undefined, reason: /not understood: no issues found/, trend: exactly({ value: 3 }) },
    })
    t.equal(failed.staleAt - failed.ranAt - failed.tookMs, 3_600_000)
    await measured('shop', 'knip')
    t.equal((await types()).filter(type => type === 'chore.probeFailed').length, 1, 'recorded once')
  })

  await t.test('components and builds are measured from the files that are there', async t => {
    t.match(await measured('shop', 'ui'), {
      facts: {
        scan: {
          components: exactly('PlainButton'),
          bypasses: exactly({ path: 'src/page.tsx', count: 2 }),
          idioms: exactly({ id: 'inline-style', files: exactly('src/page.tsx') }, { id: 'clickable-element' }),
        },
      },
    })
    const gzip = gzipSync(dist).length
    t.match(await measured('shop', 'bundle'), {
      facts: {
        bundle: {
          ...{ dir: 'dist', totalBytes: dist.length, totalGzip: gzip },
          assets: exactly({ path: 'assets/app.js', bytes: dist.length, gzip }),
        },
      },
    })
    t.match(await measured('plain', 'ui'), { state: 'unavailable' })
    t.match(await measured('plain', 'bundle'), { state: 'unavailable', reason: /dist, build/ })
  })

  await t.test('ten requests are one measurement, the next waits, and a stop ends all its processes', async t => {
    const { ranAt } = (await resultOf('shop', 'knip'))!
    program('shop/node_modules/.bin/knip', 'sleep 86311 &\nsleep 86311')
    const start = (id: ProbeId) => client.call('POST /chores/probe', { repo: 'shop', id })
    const all = await Promise.all(Array.from({ length: 10 }, () => start('knip')))
    t.ok(all.every(({ position }) => position === 0))
    await until('it runs', async () => endless() > 1)
    t.equal(endless(), 2, 'one program with its child')
    t.equal((await start('ui')).position, 1)
    t.equal((await start('bundle')).position, 2)
    t.match(
      (await read('shop')).running,
      exactly({ id: 'knip', startedAt: Number }, { id: 'ui', startedAt: undefined }, { id: 'bundle' }),
    )
    const stop = (id: ProbeId) => client.call('POST /chores/probe/stop', { repo: 'shop', id })
    t.same(await stop('bundle'), { ok: true, stopped: true })
    const before = (await resultOf('shop', 'ui'))!.ranAt
    const began = performance.now()
    t.same(await stop('knip'), { ok: true, stopped: true })
    t.equal(endless(), 0)
    t.ok(performance.now() - began < 5_000)
    await until('the next is measured', isIdle)
    t.ok((await resultOf('shop', 'ui'))!.ranAt > before)
    t.equal((await resultOf('shop', 'knip'))!.ranAt, ranAt, 'nothing is stored of what was stopped')
    t.same(await stop('knip'), { ok: true, stopped: false })
    program('shop/node_modules/.bin/knip', `cat <<'END'\n${json(KNIP)}\nEND`)
  })

  await t.test('the newest conclusion about a chore stays', async t => {
    const entry = { repo: 'shop', chore: 'audit', runId: 'c-1', digest: 'one' } as const
    const conclude = (more: { ranAt: number; outcome: 'acted' | 'clean'; snoozedUntil?: number }) =>
      as('col').call('POST /chores/ledger', { ...entry, ...more })
    const now = Date.now()
    await conclude({ ranAt: now, outcome: 'acted', snoozedUntil: now + 1000 })
    t.same(await conclude({ ranAt: now - 1000, outcome: 'clean' }), { ok: true })
    const { ledger } = await read('shop')
    t.match(ledger, exactly({ ...entry, ranAt: now, outcome: 'acted', by: 'col@example.org', snoozedUntil: Number }))
    t.same((await read('plain')).ledger, [])
    t.equal((await types()).filter(type => type === 'chore.concluded').length, 1)
  })

  await t.test('an unreachable registry is a failure, and the earlier figure stays', async t => {
    await registry.close()
    const result = await measured('shop', 'outdated')
    t.match(result, { state: 'failed', reason: /ECONNREFUSED/, trend: exactly({ value: 1 }) })
    t.match(await measured('by-yarn', 'outdated'), { state: 'failed' })
    t.match(await measured('by-pnpm', 'outdated'), { state: 'failed' })
  })

  await t.test('a pass of the background waits until no turn runs, and drops what is gone', async t => {
    // yarn asks its own registry for vulnerabilities, whatever the settings say.
    rmSync(join(workspace, 'by-yarn'), { recursive: true })
    mock.timers.tick(5 * 60_000)
    await new Promise(resolve => setImmediate(resolve))
    t.ok(await isIdle())
    t.equal(await resultOf('root', 'ui'), undefined)
    isBusy = false
    mock.timers.tick(29 * 60_000)
    await new Promise(resolve => setImmediate(resolve))
    t.ok(await isIdle())
    const watched = new AbortController()
    const heard: string[] = []
    for await (const event of await client.call('GET /events', {}, { signal: watched.signal })) {
      if (event.kind === 'hello') mock.timers.tick(60_000)
      if (event.kind === 'runtimeChanged' && event.domains.includes('chores')) heard.push(event.kind)
      if (heard.length > 0 && (await isIdle())) break
    }
    watched.abort()
    t.match((await resultOf('root', 'knip'))!, { state: 'unavailable' })
    t.equal((await read('root')).probes.length, 6)
    repo('by-yarn', { 'package.json': json(packages) })
    t.same((await read('by-yarn')).probes, [])
  })
})
