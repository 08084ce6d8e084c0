import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { strayLinks } from '../../../../plugins/system/bundles/link-plan.js'
import { reasonsAgainst } from '../../../../plugins/system/bundles/returning.js'
import { linkOnDisk } from '../../../../sdk/node/files/links.js'
import { codeOf, contains } from '../../../../sdk/node/files/paths.js'
import { folderOf } from '../../../support/daemon.js'
import { refusal } from '../../agent/support.js'

const ROOT = '/nowhere/work'

interface Plan {
  readonly solid?: readonly string[]
  readonly links: { readonly [path: string]: string }
  /** Links that the workspace already has. */
  readonly there?: { readonly [path: string]: string }
}

const stray = ({ solid = [], links, there = {} }: Plan): Promise<ReadonlyMap<string, string>> =>
  strayLinks(
    { workspace: ROOT, solid, links: new Map(Object.entries(links)), stays: path => path in there },
    async path => there[path.slice(ROOT.length + 1)],
  )

const KEPT: readonly (readonly [what: string, plan: Plan])[] = [
  ['beside it', { links: { a: 'b' } }],
  ['to itself with a dot', { links: { a: './b' } }],
  ['through a folder that is not there', { links: { a: 'c/../b' } }],
  ['up to the root', { links: { 'deep/a': '..' } }],
  ['to the root', { links: { b: '.' } }],
  ['to nothing', { links: { a: 'none/at/all' } }],
  ['through another link', { solid: ['d/e/f'], links: { a: 'd/e', x: 'a/../f' } }],
  ['by a long chain', { links: Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`l${at}`, `l${at + 1}`])) }],
  ['through a link that is there', { links: { a: 'p/x' }, there: { p: 'q' } }],
]
const LEFT_OUT: readonly (readonly [what: string, plan: Plan, names: readonly string[], reason: RegExp])[] = [
  ['an absolute one', { links: { a: '/etc/passwd' } }, ['a'], /out of the workspace/],
  ['one to an absolute path inside', { links: { a: `${ROOT}/b` } }, ['a'], /out of the workspace/],
  [
    'one beside the workspace',
    { links: { a: '../out', b: '..', c: 'd/../../out', 'e/f': '../../x' } },
    ['a', 'b', 'c', 'e/f'],
    /out of the workspace/,
  ],
  ['one that leaves and comes back', { links: { a: '../work/b' } }, ['a'], /out of the workspace/],
  [
    'a chain',
    { links: { b: '.', u1: 'b/..', u2: 'u1/..', u3: 'u2/../x' } },
    ['u1', 'u2', 'u3'],
    /out of the workspace/,
  ],
  [
    'a chain in folders',
    { solid: ['d/e/f'], links: { 'd/e/up': '../..', x: 'd/e/up/..' } },
    ['x'],
    /out of the workspace/,
  ],
  [
    'a link through one that is left out',
    { links: { out: '/', in: 'out/nowhere/work/b' } },
    ['out', 'in'],
    /out of the workspace/,
  ],
  [
    'one through an existing link',
    { links: { a: 'p/x', b: 'p' }, there: { p: '/etc' } },
    ['a', 'b'],
    /out of the workspace/,
  ],
  [
    'one through an existing link and one of the bundle',
    { links: { a: 'p/..', d: '.' }, there: { p: 'd' } },
    ['a'],
    /out of the workspace/,
  ],
  ['a circle', { links: { a: 'b', b: 'c', c: 'a', d: 'a/x' } }, ['a', 'b', 'c', 'd'], /circle/],
  ['one to itself', { links: { a: 'a', b: 'b/../c' } }, ['a', 'b'], /circle/],
  ['one in a circle that never ends', { links: { a: 'a/x' } }, ['a'], /circle/],
  ['a name that folds to that of a file', { solid: ['A/x'], links: { a: 'b' } }, ['a'], /some disks confuse/],
  [
    'a name equal to that of another link except for case',
    { links: { 'caf\u00e9': '.', 'cafe\u0301': 'b' } },
    ['caf\u00e9', 'cafe\u0301'],
    /some disks confuse/,
  ],
  [
    'a path through a name equal to that of a link except for case',
    { solid: ['d/e/f'], links: { b: 'd/e', x: 'B/../../..' } },
    ['x'],
    /some disks confuse|out of/,
  ],
]

t.test('a link whose path and target are inside the workspace is restored', async t => {
  for (const [what, plan] of KEPT) t.same([...(await stray(plan))], [], what)
})

t.test('a link that leaves the workspace at any step, or never ends, is left out', async t => {
  for (const [what, plan, names, reason] of LEFT_OUT) {
    const found = await stray(plan)
    t.same([...found.keys()].sort(), [...names].sort(), what)
    for (const each of found.values()) t.match(each, reason, what)
  }
  const long = Array.from({ length: 2000 }, () => 'abcdefg').join('/')
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`l${at}`, long]))
  t.match(await refusal(stray({ links: many })), { status: 413, message: /lead too far/ })
})

