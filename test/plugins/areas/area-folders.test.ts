import { renameSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { StoredArea } from '../../../plugins/areas/area-file.js'
import { AreaFolders } from '../../../plugins/areas/area-folders.js'

const standing = (t: Test, more: { moved?: () => Promise<void> } = {}) => {
  const workspace = t.testdir({ docs: {}, src: {} })
  const area = (id: string, folder = id): StoredArea => ({
    id,
    label: id,
    folders: [folder],
    access: 'work',
    createdAt: 1,
    updatedAt: 1,
    updatedBy: 'x',
  })
  const areas = new Map([area('docs'), area('src')].map(one => [one.id, one]))
  const told: string[][] = []
  const looked: string[] = []
  const ended = new AbortController()
  t.teardown(() => ended.abort())
  const one = new AreaFolders({
    workspace,
    signal: ended.signal,
    failed: () => {},
    find: id => {
      looked.push(id)
      return areas.get(id)
    },
    moved: async ids => {
      await more.moved?.()
      told.push([...ids])
    },
  })
  const move = (from: string, to: string) => renameSync(join(workspace, from), join(workspace, to))
  return { one, areas, area, told, move, looked }
}

t.test('each caller is notified once that its folder changed, was removed or returned', async t => {
  const { one, areas, told, move } = standing(t)
  t.same(await one.of(areas.get('docs')!), [{ path: 'docs', access: 'work' }])
  await one.look()
  move('docs', 'away')
  move('src', 'elsewhere')
  await one.look()
  await one.look()
  t.same(told, [['docs']], 'and of no area that nobody asked about')
  t.same(await one.of(areas.get('docs')!), [])
  move('away', 'docs')
  await one.look()
  t.same(told, [['docs'], ['docs']])
})

t.test('an answer given while a folder was missing is reported, also when the folder is back', async t => {
  const { one, areas, told, move } = standing(t)
  await one.of(areas.get('docs')!)
  move('docs', 'away')
  t.same(await one.of(areas.get('docs')!), [])
  move('away', 'docs')
  await one.look()
  t.same(told, [['docs']])
  await one.look()
  t.equal(told.length, 1)
})

t.test(
  'what could not be told is told at the next look, and an area that is written anew or deleted not at all',
  async t => {
    let fails = true
    const { one, areas, area, told, move } = standing(t, {
      moved: async () => (fails ? Promise.reject(new Error('not now')) : undefined),
    })
    for (const known of areas.values()) await one.of(known)
    move('docs', 'away')
    await t.rejects(one.look(), /not now/)
    fails = false
    areas.set('src', area('src', 'docs'))
    one.drop('src')
    await one.look()
    t.same(told, [['docs']])
    areas.delete('docs')
    move('away', 'docs')
    await one.look()
    t.equal(told.length, 1)
  },
)

t.test('a look is one for all who were answered', async t => {
  const { one, areas, looked } = standing(t)
  await Promise.all(Array.from({ length: 1000 }, () => one.of(areas.get('docs')!)))
  await one.look()
  t.same(looked, ['docs'])
})
