import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { commitAll, put, repoAt } from '../plugins/git/support.js'
import { folderOf, inGit, spawnDaemon } from '../support/daemon.js'
import { exactly } from '../support/lists.js'
import { sshKey, sshServer, withSshd } from '../support/ssh-server.js'
import { runTurn } from '../support/turns.js'
import { walled } from '../attack/support.js'
import { dies, whereIn } from './failpoints/failpoints.js'

/** The files of a large restore; 20,000 in `npm run crash`. */
const MANY = Number(process.env['SANDBOX_CRASH_FILES'] ?? 4000)
const FILES = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`many/${at}`, `${at}\n`]))

t.test('killed during a rebase of 400 commits, the branch is where it was and the next write works', async t => {
  const where = whereIn(t)
  const at = join(where.workspace, 'r')
  repoAt(at, { f: '0\n' })
  inGit(at, 'checkout', '-q', '-b', 'work')
  for (let n = 0; n < 400; n++) inGit(at, 'commit', '-q', '--allow-empty', '-m', `work ${n}`)
  const tip = inGit(at, 'rev-parse', 'HEAD').trim()
  inGit(at, 'checkout', '-q', 'main')
  put(at, { g: 'g\n' })
  const onto = commitAll(at, 'main moves')
  inGit(at, 'checkout', '-q', 'work')
  const daemon = await spawnDaemon(t, where)
  const asked = daemon.once.call('POST /git/{repo}/rebase', { repo: 'r', sha: onto }).catch(error => error)
  while (!existsSync(join(at, '.git/rebase-merge/done'))) await new Promise(resolve => setTimeout(resolve, 5))
  await daemon.kill9()
  await asked
  const next = await spawnDaemon(t, where)
  t.notOk('operation' in (await next.client.call('GET /git/{repo}/operation', { repo: 'r' })))
  t.equal(inGit(at, 'rev-parse', 'work').trim(), tip)
  t.equal(inGit(at, 'branch', '--show-current').trim(), 'work')
  const { events } = await next.client.call('GET /activity', {})
  t.ok(events.some(({ type }) => type === 'git.recovered'))
  t.match(await next.client.call('POST /git/{repo}/rebase', { repo: 'r', sha: onto }), { ok: true })
})

for (const point of ['git.write.begun', 'history.trees.kept', 'git.discard.saved'])
  t.test(`killed at ${point}, nothing is discarded, and a point is listed whole or not at all`, async t => {
    const where = whereIn(t)
    await dies(t, where, point, async ({ once: client }) => {
      put(where.workspace, { 'README.md': 'edited\n', ...FILES })
      await client.call('POST /git/{repo}/discard', { repo: 'root' })
    })
    const next = await spawnDaemon(t, where)
    t.equal(readFileSync(join(where.workspace, 'README.md'), 'utf8'), 'edited\n')
    t.ok(existsSync(join(where.workspace, 'many/199')))
    const { snapshots } = await next.client.call('GET /history/snapshots', {})
    t.equal(snapshots.length, point === 'git.discard.saved' ? 1 : 0)
    const { point: saved } = await next.client.call('POST /git/{repo}/discard', { repo: 'root' })
    t.notOk(existsSync(join(where.workspace, 'many/199')))
    await next.client.call('POST /history/restore', { id: saved! })
    t.ok(existsSync(join(where.workspace, 'many/199')))
  })

for (const point of ['history.restore.begun', 'history.restore.written'])
  t.test(`a restore killed at ${point} is finished at the next start and can be undone`, async t => {
    const where = whereIn(t)
    await dies(t, where, point, async ({ once: client }) => {
      put(where.workspace, FILES)
      repoAt(join(where.workspace, 'inner'), { i: 'old\n' })
      const { id } = await client.call('POST /history/snapshots', { label: 'good' })
      put(where.workspace, { 'many/0': 'bad\n', 'made/new': 'n\n', 'inner/i': 'bad\n' })
      await client.call('POST /history/restore', { id: id! })
    })
    const next = await spawnDaemon(t, where)
    const { snapshots } = await next.client.call('GET /history/snapshots', {})
    const before = snapshots.find(({ trigger }) => trigger === 'pre-restore')!
    const good = snapshots.find(({ label }) => label === 'good')!
    t.same((await next.client.call('GET /history/diff', { id: good.id, against: 'now' })).changes, [])
    t.notOk(existsSync(join(where.workspace, 'made/new')))
    await next.client.call('POST /history/restore', { id: before.id })
    t.equal(readFileSync(join(where.workspace, 'inner/i'), 'utf8'), 'bad\n')
  })

for (const point of ['agent.rewind.begun', 'history.restore.begun', 'history.restore.written', 'agent.rewind.restored'])
  t.test(`a rewind in the shared tree killed at ${point} is undone or complete after the next start`, async t => {
    const where = whereIn(t)
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(client, 's', 'say first\nwrite a.txt\n| one')
      await runTurn(client, 's', 'say second\nappend a.txt\n| two\nwrite new/deep.txt\n| new')
      await client.call('POST /agent/rewind', { conversationId: 's', index: 2 })
    })
    const next = await spawnDaemon(t, where)
    while (!(await next.client.call('GET /info')).boot.ready) await new Promise(resolve => setTimeout(resolve, 50))
    const { messages } = await next.client.call('GET /agents/{id}/transcript', { id: 's' })
    const back = point !== 'agent.rewind.begun'
    t.equal(messages.length, back ? 2 : 4)
    t.equal(readFileSync(join(where.workspace, 'a.txt'), 'utf8'), back ? 'one\n' : 'one\ntwo\n')
    t.equal(existsSync(join(where.workspace, 'new/deep.txt')), !back)
    const again = await next.client.call('POST /agent/rewind', { conversationId: 's', index: 2 })
    t.match(again, { dropped: back ? 0 : 2 })
  })

