import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { exactly } from '../../support/lists.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { openEvents } from '../system/stream/events-support.js'
import { commitAll, put, repoAt, tryGit } from './support.js'

const daemon = await daemonWith(t, ['git', 'system', 'areas', 'workspace'], { files: { 'README.md': '# work\n' } })
const { client, workspace } = daemon

/** The repositories of each `refsChanged` from now on; `next` waits for one. */
const movesSeenBy = async (t: Test, session = daemon.session) => {
  const events = await openEvents(t, { url: daemon.url, session }, '')
  t.teardown(() => events.close())
  const next = async (): Promise<readonly string[]> => {
    for (;;) {
      const event = await events.next()
      if (event.kind === 'refsChanged') return event.repos
    }
  }
  return { next }
}

/** A repository with one commit, which is watched. */
const watched = async (repo: string): Promise<string> => {
  const at = join(workspace, repo)
  repoAt(at, { f: '1\n' })
  await client.call('GET /git/changes', {})
  return at
}

t.test('repositories that are there at the start are watched before anybody reads them', async t => {
  const { next } = await movesSeenBy(t)
  const seen = next()
  let found: readonly string[] | undefined
  void seen.then(repos => (found = repos))
  for (let n = 0; !found; n++) {
    inGit(workspace, 'commit', '-q', '--allow-empty', '-m', `${n}`)
    await Promise.race([seen, new Promise(resolve => setTimeout(resolve, 500))])
  }
  t.match(await seen, exactly('root'))
})

t.test('a repository that another program makes is reported and watched without a read', async t => {
  repoAt(join(workspace, 'source'), { f: '1\n' })
  await client.call('GET /workspace/tree', {})
  await client.call('GET /git/repos')
  const events = await openEvents(t, { url: daemon.url, session: daemon.session }, '')
  t.teardown(() => events.close())
  inGit(workspace, 'clone', '-q', join(workspace, 'source'), join(workspace, 'group/cloned'))
  await events.until('reposChanged', ({ repos }) => repos.includes('group/cloned'))
  inGit(join(workspace, 'group/cloned'), 'branch', 'side')
  await events.until('refsChanged', ({ repos }) => repos.includes('group/cloned'))
  rmSync(join(workspace, 'group'), { recursive: true })
  await events.until('reposChanged', ({ repos }) => !repos.includes('group/cloned'))
  mkdirSync(join(workspace, 'plain'))
  await client.call('GET /workspace/tree', {})
  inGit(join(workspace, 'plain'), 'init', '-q')
  const { repos } = await events.until('reposChanged', event => event.repos.includes('plain'))
  t.same(repos, ['root', ...(await client.call('GET /git/repos')).repos])
})

t.test('whatever moves in a repository outside of the calls is reported with its name', async t => {
  const at = await watched('outside')
  // Its events come after all that moved before.
  const end = await watched('the-end')
  inGit(at, 'remote', 'add', 'origin', join(workspace, 'outside'))
  const { next } = await movesSeenBy(t)
  for (const [what, move] of [
    ['a commit', () => (put(at, { f: '2\n' }), commitAll(at, 'two'))],
    ['a staged file', () => (put(at, { g: 'g\n' }), inGit(at, 'add', 'g'))],
    ['a stash', () => inGit(at, 'stash', '-q')],
    ['a second stash', () => (put(at, { f: 's\n' }), inGit(at, 'stash', '-q'))],
    ['the older stash dropped', () => inGit(at, 'stash', 'drop', '-q', 'stash@{1}')],
    ['a branch in new folders', () => inGit(at, 'branch', 'deep/er/work')],
    ['a branch in a folder that was new', () => inGit(at, 'branch', 'deep/er/more')],
    ['a branch deleted', () => inGit(at, 'branch', '-qD', 'deep/er/work')],
    ['a tag', () => inGit(at, 'tag', 'v1')],
    ['a fetch', () => inGit(at, 'fetch', '-q')],
    ['packed refs', () => inGit(at, 'pack-refs', '--all')],
    ['a checkout', () => inGit(at, 'checkout', '-q', '-b', 'side')],
    ['a commit there', () => (put(at, { f: 'side\n' }), commitAll(at, 'side'))],
    [
      'a halted merge',
      () => {
        inGit(at, 'checkout', '-q', 'main')
        put(at, { f: 'main\n' })
        commitAll(at, 'main')
        tryGit(at, 'merge', 'side')
      },
    ],
    ['the merge aborted', () => inGit(at, 'merge', '--abort')],
    ['a halted rebase', () => tryGit(at, 'rebase', 'side')],
    ['the rebase aborted', () => inGit(at, 'rebase', '--abort')],
  ] as const) {
    move()
    inGit(end, 'commit', '-q', '--allow-empty', '-m', what)
    const seen: string[] = []
    while (!seen.includes('the-end')) seen.push(...(await next()))
    t.ok(seen.includes('outside'), what)
  }
})

