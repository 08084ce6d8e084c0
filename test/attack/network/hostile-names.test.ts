import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, chownSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { folderOf } from '../../support/daemon.js'
import { USERS } from '../users.js'
import type { NamesWorld } from './names-world.js'

const PROGRAM = fileURLToPath(new URL('./names-world.js', import.meta.url))
const POSSIBLE =
  process.getuid?.() === 0
  && spawnSync('unshare', ['--net', '--mount', '--', 'ip', 'link', 'set', 'lo', 'up']).status === 0

t.setTimeout(900_000)

for (const [user, uid] of USERS)
  t.test(
    `${user}: no answer of a name server leads to the daemon or to metadata, and silence holds up nobody else`,
    POSSIBLE || process.env.CI ? {} : { skip: 'a network with a name server of its own takes the superuser' },
    async t => {
      const base = folderOf(t)
      chmodSync(base, 0o755)
      chownSync(base, uid, uid)
      const { stdout } = await promisify(execFile)(
        'unshare',
        ['--net', '--mount', '--', process.execPath, PROGRAM, String(uid), base],
        { cwd: '/', env: { ...process.env, _TAPJS_PROCESSINFO_CWD_: base }, maxBuffer: 1 << 26 },
      )
      const { reached, controls, besideSlow, asked } = JSON.parse(stdout.trim().split('\n').at(-1)!) as NamesWorld
      t.same(reached, [])
      const ways = ['a model server', 'a tool server', 'a push service', 'a page for a turn', 'a repository to clone']
      for (const way of ways) t.ok(controls.includes(`${way}, of a public server`), `${way}: its name is looked up`)
      t.ok(controls.includes('a model server: nearby'), 'the servers of the test see who connects')
      t.ok(controls.includes('a page for a turn, of a public server: its page'), 'a server in public is asked')
      t.ok(asked > 50, `${asked} lookups`)
      t.ok(besideSlow >= 0 && besideSlow < 12_000, `somebody else's request took ${Math.round(besideSlow)} ms`)
    },
  )
