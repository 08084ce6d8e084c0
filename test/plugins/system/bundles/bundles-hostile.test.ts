import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { decrypted, encrypted } from '../../../../plugins/system/bundles/cipher.js'
import { readBundle } from '../../../../plugins/system/bundles/reading.js'
import { reasonAgainstName } from '../../../../plugins/system/bundles/returning.js'
import { Judge } from '../../../../plugins/system/bundles/staging.js'
import { checkSeal, withSeal } from '../../../../plugins/system/bundles/seal.js'
import { daemonWith, folderOf } from '../../../support/daemon.js'
import { inTime } from '../../../support/in-time.js'
import { exactly } from '../../../support/lists.js'
import { refusal } from '../../agent/support.js'
import { changed, made, type Made } from './bundles-made.js'
import { leftOf } from './bundles-support.js'

t.setTimeout(120_000)

const NEVER = new AbortController().signal
const read = (path: string, passphrase?: string) => {
  const judge = new Judge({ workspace: '/nowhere/work', takes: group => group === 'agent' })
  return readBundle(path, passphrase, judge, NEVER).then(() => judge.judged)
}
const of = async (bytes: AsyncIterable<Buffer>): Promise<Buffer> => buffer(bytes)
async function* pieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

t.test('a bundle with any byte changed is refused', async t => {
  const folder = folderOf(t)
  const path = await made(join(folder, 'good'), [
    { path: 'workspace/a.txt', text: 'hello' },
    { path: 'workspace/link', link: 'a.txt' },
  ])
  t.match(await read(path), {
    written: exactly({ path: 'a.txt', files: 1 }, { path: 'link', files: 1 }),
    skipped: { length: 0 },
  })
  const bad = join(folder, 'bad')
  const { length } = readFileSync(path)
  for (let at = 0; at < length; at++) {
    changed(path, bad, at)
    const { status } = await refusal(read(bad))
    if (status !== 422) t.fail(`byte ${at} of ${length}: ${status}`)
  }
  for (let end = 0; end < length; end += 7) {
    writeFileSync(bad, readFileSync(path).subarray(0, end))
    const { status } = await refusal(read(bad))
    if (status !== 422) t.fail(`cut at ${end} of ${length}: ${status}`)
  }
  writeFileSync(bad, Buffer.concat([readFileSync(path), gzipSync('more')]))
  t.match(await refusal(read(bad)), { status: 422 })
})

const repository = (repo: string, history?: string) => ({
  repo,
  head: 'refs/heads/main',
  remotes: [],
  branches: [],
  ...(history && { history }),
})

