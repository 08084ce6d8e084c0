import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { WallKind } from '../../sdk/node/wall/wall.js'
import { folderOf } from '../support/daemon.js'
import type { Leaks } from './wall-attempts.js'

const PROGRAM = fileURLToPath(new URL('./wall-attempts.js', import.meta.url))
const NOBODY = 65534
const ME = process.getuid?.() ?? 0
const USERS = ME === 0 ? [['the superuser', ME], ['an ordinary user', NOBODY]] as const : [['an ordinary user', ME]] as const
const FORMS = 7

/** Tests that every form of a wall of this kind holds, for every user a test can be. */
export const holds = (kind: WallKind): void => {
  for (const [user, uid] of USERS) {
    t.test(`${user}: no rename, link, mount or open from inside changes or shows anything outside`, async t => {
      const base = folderOf(t)
      mkdirSync(join(base, 'place'))
      for (const folder of [base, join(base, 'place')]) chownSync(folder, uid, uid)
      const printed = execFileSync(process.execPath, [PROGRAM, kind, base], {
        encoding: 'utf8', cwd: '/', maxBuffer: 64 * 1024 * 1024, stdio: ['ignore', 'pipe', 'inherit'], ...(uid !== ME && { uid, gid: uid }),
        env: { PATH: process.env.PATH, HOME: join(base, 'place/home'), _TAPJS_PROCESSINFO_CWD_: base },
      })
      const leaks = JSON.parse(printed) as Leaks[] | 'none'
      if (leaks === 'none') return void (process.env.CI ? t.fail(`${kind} does not start here`) : t.pass(`skipped: ${kind} does not start here`))
      t.equal(leaks.length, FORMS)
      for (const { form, done, changed } of leaks) {
        t.strictSame(done, [], form)
        t.strictSame(changed, [], form)
      }
    })
  }
}