t.test('an answer after the event shows the move', async t => {
  const at = await watched('fresh')
  const { next } = await movesSeenBy(t)
  await client.call('GET /git/changes', {})
  put(at, { f: 'edited\n' })
  const seen = next()
  inGit(at, 'add', 'f')
  await seen
  const { repos } = await client.call('GET /git/changes', { repo: 'fresh' })
  t.match(repos, exactly({ staged: exactly({ path: 'f', status: 'modified' }) }))
})

t.test('an answer after an event about files shows their changes', async t => {
  const at = await watched('edited')
  const { generation } = await client.call('GET /workspace/tree', {})
  const events = await openEvents(t, { url: daemon.url, session: daemon.session }, '')
  t.teardown(() => events.close())
  const before = await client.call('GET /git/changes', { repo: 'edited' })
  t.same(before.repos[0]?.unstaged, [])
  put(at, { f: 'edited\n' })
  for (let seen = false; !seen;) {
    const event = await events.next()
    seen = event.kind === 'workspaceChanged' && event.generation > generation
  }
  const { repos } = await client.call('GET /git/changes', { repo: 'edited' })
  t.match(repos, exactly({ unstaged: exactly({ path: 'f', status: 'modified' }) }))
})

t.test('a burst of moves is one event, and a call that moved refs is reported once', async t => {
  const at = await watched('burst')
  const end = await watched('end')
  const { next } = await movesSeenBy(t)
  const first = next()
  await client.call('POST /git/{repo}/branches', { repo: 'burst', name: 'made' })
  t.match(await first, exactly('burst'))
  for (let n = 0; n < 20; n++) inGit(at, 'update-ref', `refs/heads/b${n}`, 'HEAD')
  inGit(end, 'branch', 'last')
  let events = 0
  for (let repos = await next(); repos[0] !== 'end'; repos = await next()) events += 1
  t.ok(events >= 1 && events <= 5, `${events} events for 20 branches`)
})

t.test('reading changes nothing, so that a client that reads on every event comes to rest', async t => {
  const at = await watched('calm')
  const end = await watched('rest')
  put(at, { f: '1\n' })
  const { next } = await movesSeenBy(t)
  for (let n = 0; n < 3; n++) {
    await client.call('GET /git/changes', {})
    await client.call('GET /git/{repo}/status', { repo: 'calm' })
    await client.call('GET /git/{repo}/log', { repo: 'calm' })
  }
  const seen = next()
  inGit(end, 'branch', 'last')
  t.match(await seen, exactly('rest'))
})

t.test('a repository that was deleted and made again, and a linked worktree, are watched', async t => {
  const at = await watched('again')
  rmSync(at, { recursive: true })
  await client.call('GET /git/changes', {})
  await watched('again')
  inGit(at, 'worktree', 'add', '-q', join(workspace, 'linked'), '-b', 'linked')
  await client.call('GET /git/changes', {})
  const { next } = await movesSeenBy(t)
  const seen = new Set<string>()
  put(join(workspace, 'linked'), { f: 'w\n' })
  commitAll(join(workspace, 'linked'), 'in the worktree')
  while (seen.size < 2) for (const repo of await next()) seen.add(repo)
  t.same([...seen].sort(), ['again', 'linked'])
})

t.test('people limited to areas get the events of repositories in their folders only', async t => {
  const closed = await watched('closed')
  const docs = await watched('docs')
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  const { session } = await joined(daemon, 'ann', 'viewer', ['docs'])
  const { next } = await movesSeenBy(t, session)
  const seen = next()
  inGit(closed, 'branch', 'hidden')
  inGit(docs, 'branch', 'shown')
  t.match(await seen, exactly('docs'))
})