const HOSTILE: readonly (readonly [what: string, entries: readonly Made[], patch?: object])[] = [
  ['a path that leads out', [{ path: 'workspace/../../evil' }]],
  ['an absolute path', [{ path: '/etc/evil' }]],
  ['an absolute path in the workspace', [{ path: 'workspace//etc/evil' }]],
  ['a path in no place of an archive', [{ path: 'elsewhere/a' }]],
  ['a backslash', [{ path: 'workspace/..\\evil' }]],
  ['a name twice', [{ path: 'workspace/a' }, { path: 'workspace/a' }]],
  [
    'a file through a link',
    [
      { path: 'workspace/a', link: 'b' },
      { path: 'workspace/a/x', text: 'x' },
    ],
  ],
  ['a link to nowhere', [{ path: 'workspace/a', link: '' }]],
  [
    'a link in the files of a group',
    [{ path: 'state/agent/x.json', link: '/etc/passwd' }],
    { groups: [{ group: 'agent', version: 1 }] },
  ],
  [
    'a link in place of a history',
    [{ path: 'history/001.bundle', link: '/etc/passwd' }],
    { repositories: [repository('root', 'history/001.bundle')] },
  ],
  ['a repository in the place of a file', [{ path: 'workspace/a', text: 'a' }], { repositories: [repository('a')] }],
  ['a repository below a file', [{ path: 'workspace/a', text: 'a' }], { repositories: [repository('a/b')] }],
  ['a repository in the place of a link', [{ path: 'workspace/a', link: 'b' }], { repositories: [repository('a')] }],
  ['a repository below a link', [{ path: 'workspace/a', link: 'b' }], { repositories: [repository('a/b/c')] }],
  ['a repository twice', [], { repositories: [repository('a'), repository('a')] }],
  ['a file that is a folder too', [{ path: 'workspace/a/x' }, { path: 'workspace/a' }]],
  ['a device', [{ path: 'workspace/a', has: { type: 'block-device', devmajor: 8, devminor: 0 } }]],
  ['a pipe', [{ path: 'workspace/a', has: { type: 'fifo' } }]],
  ['a hard link', [{ path: 'workspace/a', has: { type: 'link', linkname: '/etc/passwd' } }]],
  ['a folder', [{ path: 'workspace/a', has: { type: 'directory' } }]],
  ['an entry the manifest does not name', [{ path: 'workspace/a', only: 'archive' }]],
  ['an entry that is missing', [{ path: 'workspace/a', only: 'manifest' }]],
  ['another name than the manifest says', [{ path: 'workspace/a', has: { name: 'workspace/b' } }]],
  ['another checksum', [{ path: 'workspace/a', text: 'a', says: { sha256: 'x' } }]],
  ['another size', [{ path: 'workspace/a', text: 'abc', says: { size: 2 } }]],
  ['another target of a link', [{ path: 'workspace/a', link: 'b', has: { linkname: 'c' } }]],
  ['a state of a group that did not hand it over', [{ path: 'state/agent/x.json' }]],
  ['a state in a separate folder', [{ path: 'state/agent/deep/x.json' }], { groups: [{ group: 'agent', version: 1 }] }],
  ['a group with a path for a name', [], { groups: [{ group: '../..', version: 1 }] }],
  ['a repository that leads out', [], { repositories: [repository('../out')] }],
  ['a repository in a git folder', [], { repositories: [repository('a/.GIT')] }],
  ['a repository in a git folder spelt otherwise', [], { repositories: [repository('a/.g\u200cit')] }],
  ["a repository in the sandbox's own folder", [], { repositories: [repository('.sandbox/config')] }],
  [
    'a head that is an option',
    [],
    { repositories: [{ repo: 'root', head: '--upload-pack=evil', remotes: [], branches: [] }] },
  ],
  [
    'a missing history',
    [],
    {
      repositories: [
        { repo: 'root', head: 'refs/heads/main', history: 'history/001.bundle', remotes: [], branches: [] },
      ],
    },
  ],
  [
    'a history at another path',
    [{ path: 'workspace/x' }],
    { repositories: [{ repo: 'root', head: 'refs/heads/main', history: 'workspace/x', remotes: [], branches: [] }] },
  ],
  ['another format', [], { format: 'tar' }],
  ['a newer version', [], { version: 2 }],
  ['no entries', [], { entries: 'none' }],
  ['a size below zero', [{ path: 'workspace/a', says: { size: -1 } }]],
]

t.test('an archive that a sandbox would not make is refused completely', async t => {
  const folder = folderOf(t)
  for (const [what, entries, patch] of HOSTILE) {
    const path = await made(join(folder, 'bad'), entries, patch)
    t.match(await refusal(read(path)), { status: 422, message: /bundle/ }, what)
  }
  writeFileSync(join(folder, 'bad'), 'no bundle')
  t.match(await refusal(read(join(folder, 'bad'))), { status: 422, message: /not a bundle/ })
  writeFileSync(join(folder, 'bad'), gzipSync(Buffer.alloc(4096)))
  t.match(await refusal(read(join(folder, 'bad'))), { status: 422 })
})

t.test('entries of git, of the sandbox or outside are left out, and listed', async t => {
  for (const path of ['a/.git/hooks/post-checkout', '.GIT/config', '.g\u200cit/config', 'git~1/config', '.git./config'])
    t.equal(reasonAgainstName({ path }), 'it belongs to git', path)
  for (const path of ['.sandbox/restored/x', '.SANDBOX/config/settings.json', '.sandbox./x'])
    t.equal(reasonAgainstName({ path }), "it is the sandbox's own", path)
  for (const path of ['.sandbox/config/settings.json', '.gitignore', 'a/.sandbox/x'])
    t.equal(reasonAgainstName({ path }), undefined, path)
  t.match(reasonAgainstName({ path: '.sandbox/config/settings.json', link: '../../x' }), /not contain links/)
  const folder = folderOf(t)
  const path = await made(
    join(folder, 'bundle'),
    [
      { path: 'workspace/.git/hooks/post-merge', text: 'evil' },
      { path: 'workspace/a', link: '/etc/passwd' },
      { path: 'state/other/x' },
      { path: 'state/agent/x' },
    ],
    {
      groups: [
        { group: 'other', version: 1 },
        { group: 'agent', version: 1 },
      ],
    },
  )
  t.same(await read(path), {
    written: [{ path: 'state/agent', files: 1 }],
    skipped: [
      { path: '.git/hooks/post-merge', reason: 'it belongs to git' },
      { path: 'a', reason: 'it is a link that leads out of the workspace' },
      { path: 'other/x', reason: 'no group of this sandbox restores it' },
    ],
  })
})

