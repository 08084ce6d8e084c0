import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { PointTrigger } from '../../../plugins/history/contract.js'
import { SavedPoints } from '../../../plugins/history/saved-points.js'
import type { Host, Journals } from '../../../sdk/index.js'
import { folderExceeds } from '../../../sdk/node/files/folder-exceeds.js'
import { JournalStore } from '../../../sdk/node/journal/journal-store.js'
import { folderOf, makeWorkspace } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { repoAt } from '../git/support.js'

const KIB = 1024
const PIECE = 64 * KIB

/** Saved points of a workspace that may take some bytes; `more` saves another 64 KiB that nothing compresses. */
const world = (t: Test, most: number) => {
  const folder = folderOf(t)
  const workspace = join(folder, 'workspace')
  makeWorkspace(workspace, { 'README.md': 'x\n' })
  const store = new JournalStore(join(folder, 'journals'))
  t.teardown(() => store.shutdown())
  const named = (name: string) => `history/${name}`
  const journal = {
    append: (name, entries, how) => store.append(named(name), entries, how),
    read: (name, after) => store.read(named(name), after),
    rewrite: (name, entries) => store.rewrite(named(name), entries),
  } as Pick<Journals, 'append' | 'read' | 'rewrite'> as Host['journal']
  const warned: string[] = []
  const host = {
    place: { workspace, folder: join(folder, 'history') },
    journal,
    log: { warn: (words: string) => warned.push(words) },
    signal: new AbortController().signal,
    call: async () => ({}),
  } as unknown as ConstructorParameters<typeof SavedPoints>[0]
  const open = async () => {
    const saved = new SavedPoints(host, most)
    await saved.points.load()
    return saved
  }
  const stores = join(folder, 'history/stores')
  const more = async (saved: SavedPoints, trigger: PointTrigger = 'user') => {
    writeFileSync(join(workspace, 'big'), randomBytes(PIECE))
    return (await saved.save({ trigger })).point!
  }
  return { workspace, stores, warned, open, more }
}

const idsOf = (saved: SavedPoints) => saved.points.all.map(({ id }) => id)

t.test('points over the limit go, oldest first, and the others are whole', async t => {
  const most = 25 * PIECE
  const { workspace, stores, warned, open, more } = world(t, most)
  const saved = await open()
  const ids: string[] = []
  for (let at = 0; at < 40; at++) ids.push((await more(saved)).id)
  const last = readFileSync(join(workspace, 'big'))
  t.ok(await folderExceeds(stores, most))
  await saved.prune()
  t.notOk(await folderExceeds(stores, most))
  const kept = idsOf(saved)
  t.ok(kept.length >= 10 && kept.length < 30, `${kept.length} points stay`)
  t.same(kept, ids.slice(-kept.length), 'the newest stay')
  const store = await saved.store('root')
  for (const { trees } of saved.points.all) {
    const found = await store.content(trees.root, 'big', PIECE)
    t.equal((found?.bytes as Buffer).length, PIECE)
  }
  t.same((await store.content(saved.points.last!.trees.root, 'big', PIECE))?.bytes, last)
  t.same(idsOf(await open()), kept, 'after a restart too')
  t.same(warned, [])
})

t.test('points of the timer go before those of people', async t => {
  const { open, more } = world(t, 20 * PIECE)
  const saved = await open()
  const people: string[] = []
  for (let at = 0; at < 28; at++) {
    const { id } = await more(saved, at % 2 ? 'user' : 'interval')
    if (at % 2) people.push(id)
  }
  await saved.prune()
  const kept = idsOf(saved)
  t.same(
    people.filter(id => !kept.includes(id)),
    [],
  )
  t.ok(kept.length < 28)
})

t.test('objects that no point needs go first', async t => {
  const { workspace, stores, open, more } = world(t, 20 * PIECE)
  const saved = await open()
  for (let at = 0; at < 12; at++) await more(saved)
  for (let at = 0; at < 20; at++) {
    writeFileSync(join(workspace, 'big'), randomBytes(PIECE))
    await saved.alone(() => saved.now())
  }
  t.ok(await folderExceeds(stores, 20 * PIECE))
  await saved.prune()
  t.equal(saved.points.all.length, 12)
  t.notOk(await folderExceeds(stores, 20 * PIECE))
})

t.test('the newest ten stay also where they take more, which is logged', async t => {
  const { warned, open, more } = world(t, PIECE)
  const saved = await open()
  const ids: string[] = []
  for (let at = 0; at < 12; at++) ids.push((await more(saved)).id)
  await saved.prune()
  t.same(idsOf(saved), ids.slice(-10))
  t.match(warned, exactly(/newest saved points/))
})

t.test('the store of a repository that no point holds is removed', async t => {
  const { workspace, stores, open, more } = world(t, 20 * PIECE)
  const saved = await open()
  repoAt(join(workspace, 'gone'), { f: '1\n' })
  for (let at = 0; at < 3; at++) await more(saved)
  t.equal(readdirSync(stores).length, 2)
  rmSync(join(workspace, 'gone'), { recursive: true })
  for (let at = 0; at < 37; at++) await more(saved)
  await saved.prune()
  t.equal(readdirSync(stores).length, 1)
})

t.test('a store whose git was killed is used again: its lock is removed once no process holds it', async t => {
  const { workspace, stores, open, more } = world(t, 20 * PIECE)
  await more(await open())
  const lock = join(stores, readdirSync(stores)[0]!, 'index.lock')
  const holder = spawn('sh', ['-c', 'exec 3>"$1"; echo; read gone; exit', 'holder', lock])
  t.teardown(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  writeFileSync(join(workspace, 'new'), 'n\n')
  let saved = false
  const saving = (await open()).save({ trigger: 'user' }).finally(() => (saved = true))
  const ended = once(holder, 'exit').then(() => saved)
  holder.stdin.end('\n')
  t.equal(await ended, false)
  const { point, partial } = await saving
  t.same(partial, [])
  t.same(
    (await (await open()).store('root').then(store => store.content(point!.trees.root, 'new', KIB)))?.bytes,
    Buffer.from('n\n'),
  )
  t.notOk(existsSync(lock))
})