t.test(
  `killed in the middle of a restore of ${MANY} files, the next start finishes it, and it can be undone`,
  async t => {
    const where = whereIn(t)
    const write = (text: string) => {
      for (let at = 0; at < MANY; at++) writeFileSync(join(where.workspace, `many/${at % 200}/${at}`), text)
    }
    const restored = (at: number) => {
      try {
        return readFileSync(join(where.workspace, `many/${at % 200}/${at}`), 'utf8') === 'good\n'
      } catch {
        // Git removes a file before it writes it anew.
        return false
      }
    }
    for (let at = 0; at < 200; at++) mkdirSync(join(where.workspace, `many/${at}`), { recursive: true })
    let id: string | undefined
    const cut = async () => {
      write('good\n')
      const daemon = await spawnDaemon(t, where)
      const made = await daemon.once.call('POST /history/snapshots', { label: 'good' })
      id = made.id ?? id
      write('bad\n')
      const asked = daemon.once.call('POST /history/restore', { id: id! }).catch(error => error)
      while (!restored(0)) await new Promise(resolve => setTimeout(resolve, 5))
      await daemon.kill9()
      await asked
      return !restored(MANY - 1)
    }
    // On a busy machine a restore can end before this process sees that it began.
    t.ok((await cut()) || (await cut()) || (await cut()), 'it was killed before the last file')
    const next = await spawnDaemon(t, where)
    // Until it is finished, calls are refused.
    while (!(await next.client.call('GET /info')).boot.ready) await new Promise(resolve => setTimeout(resolve, 50))
    const { snapshots } = await next.client.call('GET /history/snapshots', {})
    t.same((await next.client.call('GET /history/diff', { id: id!, against: 'now' })).changes, [])
    for (let at = 0; at < MANY; at++) if (!restored(at)) t.fail(`${at} is not restored`)
    const before = snapshots.find(({ trigger }) => trigger === 'pre-restore')!
    t.match(await next.client.call('POST /history/restore', { id: before.id }), { restored: MANY, failed: exactly() })
    t.equal(readFileSync(join(where.workspace, 'many/0/0'), 'utf8'), 'bad\n')
  },
)

t.test('after a killed clone or new repository the next start removes the leftovers, and the call works', async t => {
  const where = whereIn(t)
  repoAt(join(where.workspace, 'source'), { f: '1\n' })
  const clone = { name: 'made', cloneUrl: './source' }
  await dies(t, where, 'git.clone.staged', ({ once: client }) => client.call('POST /workspace/repos', clone))
  await dies(t, where, 'git.start.committed', ({ once: client }) =>
    client.call('POST /workspace/repos/init', { path: 'begun' }),
  )
  const { client } = await spawnDaemon(t, where)
  await client.call('GET /git/repos')
  t.same(readdirSync(join(where.data, 'gitdirs')), [])
  t.same(readdirSync(join(where.workspace, '.sandbox/local/clones')), [])
  t.notOk(existsSync(join(where.workspace, 'made')))
  t.notOk(existsSync(join(where.workspace, 'begun/.git')))
  await client.call('POST /workspace/repos', clone)
  t.equal(readFileSync(join(where.workspace, 'made/f'), 'utf8'), '1\n')
  t.match(await client.call('POST /workspace/repos/init', { path: 'begun' }), { head: /^[0-9a-f]{40}$/ })
  t.equal(readdirSync(join(where.data, 'gitdirs')).length, 2)
})

t.test(
  'killed when a host key was kept, the key is there once, and another one is refused after the restart',
  { ...walled(), ...withSshd() },
  async t => {
    const where = whereIn(t)
    const at = join(where.workspace, 'r')
    repoAt(at, { f: '1\n' })
    const keys = folderOf(t)
    const server = await sshServer(t, keys, [sshKey(keys, 'mine').public])
    inGit(at, 'remote', 'add', 'origin', server.url('/nothing.git'))
    await dies(t, where, 'known-hosts.kept', ({ once }) => once.call('POST /git/{repo}/fetch', { repo: 'r' }))
    const known = () => readFileSync(join(where.data, 'git/known-hosts'), 'utf8')
    const kept = known()
    t.match(kept, new RegExp(`^\\[localhost\\]:${server.port} ssh-ed25519 \\S+\n$`))
    const { client, terminate } = await spawnDaemon(t, where)
    t.match(await client.call('POST /git/{repo}/fetch', { repo: 'r' }), { code: 'auth', reason: /permission denied/i })
    t.equal(known(), kept)
    await server.replace()
    t.match(await client.call('POST /git/{repo}/fetch', { repo: 'r' }), { code: 'auth', reason: /host key/ })
    t.equal(known(), kept)
    t.same(readdirSync(join(where.data, 'git/transfers')), [])
    await terminate()
  },
)
