import fc from 'fast-check'
import t from 'tap'
import {
  accessTo,
  allows,
  commonReach,
  covers,
  leads,
  reachOf,
  type Access,
  type ReachFolder,
} from '../../sdk/reach.js'

/** A small tree in which every folder has the same three names, so that areas touch, overlap and are nested. */
const NAMES = ['a', 'b', 'ab']
const TREE = [
  '.',
  ...NAMES.flatMap(one => [
    one,
    ...NAMES.flatMap(two => [`${one}/${two}`, ...NAMES.map(three => `${one}/${two}/${three}`)]),
  ]),
]

const folders = fc.array(
  fc.record<ReachFolder>({ path: fc.constantFrom(...TREE), access: fc.constantFrom<Access>('read', 'work') }),
  { maxLength: 6 },
)
const place = fc.constantFrom(...TREE)

/** The naive algorithm: every path with all the folders above it, one by one. */
const upwards = (path: string): string[] => {
  const parts = path === '.' ? [] : path.split('/')
  return ['.', ...parts.map((_, at) => parts.slice(0, at + 1).join('/'))]
}
const slowly = (given: readonly ReachFolder[], path: string): Access | undefined => {
  const held = upwards(path).flatMap(above => given.filter(folder => folder.path === above))
  if (held.some(({ access }) => access === 'work')) return 'work'
  return held.length > 0 ? 'read' : undefined
}

const PROPERTY = { seed: 5, numRuns: 3000 }

t.test('the access to a path is the highest that any of its parents gives', async t => {
  fc.assert(
    fc.property(folders, place, (given, path) => accessTo(given, path) === slowly(given, path)),
    PROPERTY,
  )
  t.pass()
})

t.test('folding keeps the reach, and leaves no redundant folder', async t => {
  fc.assert(
    fc.property(folders, given => {
      const folded = reachOf(given)
      const same = TREE.every(path => accessTo(folded, path) === slowly(given, path))
      const least = folded.every((_, at) =>
        TREE.some(path => slowly(folded.toSpliced(at, 1), path) !== slowly(folded, path)),
      )
      return same && least
    }),
    PROPERTY,
  )
  t.pass()
})

t.test('a folder leads down if anything at or below it is reached', async t => {
  fc.assert(
    fc.property(folders, place, (given, path) => {
      const below = TREE.some(each => upwards(each).includes(path) && slowly(given, each) !== undefined)
      return leads(given, path) === below
    }),
    PROPERTY,
  )
  t.pass()
})

t.test('a repository is covered completely, partly or not at all', async t => {
  fc.assert(
    fc.property(folders, place, (given, path) => {
      const inIt = TREE.filter(each => upwards(each).includes(path)).map(each => slowly(given, each) !== undefined)
      const cover = covers(given, path === '.' ? 'root' : path)
      const around = slowly(given, path) !== undefined
      return cover === (around ? 'all' : inIt.includes(true) ? 'part' : 'none')
    }),
    PROPERTY,
  )
  t.pass()
})

t.test('without limits everything is reached, and with an empty list nothing', async t => {
  t.ok(TREE.every(path => allows(undefined, path, 'work') && leads(undefined, path)))
  t.equal(covers(undefined, 'root'), 'all')
  t.notOk(TREE.some(path => allows([], path, 'read') || leads([], path)))
  t.equal(covers([], 'root'), 'none')
})

t.test('a folder whose name has the same prefix is a different folder', async t => {
  t.notOk(allows([{ path: 'docs', access: 'work' }], 'docs-old/a.md', 'read'))
  t.notOk(allows([{ path: 'docs', access: 'work' }], 'Docs', 'read'))
  t.notOk(allows([{ path: 'docs', access: 'read' }], 'docs/a.md', 'work'))
})

t.test('the intersection of two reaches is what both give', async t => {
  const both = (one: readonly ReachFolder[], other: readonly ReachFolder[], path: string) => {
    const [a, b] = [slowly(one, path), slowly(other, path)]
    return a === undefined || b === undefined ? undefined : a === 'work' && b === 'work' ? 'work' : 'read'
  }
  fc.assert(
    fc.property(
      folders,
      folders,
      place,
      (one, other, path) => accessTo(commonReach(one, other), path) === both(one, other, path),
    ),
    PROPERTY,
  )
  const docs: ReachFolder[] = [{ path: 'docs', access: 'read' }]
  t.same(
    [commonReach(docs, undefined), commonReach(undefined, docs), commonReach(undefined, undefined)],
    [docs, docs, undefined],
    'the intersection with no limit is the other reach',
  )
})