t.test('a decompression bomb is refused before it is unpacked', async t => {
  const folder = folderOf(t)
  const bomb = await made(join(folder, 'bomb'), [{ path: 'workspace/a', says: { size: 3 * 1024 ** 3 } }])
  t.match(await refusal(read(bomb)), { status: 413, message: /200 times/ })
  const more = await made(
    join(folder, 'more'),
    [{ path: 'workspace/a', text: 'a' }],
    {},
    Buffer.alloc(64 * 1024 * 1024),
  )
  t.match(await refusal(read(more)), { status: 422 }, 'endless zeros')
  const head = await made(join(folder, 'head'), [], { name: 'x'.repeat(70 * 1024 * 1024) })
  t.match(await refusal(read(head)), { status: 422, message: /no manifest/ })
  const names = Array.from({ length: 500_001 }, (_, at) => ({ path: `workspace/${at}`, size: 0, sha256: '' }))
  t.match(await refusal(read(await made(join(folder, 'names'), [], { entries: names }))), {
    status: 413,
    message: /500000 entries/,
  })
})

t.test('a hundred thousand entries are read', async t => {
  const folder = folderOf(t)
  const entries = Array.from({ length: 100_000 }, (_, at): Made => ({
    path: `workspace/d${at % 100}/f${at}`,
    text: String(at),
  }))
  const { written, skipped } = await read(await made(join(folder, 'many'), entries))
  t.same([written.length, written.reduce((sum, { files }) => sum + files, 0), skipped], [100, 100_000, []])
})

t.test(
  'an encrypted archive opens only with its passphrase, and no chunk can be changed, moved, removed or added',
  async t => {
    const plain = Buffer.alloc(200_000, 'abc')
    const bytes = await of(encrypted('a good passphrase', pieces(plain, 7000)))
    t.notMatch(bytes.toString('latin1'), /abcabcabc/)
    t.ok((await of(decrypted('a good passphrase', pieces(bytes, 999)))).equals(plain))
    t.same(
      await of(
        decrypted(
          'a good passphrase',
          pieces(await of(encrypted('a good passphrase', pieces(Buffer.alloc(0), 1))), 10),
        ),
      ),
      Buffer.alloc(0),
    )
    t.match(await refusal(of(decrypted('another passphrase', pieces(bytes, 4096)))), {
      status: 422,
      message: /passphrase/,
    })
    const [head, chunk] = [40, 64 * 1024 + 16]
    const parts = [
      bytes.subarray(head, head + chunk),
      bytes.subarray(head + chunk, head + 2 * chunk),
      bytes.subarray(head + 2 * chunk),
    ]
    const with_ = (...order: Buffer[]) => Buffer.concat([bytes.subarray(0, head), ...order])
    for (const [what, bad] of [
      ['moved', with_(parts[1]!, parts[0]!, ...parts.slice(2))],
      ['left out', with_(parts[0]!, ...parts.slice(2))],
      ['cut off', with_(parts[0]!, parts[1]!)],
      ['added', with_(...parts, parts[0]!)],
      ['cut in the middle', bytes.subarray(0, 100_000)],
      ['only a head', bytes.subarray(0, head)],
      ['half a head', bytes.subarray(0, 20)],
    ] as const)
      t.match(await refusal(of(decrypted('a good passphrase', pieces(bad, 5000)))), { status: 422 }, what)
    for (const at of [3, 20, 38, head, head + 70_000, bytes.length - 1]) {
      const bad = Buffer.from(bytes)
      bad[at]! ^= 1
      t.match(await refusal(of(decrypted('a good passphrase', pieces(bad, 5000)))), { status: 422 }, `byte ${at}`)
    }
  },
)

t.test('a seal is valid for the bytes before it, in any pieces', async t => {
  const bytes = await of(withSeal(pieces(Buffer.from('some bytes'), 3)))
  for (const size of [1, 7, 57, 58, 59, 1000])
    t.equal((await of(checkSeal(pieces(bytes, size)))).toString(), 'some bytes')
  t.match(await refusal(of(checkSeal(pieces(bytes.subarray(1), 9)))), { status: 422 })
})