t.test(
  'from a bundle of some repositories only their files are restored, and existing links are considered',
  async t => {
    const workspace = realpathSync(folderOf(t))
    symlinkSync('/etc', join(workspace, 'out'))
    mkdirSync(join(workspace, 'one'))
    symlinkSync('/etc', join(workspace, 'one/gone'))
    const entry = (path: string, link?: string) => ({
      path: `workspace/${path}`,
      size: 0,
      sha256: '',
      ...(link !== undefined && { link }),
    })
    const entries = [
      entry('one/a', '../out/passwd'),
      entry('one/b', 'gone/x'),
      entry('two/x'),
      entry('.sandbox/config/settings.json'),
      entry('one/c', '../two'),
      entry('out/x'),
    ]
    const reasons = async (manifest: object) => {
      const reason = await reasonsAgainst(
        { repositories: [], entries, ...manifest } as unknown as Parameters<typeof reasonsAgainst>[0],
        workspace,
      )
      return entries.map(({ path }) => reason(path.slice('workspace/'.length)))
    }
    const [out, elsewhere] = ['it is a link that leads out of the workspace', 'it is in no repository of the bundle']
    t.same(
      await reasons({ whole: true }),
      [undefined, undefined, undefined, undefined, undefined, undefined],
      'everything existing is replaced',
    )
    t.same(await reasons({ whole: false, repositories: [{ repo: 'one' }] }), [
      out,
      undefined,
      elsewhere,
      elsewhere,
      undefined,
      elsewhere,
    ])
    t.same(
      await reasons({ whole: false, repositories: [{ repo: 'root' }, { repo: 'one' }] }),
      [undefined, undefined, undefined, undefined, undefined, undefined],
      'restored files replace existing ones',
    )
    entries.pop()
    t.same(
      await reasons({ whole: false, repositories: [{ repo: 'root' }] }),
      [out, out, undefined, undefined, undefined],
      'a folder of only links is kept',
    )
  },
)

const NAME = fc.constantFrom('a', 'b', 'c', 'B')
const PATH = fc.array(NAME, { minLength: 1, maxLength: 3 }).map(parts => parts.join('/'))
const TARGET = fc
  .tuple(
    fc.constantFrom('', '', '', '', '/'),
    fc.array(fc.oneof(NAME, fc.constantFrom('..', '..', '.')), { minLength: 1, maxLength: 5 }),
  )
  .map(([start, parts]) => start + parts.join('/'))
const ENTRY = fc.record({ path: PATH, target: fc.option(TARGET, { nil: undefined }), there: fc.boolean() })

t.test('no restored link of any bundle resolves outside', async t => {
  const folder = realpathSync(folderOf(t))
  const seed = Number(process.env.SANDBOX_PROPERTY_SEED ?? 10)
  let [kept, left] = [0, 0]
  await fc.assert(
    fc.asyncProperty(fc.array(ENTRY, { minLength: 1, maxLength: 9 }), async drawn => {
      const entries = drawn.filter(({ path }, at) =>
        drawn.every(
          (other, nth) =>
            nth >= at || (!`${other.path}/`.startsWith(`${path}/`) && !`${path}/`.startsWith(`${other.path}/`)),
        ),
      )
      const workspace = join(mkdtempSync(join(folder, 'plan-')), 'a', 'work')
      mkdirSync(workspace, { recursive: true })
      const lay = (path: string, target: string | undefined): void => {
        mkdirSync(join(workspace, dirname(path)), { recursive: true })
        if (target === undefined) writeFileSync(join(workspace, path), '')
        else symlinkSync(target, join(workspace, path))
      }
      const [there, coming] = [entries.filter(each => each.there), entries.filter(each => !each.there)]
      for (const { path, target } of there) lay(path, target)
      const links = new Map(
        coming.flatMap(({ path, target }) => (target === undefined ? [] : [[path, target] as const])),
      )
      const solid = coming.flatMap(({ path, target }) => (target === undefined ? [path] : []))
      const reasons = await strayLinks({ workspace, solid, links, stays: () => true }, linkOnDisk)
      for (const { path, target } of coming) if (!reasons.has(path)) lay(path, target)
      kept += links.size - reasons.size
      left += reasons.size
      const escaped = [...links.keys()]
        .filter(path => !reasons.has(path))
        .filter(path => {
          try {
            return !contains(workspace, realpathSync(join(workspace, path)))
          } catch (error) {
            return codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR'
          }
        })
      if (escaped.length > 0) throw new Error(`${escaped.join(', ')} lead out: ${JSON.stringify(entries)}`)
      for (const [path, target] of links)
        if (
          !reasons.has(path)
          && (!lstatSync(join(workspace, path)).isSymbolicLink() || readlinkSync(join(workspace, path)) !== target)
        )
          throw new Error(`${path} has changed`)
      rmSync(dirname(dirname(workspace)), { recursive: true })
    }),
    { seed, numRuns: 600 },
  )
  t.ok(kept > 200 && left > 200, `${kept} were restored, ${left} were left out`)
})
