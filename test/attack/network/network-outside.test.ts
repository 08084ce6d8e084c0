import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { folderOf } from '../../support/daemon.js'
import type { Outside } from './network-outside.js'

const PROGRAM = fileURLToPath(new URL('./network-outside.js', import.meta.url))
const POSSIBLE =
  process.getuid?.() === 0
  && spawnSync('unshare', ['--net', '--mount', '--', 'ip', 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1'])
    .status === 0

const direct = (slirp: boolean): string => (slirp ? 'page' : '(7)')

/** The expected result of each kind of request; `(7)`: refused by the system, `(97)`: by SOCKS. */
const expected = (slirp: boolean): Outside['found'] => ({
  'public, forwarded': 'page',
  'public, by name': 'page',
  'public, through CONNECT': 'page',
  'public, through SOCKS by name': 'page',
  'public, direct': direct(slirp),
  'public, direct by name': direct(slirp),
  private: 'not reached',
  'private, direct': '(7)',
  'private, by name': 'not reached',
  'the machine at its public address': 'not reached',
  'the machine at its public address, direct': '(7)',
  'the machine at its private address, direct': '(7)',
  'a name of the machine': 'not reached',
  'led to the machine': 'not reached',
  'allowed: private': 'page',
  'allowed: private, by name': 'page',
  'allowed: private, direct': '(7)',
  'allowed: a name of the machine': 'not reached',
  'only: by its name': 'page',
  'only: by its address': 'not reached',
  'only: direct': '(7)',
  'again: public': 'page',
  'again: public, direct': direct(slirp),
})

for (const kind of ['bwrap', 'unshare']) {
  const skip =
    !POSSIBLE && !process.env.CI && 'no wire between two networks can be made here: it takes the superuser and iproute2'
  t.test(
    `behind ${kind} a public host answers through the proxy and directly, with the same policy`,
    skip ? { skip } : {},
    async t => {
      const printed = execFileSync(
        'unshare',
        ['--net', '--mount', '--', process.execPath, PROGRAM, kind, folderOf(t)],
        {
          encoding: 'utf8',
          cwd: '/',
          stdio: ['ignore', 'pipe', 'inherit'],
          env: { PATH: process.env.PATH, _TAPJS_PROCESSINFO_CWD_: folderOf(t) },
        },
      )
      const { slirp, found } = JSON.parse(printed) as Outside
      if (process.env.CI) t.ok(slirp, 'slirp4netns is installed')
      t.strictSame(found, expected(slirp))
    },
  )
}