t.test('a refused archive leaves no files, also over HTTP', async t => {
  const daemon = await daemonWith(t, ['system', 'agent', 'settings'], { files: { 'mine.txt': 'mine\n' } })
  const { client, workspace } = daemon
  const before = readdirSync(workspace)
  const apply = (path: string, more: object = {}) =>
    refusal(client.call('POST /bundles/restore', { path, mode: 'apply', ...more }))
  t.match(await apply('absent.tar.gz'), { status: 404 })
  t.match(await apply('../outside'), { status: 400 })
  t.match(await apply('.'), { status: 400 })
  mkdirSync(join(workspace, 'folder'))
  t.match(await apply('folder'), { status: 422 })
  symlinkSync('/etc/passwd', join(workspace, 'out'))
  t.match(await apply('out'), { status: 404 })
  for (const [what, entries, patch] of HOSTILE.slice(0, 16)) {
    await made(join(workspace, 'bad'), entries, patch)
    for (const mode of ['check', 'apply']) t.match(await apply('bad', { mode }), { status: 422 }, `${what}, ${mode}`)
  }
  const good = await made(join(workspace, 'good'), [{ path: 'workspace/new.txt', text: 'new' }])
  changed(good, join(workspace, 'bad'), -70)
  t.match(await apply('bad'), { status: 422 })
  truncateSync(good, 100)
  t.match(await apply('good'), { status: 422 })
  const evil = { repo: 'root', head: 'refs/heads/main', history: 'history/001.bundle', remotes: [], branches: [] }
  await made(join(workspace, 'bad'), [{ path: 'history/001.bundle', text: '# v2 git bundle\ngarbage' }], {
    repositories: [evil],
  })
  t.match(await apply('bad'), { status: 422, message: /history of root is damaged/ })
  t.same(
    readdirSync(workspace)
      .filter(name => !before.includes(name))
      .sort(),
    ['.sandbox', 'bad', 'folder', 'good', 'out'],
  )
  t.same(
    leftOf(daemon).map(path => path.split('/').at(-1)),
    ['restored', 'staged'],
  )
  t.same(
    [readdirSync(join(workspace, '.sandbox/restored')), readdirSync(join(daemon.data, 'system/staged'))],
    [['.gitignore'], []],
  )
  t.notOk(existsSync(join(workspace, 'new.txt')))
})

/** Manifests whose paths are as long and deep as a path can be. */
const DEEP = 'a/'.repeat(2_000)
const TEDIOUS: { readonly [what: string]: readonly [entries: readonly object[], patch?: object] } = {
  'deep files': [many(1_500, at => ({ path: `workspace/${at}/${DEEP}f` }))],
  'deep files beside a link': [
    [...many(1_500, at => ({ path: `workspace/${at}/${DEEP}f` })), { path: 'workspace/l', link: 'x' }],
  ],
  'files in the folders of a deep link': [
    [{ path: `workspace/${DEEP}l`, link: 'x' }, ...many(1_500, at => ({ path: `workspace/${DEEP}${at}` }))],
  ],
  'deep repositories': [[], { repositories: many(1_500, at => repository(`${at}/${DEEP}r`)) }],
  'links that some disks take for one': [many(1_500, at => ({ path: `workspace/${spelling(at)}`, link: 'x' }))],
  'links in links': [many(500, at => ({ path: `workspace/${at}`, link: `${at + 1}/${DEEP}`.slice(0, 4_000) }))],
}
function many<T>(count: number, one: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => one(at))
}
/** One name in another case. */
function spelling(at: number): string {
  return Array.from({ length: 16 }, (_, bit) => (at & (1 << bit) ? 'A' : 'a')).join('')
}

t.test('a small bundle with paths of thousands of folders does not hold the sandbox up', async t => {
  const folder = folderOf(t)
  for (const [what, [entries, patch]] of Object.entries(TEDIOUS)) {
    const sha256 = 'x'.repeat(43)
    const path = await made(join(folder, 'deep'), [], {
      entries: entries.map(one => ({ size: 0, sha256, ...one })),
      ...patch,
    })
    const begun = performance.now()
    // Whether it is refused is another question.
    await read(path).catch(() => undefined)
    t.ok(
      inTime(begun, what === 'links in links' ? 25_000 : 6_000),
      `${what}: ${Math.round(performance.now() - begun)} ms`,
    )
  }
})
