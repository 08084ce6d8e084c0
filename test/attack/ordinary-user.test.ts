import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { folderOf } from '../support/daemon.js'
import { spread } from '../support/lists.js'

const NOBODY = 65534
/** Attack tests that run as the user who starts them, without those of readers, which know no user. */
const FILES = [
  'hand-written-values.test.js',
  'hostile-servers.test.js',
  'wall/homes.test.js',
  'network/own-listeners.test.js',
  'work/left-in-copies.test.js',
  'work/every-yes.test.js',
  'attempts/gates.test.js',
  'attempts/rule-gates.test.js',
  'attempts/reports.test.js',
  'attempts/hostile-program.test.js',
  'limits/many-folders.test.js',
  'work/landing-names.test.js',
  'work/landing-seen.test.js',
  'work/sharing.test.js',
  'work/bundles.test.js',
]
/** So many files run at once: each mostly waits for its daemon. */
const AT_ONCE = 2
const isSuperuser = process.getuid?.() === 0

t.jobs = AT_ONCE

for (const file of isSuperuser ? spread(FILES, 1, 8) : [])
  t.test(`holds as an ordinary user too: ${file}`, { timeout: 300_000, buffered: true }, async t => {
    const base = join(folderOf(t), 'place')
    mkdirSync(base)
    chownSync(base, NOBODY, NOBODY)
    const run = spawn(process.execPath, [...process.execArgv, fileURLToPath(new URL(file, import.meta.url))], {
      ...{ cwd: base, uid: NOBODY, gid: NOBODY, stdio: ['ignore', 'pipe', 'pipe'] },
      env: {
        PATH: process.env.PATH,
        HOME: base,
        XDG_STATE_HOME: base,
        _TAPJS_PROCESSINFO_CWD_: base,
        TAP_TIMEOUT: '280',
      },
    })
    const [stdout, stderr, [status]] = await Promise.all([text(run.stdout), text(run.stderr), once(run, 'exit')])
    const failed = stdout.split('\n').filter(line => /^ *not ok/.test(line))
    t.same(failed, [])
    t.equal(status, 0, stderr.slice(-2000))
    t.ok(/^ok 1/m.test(stdout), 'it ran')
  })

t.same(
  FILES.filter(file => !existsSync(new URL(file, import.meta.url))),
  [],
  'as an ordinary user these files run themselves',
)
