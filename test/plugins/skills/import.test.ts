import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, makeWorkspace } from '../../support/daemon.js'
import {
  bareCopy,
  committed,
  gitServer,
  processesShowing,
  redirectTo,
  trustedAuthority,
} from '../../support/servers/git-server.js'
import { tarOf, zipOf } from '../../support/documents/archives.js'
import { exactly } from '../../support/lists.js'

const SKILL = '---\nname: any\ndescription: Use it.\n---\n\nDo it.\n'
const daemon = await daemonWith(t, ['skills', 'settings', 'activity', 'areas', 'personas', 'secrets'])
const { client, workspace } = daemon
const own = join(workspace, '.sandbox/config/skills')
const write = (folder: string, files: { readonly [path: string]: string }): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}
const refusedWith = async (body: object): Promise<number> =>
  (await daemon.fetch('/skills/import', { method: 'POST', body: JSON.stringify(body) })).status
const from = (path: string) => ({ kind: 'path' as const, path })

t.test('without a credential, with a token, and of nothing, nothing is imported', async t => {
  t.equal((await fetch(`${daemon.url}/skills/import`, { method: 'POST', body: '{}' })).status, 401)
  const { client: lander } = await daemon.token('land')
  t.match(await refusalOf(() => lander.call('POST /skills/import', { from: from('packs') })), { status: 403 })
  mkdirSync(join(workspace, 'empty'))
  t.equal(await refusedWith({ from: from('none') }), 404)
  t.equal(await refusedWith({ from: from('../..') }), 404)
  t.equal(await refusedWith({ from: from('empty') }), 422)
  t.equal(await refusedWith({ from: { kind: 'git', url: 'empty', ref: 'main' } }), 400)
  t.notOk(existsSync(own))
})

t.test('skills of a folder are imported with their files, and new ones are on', async t => {
  write(join(workspace, 'packs'), {
    'review/SKILL.md': SKILL,
    'review/bin/check': 'echo ok\n',
    'more/deep/release/SKILL.md': SKILL,
    'subagents/SKILL.md': SKILL,
    'Wrong Name/SKILL.md': SKILL,
  })
  chmodSync(join(workspace, 'packs/review/bin/check'), 0o755)
  const { imported, skipped } = await client.call('POST /skills/import', { from: from('packs') })
  t.match(
    imported.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    exactly({ name: 'release', files: 0, size: SKILL.length }, { name: 'review', files: 1, size: SKILL.length + 8 }),
  )
  t.same(skipped.map(({ name }) => name).sort(), ['Wrong Name', 'subagents'])
  t.ok(statSync(join(own, 'review/bin/check')).mode & 0o100, 'programs stay executable')
  t.ok(existsSync(join(workspace, '.agents/skills/review/bin/check')), 'agents load it')
  t.same([...(await client.call('GET /settings')).skills].sort(), ['release', 'review'])
})

t.test('existing skills are skipped unless replace is set, and disabled ones stay disabled', async t => {
  await client.call('POST /skills/enabled', { id: 'release', enabled: false })
  write(join(workspace, 'packs'), { 'more/deep/release/SKILL.md': `${SKILL}Twice.\n` })
  const again = await client.call('POST /skills/import', { from: from('packs'), names: ['release', 'gone'] })
  t.same(again.imported, [])
  t.match(again.skipped, exactly({ name: 'gone' }, { name: 'release', reason: /exists already/ }))
  await client.call('POST /skills/import', { from: from('packs'), names: ['release'], replace: true })
  t.match(readFileSync(join(own, 'release/SKILL.md'), 'utf8'), /Twice/)
  t.same((await client.call('GET /settings')).skills, ['review'])
})

t.test('of a repository exactly the commit is imported, however its branch moved', async t => {
  const repositories = folderOf(t)
  const source = join(folderOf(t), 'source')
  makeWorkspace(source)
  write(source, { 'skills/deploy/SKILL.md': SKILL })
  const ref = committed(source)
  write(source, { 'skills/deploy/SKILL.md': `${SKILL}Later.\n` })
  committed(source)
  bareCopy(source, join(repositories, 'source.git'))
  const { url } = await gitServer(t, repositories)
  const git = { kind: 'git' as const, url: `${url}/source.git`, ref, path: 'skills' }
  t.match(await client.call('POST /skills/import', { from: git }), { imported: exactly({ name: 'deploy' }) })
  t.equal(readFileSync(join(own, 'deploy/SKILL.md'), 'utf8'), SKILL)
  t.equal(await refusedWith({ from: { ...git, ref: '0'.repeat(40) } }), 424)
  t.equal(await refusedWith({ from: { ...git, path: 'none' } }), 422)
  t.same(readdirSync(join(daemon.data, 'skills/fetched')), [])
})

t.test('a commit comes over checked addresses alone, and its token shows in no process', async t => {
  const repositories = folderOf(t)
  const source = join(folderOf(t), 'source')
  makeWorkspace(source)
  write(source, { 'sealed/SKILL.md': SKILL })
  const ref = committed(source)
  bareCopy(source, join(repositories, 'source.git'))
  const secret = 'skill-token-0815'
  const needs = `x-access-token:${secret}`
  const seen: string[] = []
  const forge = await gitServer(t, repositories, {
    ...{ secure: await trustedAuthority(t), needs },
    instead: () => {
      seen.push(...processesShowing(secret, Buffer.from(needs).toString('base64')))
      return false
    },
  })
  const away = await gitServer(t, repositories, { instead: redirectTo(`${forge.url}/source.git`) })
  const imported = (given: object) =>
    client.call('POST /skills/import', { from: { kind: 'git', url: `${forge.url}/source.git`, ref, ...given } })
  t.match(await refusalOf(() => imported({ url: `${away.url}/source.git` })), { status: 424, message: /sends on/ })
  t.same(forge.requests, [])
  const metadata = { url: 'https://169.254.169.254/source.git' }
  t.match(await refusalOf(() => imported(metadata)), { status: 424, message: /told its own secrets/ })
  await client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await client.call('POST /secrets', { key: 'SKILLS', value: secret })
  t.match(await imported({ secret: 'SKILLS' }), { imported: exactly({ name: 'sealed' }) })
  t.same(seen, [])
})

