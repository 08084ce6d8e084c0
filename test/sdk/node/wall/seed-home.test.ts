import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { seedHome } from '../../../../sdk/node/wall/seed-home.js'
import { folderOf } from '../../../support/daemon.js'

const SECRET = 'a secret of the daemon\n'

const put = (folder: string, files: { readonly [path: string]: string }) => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

const filesIn = (folder: string): string[] =>
  (readdirSync(folder, { recursive: true }) as string[]).filter(path => /\w\.\w+$/.test(path)).sort()

t.test('a home begins with settings and sign-ins, and with nothing that a link leads to', async t => {
  const folder = folderOf(t)
  const home = join(folder, 'home')
  put(folder, { 'secret/key.txt': SECRET })
  put(home, {
    '.agent/settings.json': '{}',
    '.agent/sessions/one.json': '{}',
    '.cache/large.bin': 'c',
    '.local/bin/tool.sh': 't',
    '.local/share/agent/auth.json': 'a',
  })
  symlinkSync('../secret', join(home, 'folder'))
  symlinkSync('../secret/key.txt', join(home, '.agent/file.txt'))
  const made = await seedHome(home, join(folder, 'place'))
  t.same(filesIn(made), ['.agent/settings.json', '.local/share/agent/auth.json'])
  t.equal(await seedHome(home, join(folder, 'place')), made, 'nothing changed')
  put(home, { '.agent/settings.json': '{"a":1}' })
  const next = await seedHome(home, join(folder, 'place'))
  t.not(next, made)
  t.equal(readFileSync(join(next, '.agent/settings.json'), 'utf8'), '{"a":1}')
  t.equal(filesIn(await seedHome(join(folder, 'none'), join(folder, 'place'))).length, 0, 'a home that is not there')
})

/** Puts links in the places of a file and of a folder, and takes them away again, without an end. */
const SWAPS = `while :; do
mkdir d; echo ok > d/key.txt; echo ok > key.txt
rm key.txt; ln -s ../secret/key.txt key.txt; rm -r d; ln -s ../secret d
rm key.txt d
done`

t.test('what is replaced by a link while it is copied is not followed', async t => {
  const folder = folderOf(t)
  const home = join(folder, 'home')
  put(folder, { 'secret/key.txt': SECRET })
  mkdirSync(home)
  const child = spawn('sh', ['-c', SWAPS], { cwd: home, stdio: 'ignore' })
  const ended = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  const found: string[] = []
  for (const until = Date.now() + 3_000; Date.now() < until;) {
    const made = await seedHome(home, join(folder, 'place'))
    for (const path of filesIn(made)) found.push(readFileSync(join(made, path), 'utf8'))
    rmSync(made, { recursive: true })
  }
  child.kill('SIGKILL')
  await ended
  t.ok(found.includes('ok\n'))
  t.notOk(found.includes(SECRET))
})

const skip = process.getuid?.() !== 0 && 'only the superuser mounts a disk'

t.test('a full disk refuses a home, and leaves no half of one', { skip }, async t => {
  const folder = folderOf(t)
  const [home, place] = [join(folder, 'home'), join(folder, 'place')]
  put(home, { 'a.json': 'a', 'b.json': 'b'.repeat(200_000) })
  mkdirSync(place)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', place])
  t.teardown(() => execFileSync('umount', ['--lazy', place]))
  await t.rejects(seedHome(home, place), { code: 'ENOSPC' })
  t.same(readdirSync(place), [])
  execFileSync('mount', ['-o', 'remount,size=1m', place])
  const made = await seedHome(home, place)
  t.same(filesIn(made), ['a.json', 'b.json'])
  t.ok(existsSync(made))
})
