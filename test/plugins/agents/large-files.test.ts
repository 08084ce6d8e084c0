import { existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { refusal } from '../agent/support.js'
import { tookLess } from '../../support/in-time.js'

t.setTimeout(120_000)

const GIB = 1024 ** 3
/** Less time than any machine needs to read and pack such a file. */
const READ_MS = 15_000

const sparse = (path: string, size: number): void => {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, '')
  truncateSync(path, size)
}

const quickly = async <T>(t: Test, what: string, work: Promise<T>): Promise<T> => {
  const began = performance.now()
  const answer = await work
  const took = Math.round(performance.now() - began)
  t.ok(tookLess(took, READ_MS), `${what} took ${took} ms`)
  return answer
}

/** A daemon with a waiting turn in a private copy, in which huge files were created. */
const withHuge = async (t: Test) => {
  const daemon = await daemonWith(t, ['system', 'agent', 'agents'], {
    files: { 'small.txt': 'small\n', 'grows.bin': 'seed\n' },
  })
  const copy = join(daemon.data, 'agent', 'checkouts', 'c')
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'c',
    prompt: 'write work.txt\n| work\nask Now?\n| yes',
    isolated: true,
  })
  const frames = framesOf(daemon.client, 'c', { run })
  const { requestId } = await frames.until(({ kind }) => kind === 'question')
  sparse(join(copy, 'new/big'), 6 * GIB)
  const end = async () => {
    await daemon.client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Now?': 'yes' } })
    await frames.all()
  }
  return { ...daemon, copy, end }
}

t.test(
  'a huge file of a private copy delays neither diff nor landing, is listed with its size, and stays in the copy',
  async t => {
    const { client, workspace, copy, end } = await withHuge(t)
    const big = { path: 'new/big', status: 'added', landed: false, tooLarge: 6 * GIB }
    const changes = async () =>
      (await quickly(t, 'the diff', client.call('GET /agents/{id}/diff', { id: 'c' }))).repos[0]!.changes
    t.match(await changes(), exactly(big, { path: 'work.txt', additions: 1 }), 'while the turn runs')
    t.same(await client.call('GET /agents/{id}/{repo}/file-diff', { id: 'c', repo: 'root', path: 'new/big' }), {
      binary: true,
    })
    await end()
    await quickly(t, 'the roster', client.call('GET /agents'))
    t.match(await changes(), exactly(big, { path: 'work.txt', additions: 1 }), 'after the turn')
    const landed = await quickly(t, 'landing', client.call('POST /agents/{id}/land', { id: 'c' }))
    const reason =
      'new/big has 6.0 GiB, and files of a private copy are committed up to 512 MiB: it stays in the copy and '
      + 'does not land'
    t.same(landed, {
      landed: true,
      uncommitted: [{ repo: 'root', paths: ['work.txt'] }],
      tooLarge: [{ repo: 'root', path: 'new/big', size: 6 * GIB, reason }],
    })
    t.same([readFileSync(join(workspace, 'work.txt'), 'utf8'), existsSync(join(workspace, 'new'))], ['work\n', false])
    t.equal(statSync(join(copy, 'new/big')).size, 6 * GIB)
    t.equal(inGit(copy, 'ls-files', 'new'), '')
    const said = (await quickly(t, 'the next turn', runTurn(client, 'c', 'write more.txt\n| more'))).filter(
      (frame): frame is Frame & { kind: 'notice' } => frame.kind === 'notice',
    )
    t.same(
      said.map(({ text, level }) => [text, level]),
      [[reason, 'warning']],
    )
    t.match(await client.call('POST /agents/archive', { ids: ['c'] }), {
      failed: exactly({ id: 'c', message: /new\/big has 6\.0 GiB/ }),
    })
    rmSync(join(copy, 'new/big'))
    t.match(await client.call('POST /agents/archive', { ids: ['c'] }), { moved: exactly({ id: 'c' }) })
  },
)

t.test('a sync or a rewind of a copy never removes a huge file', async t => {
  const { client, workspace, copy, end } = await withHuge(t)
  await end()
  await runTurn(client, 'c', 'write small.txt\n| theirs')
  writeFileSync(join(workspace, 'small.txt'), 'mine\n')
  inGit(workspace, 'commit', '-qam', 'mine')
  t.match(await quickly(t, 'a sync', client.call('POST /agents/{id}/sync', { id: 'c' })), {
    repos: exactly({ blocked: true, paths: exactly('small.txt') }),
  })
  t.equal(statSync(join(copy, 'new/big')).size, 6 * GIB)
  t.match(await client.call('POST /agent/rewind', { conversationId: 'c', index: 2 }), { dropped: 2 })
  t.equal(statSync(join(copy, 'new/big')).size, 6 * GIB)
  sparse(join(copy, 'grows.bin'), GIB)
  t.match(await refusal(client.call('POST /agent/rewind', { conversationId: 'c', index: 0 })), {
    status: 409,
    message: /grows\.bin has 1\.0 GiB.*going back would lose it/,
  })
  t.match(await client.call('POST /agents/{id}/sync', { id: 'c' }), {
    repos: exactly({ blocked: true, paths: exactly('grows.bin') }),
  })
  t.equal(statSync(join(copy, 'grows.bin')).size, GIB)
})

t.test('a huge file at the target of a landing is a conflict, and is not read', async t => {
  const { client, workspace } = await daemonWith(t, ['system', 'agent', 'agents'], { files: { 'a.txt': 'a\n' } })
  await runTurn(client, 'c', 'write a.txt\n| theirs', { isolated: true })
  sparse(join(workspace, 'a.txt'), 6 * GIB)
  t.match(await quickly(t, 'landing', client.call('POST /agents/{id}/land', { id: 'c' })), {
    landed: false,
    conflicts: exactly({ paths: exactly({ path: 'a.txt', reason: 'workspace' }) }),
  })
  t.equal(statSync(join(workspace, 'a.txt')).size, 6 * GIB)
})