t.test('a link that leaves a skill refuses the whole import', async t => {
  write(join(workspace, 'bad'), { 'good/SKILL.md': SKILL, 'linked/SKILL.md': SKILL })
  symlinkSync('/etc/passwd', join(workspace, 'bad/linked/users'))
  t.equal(await refusedWith({ from: from('bad') }), 422)
  t.notOk(existsSync(join(own, 'good')))
  t.same(
    readdirSync(own).filter(name => name.startsWith('.')),
    [],
  )
})

t.test('more than a skill may hold is refused', async t => {
  write(join(workspace, 'large'), Object.fromEntries(Array.from({ length: 501 }, (_, at) => [`many/${at}`, ''])))
  write(join(workspace, 'large'), { 'many/SKILL.md': SKILL })
  t.equal(await refusedWith({ from: from('large') }), 413)
  t.notOk(existsSync(join(own, 'many')))
})

t.test('skills come out of an archive, one at its root with the name of the file', async t => {
  const many = await tarOf(
    [{ name: 'all/pack-one/SKILL.md' }, SKILL],
    [{ name: 'all/pack-one/bin/run', mode: 0o755 }, 'echo one\n'],
    [{ name: 'all/pack-two/SKILL.md' }, SKILL],
    [{ name: 'all/pack-two/same', type: 'symlink', linkname: 'SKILL.md' }],
  )
  writeFileSync(join(workspace, 'all.tar.gz'), gzipSync(many))
  t.match(
    (await client.call('POST /skills/import', { from: from('all.tar.gz') })).imported.map(({ name }) => name).sort(),
    exactly('pack-one', 'pack-two'),
  )
  t.ok(statSync(join(own, 'pack-one/bin/run')).mode & 0o100, 'programs stay executable')
  t.equal(readFileSync(join(own, 'pack-two/same'), 'utf8'), SKILL, 'a link that stays inside is its file')
  writeFileSync(join(workspace, 'zipped.zip'), await zipOf(zip => zip.addBuffer(Buffer.from(SKILL), 'SKILL.md')))
  t.match(await client.call('POST /skills/import', { from: from('zipped.zip') }), {
    imported: exactly({ name: 'zipped', files: 0 }),
  })
  t.ok((await client.call('GET /settings')).skills.includes('zipped'))
  t.same(readdirSync(join(daemon.data, 'skills/fetched')), [])
})

t.test('a hostile archive is refused whole, and the message names its entry', async t => {
  const good = [{ name: 'fine/SKILL.md' }, SKILL] as const
  const link = (linkname: string) => [{ name: 'fine/users', type: 'symlink' as const, linkname }] as const
  const bomb = Buffer.alloc(65 * 1024 * 1024)
  const hostile = {
    'link.tar': [422, /"fine\/users": the link leads out/, await tarOf(good, link('/etc/passwd'))],
    'climbing-link.tar': [422, /"fine\/users": the link leads out/, await tarOf(good, link('../../../../etc/passwd'))],
    'other-pack.tar': [
      422,
      /"fine\/users" is a link that leaves the skill/,
      await tarOf(good, link('../other/SKILL.md'), [{ name: 'other/SKILL.md' }, SKILL]),
    ],
    'hard-link.tar': [
      422,
      /"fine\/users": the link leads out/,
      await tarOf(good, [{ name: 'fine/users', type: 'link', linkname: '/etc/passwd' }]),
    ],
    'outside.tar': [422, /"\.\.\/planted" leads outside/, await tarOf(good, [{ name: '../planted' }, 'x'])],
    'absolute.tar': [422, /"\/tmp\/planted" leads outside/, await tarOf(good, [{ name: '/tmp/planted' }, 'x'])],
    'device.tar': [
      422,
      /"fine\/disk": it is a device/,
      await tarOf(good, [{ name: 'fine/disk', type: 'block-device', devmajor: 8, devminor: 0 }]),
    ],
    'bomb.zip': [
      413,
      /200 times its size within the entry "fine\/zeros"/,
      await zipOf(zip => {
        zip.addBuffer(Buffer.from(SKILL), 'fine/SKILL.md')
        zip.addBuffer(bomb, 'fine/zeros')
      }),
    ],
    'damaged.tar.gz': [422, /damaged/, gzipSync(await tarOf(good)).subarray(0, 60)],
    'single.gz': [422, /one packed file/, gzipSync(SKILL)],
    'plain.txt': [422, /it is no archive/, Buffer.from(SKILL)],
  } as const
  for (const [name, [status, message, bytes]] of Object.entries(hostile)) {
    writeFileSync(join(workspace, name), bytes)
    t.match(await refusalOf(() => client.call('POST /skills/import', { from: from(name) })), { status, message }, name)
  }
  t.notOk(existsSync(join(own, 'fine')))
  t.notOk(existsSync(join(daemon.data, 'skills/planted')))
  t.same(readdirSync(join(daemon.data, 'skills/fetched')), [])
})

t.test('an archive by way of a link out of the workspace, or in a closed place, is not there', async t => {
  symlinkSync('/etc/hostname', join(workspace, 'away.zip'))
  t.equal(await refusedWith({ from: from('away.zip') }), 404)
  t.equal(await refusedWith({ from: from('.git/x.zip') }), 404)
})
