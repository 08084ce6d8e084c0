import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { tarOf, zipOf } from '../../support/documents/archives.js'
import { exactly } from '../../support/lists.js'
import { workspaceWorld } from './support.js'

/** A file in 7z archives with a password: the names in one are hidden too. */
const HIDDEN_NAMES =
  '377abcaf271c00043273a1f080000000000000002e000000000000009ef70362dd5f43b1c0bb1f6d1fbb418400a9c7a6'
  + '8fcd3d4b4c0514072fe86babe8ed156cd4e12b8f0d3d908e0edbc55028946620e1f8291dba513884cd18683a31676303'
  + '8d0aac10d144a5feae9551c60868e8622c0a535248c5ce030bf131a16103786a9ae9f119058416c9a73eefbac49c06cf'
  + '5273704bc9a49150b79de27be820376317061001097000070b0100012406f1070112530f518862976bb924484407eedf'
  + 'd6e6df460c620a01b1ac38230000'
const HIDDEN_CONTENT =
  '377abcaf271c0004c4f04a5a1000000000000000620000000000000026f17ac8114cd0f635916ebcaddf1e1db0eb856d'
  + '0104060001091000070b0100022406f1070112530f5f4df9dbf15e66e690ab9de5d7d578a62121010001000c08040008'
  + '0a019fa817f800000501190100110b0061002e006d00640000001900140a01006f44e8462d7ddd01150601002080a481'
  + '0000'

/** Reads 7z and rar; the daemon says so where it is missing. */
const noBsdtar = ['/usr/bin/bsdtar', '/usr/local/bin/bsdtar'].some(existsSync) ? false : 'bsdtar is not installed'

const WHEN = new Date(1_600_000_000_000)

