import { execFileSync, spawnSync } from 'node:child_process'
import { chownSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { hostAndPort, normalHost } from '../../../sdk/node/network/host-form.js'
import { folderOf } from '../../support/daemon.js'
import { EVERY_CASE } from '../../support/lists.js'
import { USERS } from '../users.js'
import type { Spellings } from './host-spellings.js'

const PROGRAM = fileURLToPath(new URL('./host-spellings.js', import.meta.url))
const COUNT = EVERY_CASE ? 4000 : 400
const NETWORK = ['--user', '--map-root-user', '--net', '--mount', '--']

const possible = (uid: number): boolean =>
  spawnSync('unshare', [...NETWORK, 'ip', 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1'], {
    uid,
    gid: uid,
    cwd: '/',
  }).status === 0

for (const [user, uid] of USERS) {
  const skip = !possible(uid) && !process.env.CI && 'no wire between two networks can be made here'
  t.test(
    `${user}: *.name opens no private host, port of this machine or metadata address in any spelling`,
    skip ? { skip } : {},
    async t => {
      const folder = folderOf(t)
      chownSync(folder, uid, uid)
      const printed = execFileSync('unshare', [...NETWORK, process.execPath, PROGRAM, folder, String(COUNT)], {
        encoding: 'utf8',
        cwd: '/',
        maxBuffer: 64 * 1024 * 1024,
        stdio: ['ignore', 'pipe', 'inherit'],
        uid,
        gid: uid,
        env: { PATH: process.env.PATH, _TAPJS_PROCESSINFO_CWD_: folder },
      })
      const { tried, reached, controls } = JSON.parse(printed) as Spellings
      t.ok(tried > COUNT / 2, `${tried} spellings`)
      t.strictSame(reached, [], 'reached')
      t.equal(controls.length, 5, `allowed and public hosts answer: ${controls.join(', ')}`)
    },
  )
}

t.test('a host has one normal form, and no form stands for two hosts', async t => {
  for (const [text, form] of [
    ['Example.ORG.', 'example.org'],
    ['a_b-c.example', 'a_b-c.example'],
    ['127.1', '127.0.0.1'],
    ['0x7f.0.0.1', '127.0.0.1'],
    ['0177.0.0.01', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['::FFFF:10.1.2.3', '10.1.2.3'],
    ['[::ffff:a01:203]', '10.1.2.3'],
    ['[FD00:0:0::1]', 'fd00::1'],
    ['10.0.0.1%.example.org', undefined],
    ['fe80::1%eth0', undefined],
    ['[10.0.0.1]', undefined],
    ['1.2.3.4.5', undefined],

    ['user@example.org', undefined],
    ['bücher.example', undefined],
    ['ex%61mple.org', undefined],
    ['a..example', undefined],
    ['example.org..', undefined],
    ['.', undefined],
    ['', undefined],
    ['a b', undefined],
    ['a\0b', undefined],
    [`${'a'.repeat(64)}.example`, undefined],
  ] as const) {
    t.equal(normalHost(text), form, JSON.stringify(text))
    if (form !== undefined) t.equal(normalHost(form), form, `${form} is its own form`)
  }
  for (let code = 0; code < 0x250; code++) {
    const char = String.fromCharCode(code)
    if (!/[A-Za-z0-9._-]/.test(char)) t.equal(normalHost(`a${char}b.example`), undefined, `character ${code}`)
  }
  t.strictSame(hostAndPort('[fd00::1]:443'), { host: 'fd00::1', port: 443 })
  for (const text of ['a', 'a:0', 'a:65536', 'a:', 'fd00::1', '[fd00::1', 'a:1:2', 'u@a:1', 'a:80x', 'a: 80'])
    t.equal(hostAndPort(text), undefined, text)
})
