import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { spawnDaemon } from '../../support/daemon.js'
import { askPage, pathOfUrl } from '../../plugins/outbox/support.js'
import { dies, OUTBOX_POINTS, whereIn, type Where } from '../failpoints/failpoints.js'

/** Writes a folder in which every file says which one it is of. */
const makeTree = ({ workspace }: Where, files: number, word: string): void => {
  mkdirSync(join(workspace, 'tree'), { recursive: true })
  for (let at = 0; at < files; at++) writeFileSync(join(workspace, 'tree', `${at % 9}-${at}.txt`), `${word} ${at}`)
  writeFileSync(join(workspace, 'tree/index.html'), word)
}

/** The words of the published files, and what is left in staging. */
const published = async (t: Test, where: Where) => {
  const { client, url } = await spawnDaemon(t, where)
  const { files, url: base } = await client.call('GET /public', { limit: 2000 })
  const words = new Set(
    files.map(({ path }) => readFileSync(join(where.workspace, 'public', path), 'utf8').split(' ')[0]),
  )
  const page = await askPage(url, `${pathOfUrl(base)}/tree/`)
  const local = join(where.workspace, '.sandbox/local')
  return {
    words: [...words],
    unserved: files.filter(file => file.url === undefined),
    page: page.status === 200 ? page.body.toString() : page.status,
    staged: readdirSync(join(local, 'outbox')),
  }
}

const AFTER: { readonly [point: string]: 'old' | 'new' } = {
  'outbox.staged': 'old',
  'outbox.noted': 'new',
  'outbox.parted': 'new',
  'outbox.placed': 'new',
}

for (const point of OUTBOX_POINTS.filter(name => AFTER[name]))
  void t.test(`a folder is published again as a whole if the daemon is killed at ${point}`, async t => {
    const where = whereIn(t)
    makeTree(where, 20, 'old')
    await dies(t, where, `${point}:2`, async ({ once: client }) => {
      await client.call('POST /public/publish', { path: 'tree' })
      makeTree(where, 15, 'new')
      for (let at = 15; at < 20; at++) writeFileSync(join(where.workspace, 'tree', `${at % 9}-${at}.txt`), `new ${at}`)
      await client.call('POST /public/publish', { path: 'tree' })
    })
    const word = AFTER[point]!
    t.same(await published(t, where), { words: [word], unserved: [], page: word, staged: [] })
  })

void t.test('what is withdrawn is gone if the daemon is killed at outbox.withdrawn', async t => {
  const where = whereIn(t)
  makeTree(where, 3, 'old')
  await dies(t, where, 'outbox.withdrawn', async ({ once: client }) => {
    await client.call('POST /public/publish', { path: 'tree' })
    await client.call('POST /public/unpublish', { path: 'tree' })
  })
  t.same(await published(t, where), { words: [], unserved: [], page: 404, staged: [] })
  t.notOk(readdirSync(where.workspace).includes('public'))
})

void t.test('of 5,000 files all are old or all are new if the daemon is killed while they are published', async t => {
  const where = whereIn(t)
  makeTree(where, 50, 'old')
  const daemon = await spawnDaemon(t, where)
  const { url } = await daemon.once.call('POST /public/publish', { path: 'tree' })
  makeTree(where, 5_000, 'new')
  const again = daemon.once.call('POST /public/publish', { path: 'tree' }).catch(() => undefined)
  await new Promise(resolve => setTimeout(resolve, 300))
  await daemon.kill9()
  await again
  const { words, page, unserved, staged } = await published(t, where)
  t.equal(words.length, 1)
  t.same({ page, unserved, staged }, { page: words[0], unserved: [], staged: [] })
  t.match(url, /\/tree\/$/)
})

void t.test('a new slot, an expiry and how often files were opened outlive the daemon', async t => {
  const where = whereIn(t)
  const first = await spawnDaemon(t, where)
  const expiresAt = Date.now() + 60_000
  await first.client.call('POST /public/publish', { path: 'README.md', expiresAt })
  const { url: base } = await first.client.call('POST /public/rotate')
  await askPage(first.url, `${pathOfUrl(base)}/README.md`)
  await first.terminate()
  const { client, url } = await spawnDaemon(t, where)
  const { files, url: again } = await client.call('GET /public', {})
  t.equal(pathOfUrl(again), pathOfUrl(base))
  t.match(files[0], { path: 'README.md', expiresAt, opened: 1 })
  t.equal((await askPage(url, `${pathOfUrl(base)}/README.md`)).status, 200)
})
