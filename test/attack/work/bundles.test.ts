import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readlinkSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { contains } from '../../../sdk/node/files/paths.js'
import { refusal } from '../../plugins/agent/support.js'
import { made, type Made } from '../../plugins/system/bundles/bundles-made.js'
import { leftOf, startedAnew } from '../../plugins/system/bundles/bundles-support.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { bytesOf } from '../support.js'

t.setTimeout(120_000)

const repository = (repo: string) => ({
  repo,
  history: 'history/001.bundle',
  head: 'refs/heads/main',
  remotes: [],
  branches: [],
})

/** A workspace, and beside it a repository of the person that no bundle may reach. */
const place = (t: Parameters<typeof folderOf>[0]) => {
  const folder = realpathSync(folderOf(t))
  const where = { workspace: join(folder, 'home', 'work'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'mine.txt': 'mine\n' })
  const victim = join(folder, 'home', 'victim')
  makeWorkspace(victim, { 'precious.txt': 'precious\n' })
  makeWorkspace(join(folder, 'evil'), { 'precious.txt': 'overwritten\n' })
  execFileSync('git', ['bundle', 'create', '-q', join(folder, 'evil.bundle'), '--all'], { cwd: join(folder, 'evil') })
  return {
    ...where,
    folder,
    victim,
    history: { path: 'history/001.bundle', text: readFileSync(join(folder, 'evil.bundle')) } satisfies Made,
  }
}

/** A chain of links that each seem to stay inside, the last of which leads `steps` folders up. */
const chain = (steps: number): Made[] => [
  { path: 'workspace/b', link: '.' },
  ...Array.from({ length: steps }, (_, at) => ({
    path: `workspace/u${at + 1}`,
    link: at === 0 ? 'b/..' : `u${at}/..`,
  })),
]

t.test('a repository behind chained links does not change main of a repository outside', async t => {
  const { victim, history, folder, ...where } = place(t)
  const before = [inGit(victim, 'rev-parse', 'main'), bytesOf(join(folder, 'home'))]
  const daemon = await spawnDaemon(t, where)
  const path = join(where.workspace, 'evil.tar.gz')
  for (let up = 1; up <= 8; up++) {
    for (const repo of [`u${up}/victim`, `u${up}`, 'b/victim', `deep/u${up}/victim`]) {
      const links = chain(8).map(each =>
        repo.startsWith('deep/') ? { ...each, path: each.path.replace('workspace/', 'workspace/deep/') } : each,
      )
      for (const whole of [true, false]) {
        await made(path, [...links, history], { whole, repositories: [repository(repo)] })
        for (const mode of ['check', 'apply'] as const) {
          const refused = await refusal(daemon.client.call('POST /bundles/restore', { path: 'evil.tar.gz', mode }))
          t.match(refused, { status: 422, message: new RegExp(`repository "${repo}"`) }, `${repo}, ${mode}`)
        }
      }
    }
  }
  await daemon.terminate()
  t.same(
    [inGit(victim, 'rev-parse', 'main'), bytesOf(join(folder, 'home'), /^work\/(?:evil\.tar\.gz|\.sandbox)/)],
    before,
  )
})

t.test('chained links to nothing are not restored, and check names the same ones', async t => {
  const { folder, victim, history, ...where } = place(t)
  const before = bytesOf(victim)
  const daemon = await spawnDaemon(t, where)
  await made(
    join(where.workspace, 'links.tar.gz'),
    [
      ...chain(7),
      { path: 'workspace/out', link: 'u7/etc' },
      { path: 'workspace/round', link: 'about' },
      { path: 'workspace/about', link: 'round' },
      { path: 'workspace/in', link: 'b/a.txt' },
      { path: 'workspace/a.txt', text: 'a\n' },
      history,
    ],
    { repositories: [repository('root'), repository('nested')] },
  )
  const check = await daemon.client.call('POST /bundles/restore', { path: 'links.tar.gz', mode: 'check' })
  const names = ['u1', 'u2', 'u3', 'u4', 'u5', 'u6', 'u7', 'out'].map(path => ({
    path,
    reason: 'it is a link that leads out of the workspace',
  }))
  t.same(check.skipped, [
    ...names,
    ...['round', 'about'].map(path => ({ path, reason: 'it is a link that leads in a circle' })),
  ])
  const asked = Date.now()
  const report = await daemon.client.call('POST /bundles/restore', { path: 'links.tar.gz', mode: 'apply' })
  t.same([report.skipped, report.written], [check.skipped, check.written])
  const again = await startedAnew(daemon, asked)
  await again.client.call('GET /agents')
  t.same(
    ['b', 'in'].map(name => readlinkSync(join(where.workspace, name))),
    ['.', 'b/a.txt'],
  )
  t.same(
    [...names, { path: 'round' }, { path: 'about' }].filter(({ path }) => existsSync(join(where.workspace, path))),
    [],
  )
  t.ok(contains(where.workspace, realpathSync(join(where.workspace, 'in'))))
  t.equal(inGit(join(where.workspace, 'nested'), 'rev-parse', 'main'), inGit(where.workspace, 'rev-parse', 'main'))
  t.same(bytesOf(victim), before)
})

t.test(
  'a repository whose folder is behind a link or a file of the workspace is refused, and nothing is moved',
  async t => {
    const { folder, victim, history, ...where } = place(t)
    const before = bytesOf(join(folder, 'home', 'victim'))
    mkdirSync(join(where.workspace, 'a'))
    symlinkSync(join(folder, 'home'), join(where.workspace, 'a/link'))
    writeFileSync(join(where.workspace, 'a/file'), '')
    const daemon = await spawnDaemon(t, where)
    for (const [repo, at] of [
      ['a/link/victim', 'a/link is a link'],
      ['a/link/none/x', 'a/link is a link'],
      ['a/file/x', 'a/file is a file'],
    ]) {
      await made(
        join(where.workspace, 'behind.tar.gz'),
        [{ path: `workspace/${repo}/precious.txt`, text: 'overwritten\n' }, history],
        { whole: false, repositories: [repository(repo!)] },
      )
      for (const mode of ['check', 'apply'] as const) {
        t.match(
          await refusal(daemon.client.call('POST /bundles/restore', { path: 'behind.tar.gz', mode })),
          { status: 409, message: new RegExp(`^${at}.*move`) },
          `${repo}, ${mode}`,
        )
      }
    }
    t.same([bytesOf(victim), leftOf(daemon).filter(path => path.endsWith('.json'))], [before, []])
  },
)
