import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../support/browser/browser.js'
import { inGit } from '../../support/daemon.js'
import { OPERATIONS } from '../../support/schema.js'
import { exactly } from '../../support/lists.js'
import { runningCommands } from '../../support/running-commands.js'
import { commitAll, gitWorld, put, repoAt } from './support.js'

const { client, workspace, daemon } = await gitWorld(t, { 'README.md': '# work\n' }, ['workspace', 'history'])

/** Ways in which a repository with two commits, a stash and a change is damaged; each gets its git folder. */
const DAMAGES: { readonly [what: string]: (git: string) => void } = {
  'its HEAD is garbage': git => writeFileSync(join(git, 'HEAD'), Buffer.alloc(40, 0xff)),
  'its HEAD is empty': git => writeFileSync(join(git, 'HEAD'), ''),
  'its branch names no object': git => writeFileSync(join(git, 'refs/heads/main'), `${'1'.repeat(40)}\n`),
  'its branch is cut off': git => truncateSync(join(git, 'refs/heads/main'), 10),
  'its index is cut off': git => truncateSync(join(git, 'index'), 60),
  'its index is garbage': git => writeFileSync(join(git, 'index'), Buffer.alloc(500, 1)),
  'its settings cannot be parsed': git => writeFileSync(join(git, 'config'), '[core\n=='),
  'its objects are cut off': git => {
    for (const name of readdirSync(join(git, 'objects'), { recursive: true }) as string[])
      if (/^[0-9a-f]{2}\/[0-9a-f]{38}$/.test(name)) {
        rmSync(join(git, 'objects', name))
        writeFileSync(join(git, 'objects', name), 'x\x9c')
      }
  },
  'its objects are gone': git => {
    rmSync(join(git, 'objects'), { recursive: true })
    mkdirSync(join(git, 'objects'))
  },
  'its pack is cut off': git => {
    inGit(join(git, '..'), 'repack', '-q', '-a', '-d')
    const pack = readdirSync(join(git, 'objects/pack')).find(name => name.endsWith('.pack'))!
    rmSync(join(git, 'objects/pack', pack))
    writeFileSync(join(git, 'objects/pack', pack), 'PACK')
  },
  'it is half cloned': git => {
    rmSync(join(git, 'index'))
    rmSync(join(git, 'refs/heads/main'))
    rmSync(join(git, 'logs'), { recursive: true, force: true })
    writeFileSync(join(git, 'objects/pack/tmp_pack_half'), 'PACK')
    writeFileSync(join(git, 'shallow.lock'), '')
  },
  'its git folder holds only a HEAD': git => {
    for (const name of readdirSync(git)) if (name !== 'HEAD') rmSync(join(git, name), { recursive: true })
  },
}

const READS = OPERATIONS.filter(({ call }) => call.startsWith('GET /git/{repo}/'))
const GIVEN: { readonly [name: string]: string } = { path: 'f', sha: 'HEAD', side: 'unstaged', ref: 'stash@{0}' }
const ANSWERED = new Set([200, 404, 409, 422])

for (const [index, [what, damage]] of Object.entries(DAMAGES).entries())
  t.test(`a repository is read or refused with a reason when ${what}`, async t => {
    const repo = `damaged-${index}`
    const at = join(workspace, repo)
    repoAt(at, { f: '1\n' })
    put(at, { f: 'stashed\n' })
    inGit(at, 'stash', '-q')
    put(at, { f: '2\n' })
    const sha = commitAll(at, 'second')
    put(at, { f: '3\n' })
    damage(join(at, '.git'))
    for (const { call, parameters } of READS) {
      const query = new URLSearchParams()
      for (const { name, required, in: place } of parameters)
        if (place === 'query' && (required || name === 'path')) query.set(name, name === 'sha' ? sha : GIVEN[name]!)
      const response = await daemon.fetch(`${call.slice(4).replace('{repo}', repo)}?${query}`)
      const text = await response.text()
      if (!ANSWERED.has(response.status) || !text.startsWith('{'))
        t.fail(`${call}?${query} answered ${response.status}: ${text.slice(0, 300)}`)
    }
    const changes = await client.call('GET /git/changes', {})
    t.ok(changes.repos.some(each => each.repo === repo))
    for (const [path, body] of [
      ['stage', { paths: ['f'] }],
      ['discard', { paths: ['f'] }],
      ['commit', { message: 'on it', all: true }],
    ] as const) {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
      const response = await daemon.fetch(`/git/${repo}/${path}`, init)
      const text = await response.text()
      if (!ANSWERED.has(response.status) || !text.startsWith('{'))
        t.fail(`${path} answered ${response.status}: ${text.slice(0, 300)}`)
      if (response.status !== 200) t.ok(readFileSync(join(at, 'f'), 'utf8') !== '', `${path} left the file`)
    }
    rmSync(at, { recursive: true })
  })

t.test('git lists what the workspace lists, 6 levels deep, and clones that the workspace ignores', async t => {
  put(workspace, { 'lists/.gitignore': 'ignored\n' })
  const listed = ['a/b/c/d/e', 'ignored/x', 'sub', 'sub/module', 'a/b/c/d/f/g', 'node_modules/x']
  for (const path of listed) repoAt(join(workspace, 'lists', path), { f: '1\n' })
  const within = ({ repos }: { readonly repos: readonly string[] }) =>
    repos.filter(repo => repo.startsWith('lists/')).map(repo => repo.slice('lists/'.length))
  t.same(within(await client.call('GET /workspace/repos')), ['a/b/c/d/e', 'sub'])
  t.same(within(await client.call('GET /git/repos')), ['a/b/c/d/e', 'ignored/x', 'sub', 'sub/module'])
  rmSync(join(workspace, 'lists'), { recursive: true })
})

t.test('a repository that is slow to read delays no other of the same scan', async t => {
  const at = join(workspace, 'slow')
  const go = join(at, 'go')
  repoAt(at, { f: '1\n', '.gitattributes': 'f filter=slow\n', '.gitignore': 'go\n' })
  inGit(at, 'config', 'filter.slow.clean', `while ! test -e ${go}; do sleep 0.05; done; cat`)
  put(at, { f: '2\n' })
  repoAt(join(workspace, 'quick'), { f: '1\n' })
  put(join(workspace, 'quick'), { f: '2\n' })
  let ended = false
  const all = client.call('GET /git/changes', {}).finally(() => (ended = true))
  await until(() => runningCommands().some(command => command.includes(go)))
  const quick = { repo: 'quick', unstaged: exactly({ path: 'f', status: 'modified' }) }
  t.match(await client.call('GET /git/changes', { repo: 'quick' }), { repos: exactly(quick) })
  t.equal(ended, false)
  put(at, { go: '' })
  const { repos } = await all
  t.match(
    repos.filter(({ repo }) => ['quick', 'slow'].includes(repo)),
    exactly(quick, { ...quick, repo: 'slow' }),
  )
})