void t.test('archives', async t => {
  const { daemon, as, ask } = await workspaceWorld(t, { files: { 'docs/a.md': 'one\n', 'src/run.sh': '#!/bin/sh\n' } })
  const { client, workspace } = daemon
  const at = (path: string) => join(workspace, path)
  const unpack = (path: string, more: object = {}) => client.call('POST /workspace/unpack', { path, ...more })
  const upload = (body: Buffer, query = '') =>
    daemon.fetch(`/workspace/upload-archive${query}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/octet-stream' },
    })
  /** Nothing is left where archives are unpacked, nor beside what is listed. */
  const left = () => readdirSync(at('.sandbox/local/unpacking'))

  await t.test('only maintainers unpack, and only archives', async t => {
    writeFileSync(at('plain.zip'), 'no zip')
    t.equal((await fetch(`${daemon.url}/workspace/unpack`, { method: 'POST' })).status, 401)
    t.equal((await fetch(`${daemon.url}/workspace/upload-archive`, { method: 'POST' })).status, 401)
    t.equal((await ask('col', '/workspace/unpack', 'POST', { path: 'plain.zip' })).status, 403)
    const land = await daemon.token('land')
    t.match(await refusalOf(() => land.client.call('POST /workspace/unpack', { path: 'plain.zip' })), { status: 403 })
    t.match(await refusalOf(() => as('col').call('POST /workspace/upload-archive', {})), { status: 403 })
    const refused: [number, object][] = [
      [400, { path: '../x' }],
      [400, {}],
      [404, { path: 'gone.zip' }],
      [404, { path: '.git/HEAD' }],
      [422, { path: 'docs' }],
      [422, { path: 'plain.zip' }],
    ]
    for (const [status, body] of refused)
      t.equal((await ask('mai', '/workspace/unpack', 'POST', body)).status, status, JSON.stringify(body))
    t.match(await refusalOf(() => client.call('POST /workspace/upload-archive', {})), { status: 400 })
  })

  await t.test('each format lands beside the archive, with modes and times', async t => {
    execFileSync('tar', ['-czf', 'bundle.tar.gz', 'docs', 'src'], { cwd: workspace })
    execFileSync('sh', ['-c', 'tar -cf - docs | xz > two.txz; tar -cf - docs | bzip2 > three.tbz2'], { cwd: workspace })
    execFileSync('sh', ['-c', 'tar -cf - docs | zstd -q > four.tar.zst; gzip -c docs/a.md > five.gz'], {
      cwd: workspace,
    })
    const zip = await zipOf(each => {
      each.addBuffer(Buffer.from('#!'), 'bin/ä.sh', { mtime: WHEN, mode: 0o104755 })
      each.addEmptyDirectory('empty')
    })
    writeFileSync(at('six.zip'), zip)
    t.match(await unpack('bundle.tar.gz'), { to: 'bundle', files: 2, bytes: 14, skipped: exactly() })
    t.equal(readFileSync(at('bundle/docs/a.md'), 'utf8'), 'one\n')
    t.match(await unpack('bundle.tar.gz'), { to: 'bundle-2' }, 'a taken name is numbered')
    for (const [path, to] of [
      ['two.txz', 'two'],
      ['three.tbz2', 'three'],
      ['four.tar.zst', 'four'],
    ] as const) {
      t.match(await unpack(path), { to, files: 1 })
      t.equal(readFileSync(at(`${to}/docs/a.md`), 'utf8'), 'one\n', path)
    }
    t.match(await unpack('five.gz', { removeArchive: true }), { to: 'five', files: 1 })
    t.equal(readFileSync(at('five'), 'utf8'), 'one\n')
    t.notOk(existsSync(at('five.gz')))
    t.match(await unpack('six.zip', { to: 'deep/six' }), { to: 'deep/six', files: 1 })
    const file = lstatSync(at('deep/six/bin/ä.sh'))
    t.same([file.mode & 0o7777, file.mtimeMs], [0o755, WHEN.getTime()], 'without the set-uid bit')
    t.ok(lstatSync(at('deep/six/empty')).isDirectory())
    t.match(await refusalOf(() => unpack('six.zip', { to: 'docs' })), { status: 409 })
    t.match(await refusalOf(() => unpack('six.zip', { to: '.sandbox/config/x' })), { status: 404 })
    t.same(left(), [])
  })

  await t.test('an archive that is damaged, encrypted or leads out leaves nothing', async t => {
    const before = readdirSync(workspace).sort()
    const good = await zipOf(each => each.addBuffer(Buffer.from('x'.repeat(5000)), 'x/big', { compress: false }))
    const wrong = Buffer.from(good)
    wrong[200]! ^= 1
    const encrypted = Buffer.from(good)
    encrypted[6]! |= 1
    encrypted[good.indexOf('PK\x01\x02') + 8]! |= 1
    const bad: [string, number, Buffer][] = [
      ['escape.tar', 422, await tarOf([{ name: 'ok' }, 'x'], [{ name: '../evil' }, 'x'])],
      ['absolute.tar', 422, await tarOf([{ name: '/etc/evil' }, 'x'])],
      ['cut.tar.gz', 422, gzipSync(await tarOf([{ name: 'a', size: 3 }, 'abc'])).subarray(0, 60)],
      ['wrong.zip', 422, wrong],
      ['encrypted.zip', 422, encrypted],
      ['short.zip', 422, good.subarray(0, 3000)],
      [
        'dots.zip',
        422,
        Buffer.from(
          (await zipOf(each => each.addBuffer(Buffer.from(''), 'ab/x'))).toString('latin1').replaceAll('ab/x', '../x'),
          'latin1',
        ),
      ],
      ['some.7z', 501, Buffer.from('377abcaf271c0004', 'hex')],
      ['names.7z', 501, Buffer.from(HIDDEN_NAMES, 'hex')],
      ['content.7z', 501, Buffer.from(HIDDEN_CONTENT, 'hex')],
    ]
    for (const [name, status, bytes] of bad) {
      writeFileSync(at(name), bytes)
      const found = await refusalOf(() => unpack(name))
      t.match(found, { status: status === 501 && !noBsdtar ? 422 : status }, name)
      rmSync(at(name))
    }
    t.same(readdirSync(workspace).sort(), before)
    t.notOk(existsSync(join(workspace, '../evil')))
    t.same(left(), [])
  })

  await t.test('a 7z lands beside it as others do', { skip: noBsdtar }, async t => {
    execFileSync('bsdtar', ['--format=7zip', '-cf', 'seven.7z', 'docs'], { cwd: workspace })
    t.match(await unpack('seven.7z'), { to: 'seven', files: 1, skipped: exactly() })
    t.equal(readFileSync(at('seven/docs/a.md'), 'utf8'), 'one\n')
    t.same(left(), [])
  })

  await t.test('a bomb is refused while it unpacks', async t => {
    const member = gzipSync(Buffer.alloc(64 * 1024 * 1024), { level: 9 })
    writeFileSync(at('bomb.gz'), Buffer.concat(Array.from({ length: 18 }, () => member)))
    t.match(await refusalOf(() => unpack('bomb.gz')), { status: 413, message: /200 times/ })
    rmSync(at('bomb.gz'))
    t.same(left(), [])
  })

  await t.test(
    'links that lead out are left out, also by way of others, and nothing is written through one',
    async t => {
      const outside = join(workspace, '../outside')
      mkdirSync(outside, { recursive: true })
      const tar = await tarOf(
        [{ name: 'in', type: 'symlink', linkname: 'real/file' }],
        [{ name: 'out', type: 'symlink', linkname: '../outside' }],
        [{ name: 'b', type: 'symlink', linkname: '.' }],
        [{ name: 'u1', type: 'symlink', linkname: 'b/..' }],
        [{ name: 'u2', type: 'symlink', linkname: 'u1/outside' }],
        [{ name: 'abs', type: 'symlink', linkname: '/etc/passwd' }],
        [{ name: 'real/file' }, 'inside'],
        [{ name: 'out/planted' }, 'planted'],
        [{ name: 'hard', type: 'link', linkname: 'real/file' }],
        [{ name: 'harder', type: 'link', linkname: '../docs/a.md' }],
        [{ name: 'pipe', type: 'fifo' }],
        [{ name: '.git/config' }, '[core]'],
      )
      writeFileSync(at('links.tar'), tar)
      const { skipped, files } = await unpack('links.tar', { to: 'links' })
      t.same(skipped.map(({ path }) => path).sort(), ['abs', 'harder', 'out', 'pipe', 'u1'])
      t.equal(files, 4)
      t.equal(readlinkSync(at('links/in')), 'real/file')
      t.equal(readFileSync(at('links/hard'), 'utf8'), 'inside')
      t.equal(readFileSync(at('links/out/planted'), 'utf8'), 'planted', 'a folder of that name')
      t.notOk(existsSync(at('links/u2')), 'a link by way of one that was left out leads nowhere')
      t.same(readdirSync(outside), [])
      t.ok(existsSync(at('links/.git/config')), 'a new folder may bring its git')
    },
  )

  await t.test('an uploaded tar is merged, and what is there keeps its git', async t => {
    writeFileSync(at('docs/keep.md'), 'kept')
    symlinkSync(join(workspace, '../outside'), at('docs/way'))
    const tar = await tarOf(
      [{ name: 'docs/a.md', mtime: WHEN }, 'two\n'],
      [{ name: 'docs/way/planted' }, 'x'],
      [{ name: 'docs/new/b.md' }, 'b'],
      [{ name: 'docs/.git/config' }, 'x'],
      [{ name: 'fresh/.git/config' }, 'x'],
      [{ name: '.git/hooks/post-commit' }, 'x'],
      [{ name: '.sandbox/config/rules.json' }, 'x'],
      [{ name: 'dev', type: 'character-device' }],
    )
    const answer = await upload(gzipSync(tar))
    t.equal(answer.status, 200)
    const { files, skipped } = (await answer.json()) as { files: number; skipped: { path: string }[] }
    t.equal(files, 4)
    t.same(skipped.map(({ path }) => path).sort(), [
      '.git/hooks/post-commit',
      '.sandbox/config/rules.json',
      'dev',
      'docs/.git/config',
      'docs/way',
    ])
    t.same([readFileSync(at('docs/a.md'), 'utf8'), lstatSync(at('docs/a.md')).mtimeMs], ['two\n', WHEN.getTime()])
    t.equal(readFileSync(at('docs/keep.md'), 'utf8'), 'kept')
    t.ok(existsSync(at('fresh/.git/config')))
    t.same(readdirSync(join(workspace, '../outside')), [])
    t.equal((await upload(tar, '?to=deep/er')).status, 200)
    t.ok(existsSync(at('deep/er/docs/new/b.md')))
  })

  await t.test('an upload that is no tar, cut off, or leads out changes nothing', async t => {
    const before = execFileSync('git', ['status', '--porcelain', '-uall'], { cwd: workspace, encoding: 'utf8' })
    const tar = await tarOf([{ name: 'cut/a' }, 'abc'.repeat(1000)], [{ name: 'cut/b' }, 'abc'.repeat(1000)])
    const refused: [number, Buffer, string?][] = [
      [400, Buffer.from('no tar')],
      [400, tar.subarray(0, 4000)],
      [400, gzipSync(tar).subarray(0, 80)],
      [400, await tarOf([{ name: 'cut/c' }, 'x'], [{ name: 'x/../../evil' }, 'x'])],
      [404, tar, '?to=.sandbox/config'],
      [404, tar, '?to=.git/x'],
      [400, tar, '?to=../x'],
      [409, tar, '?to=docs/a.md'],
    ]
    for (const [status, body, query] of refused)
      t.equal((await upload(body, query)).status, status, query ?? 'the root')
    t.equal(execFileSync('git', ['status', '--porcelain', '-uall'], { cwd: workspace, encoding: 'utf8' }), before)
    t.same(left(), [])
  })
})
