import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { folderOf } from '../support/daemon.js'
import type { NetworkLeaks } from './network-attempts.js'

const PROGRAM = fileURLToPath(new URL('./network-attempts.js', import.meta.url))
const NOBODY = 65534
const ME = process.getuid?.() ?? 0
const USERS = ME === 0 ? [['the superuser', ME], ['an ordinary user', NOBODY]] as const : [['an ordinary user', ME]] as const

for (const kind of ['bwrap', 'unshare']) for (const [user, uid] of USERS) {
  t.test(`${user} behind ${kind}: nothing of the machine answers in a network of its own, in whatever way it is asked`, async t => {
    const base = folderOf(t)
    mkdirSync(join(base, 'place'))
    for (const folder of [base, join(base, 'place')]) chownSync(folder, uid, uid)
    const printed = execFileSync(process.execPath, [PROGRAM, kind, base], {
      encoding: 'utf8', cwd: '/', stdio: ['ignore', 'pipe', 'inherit'], ...(uid !== ME && { uid, gid: uid }),
      env: { PATH: process.env.PATH, HOME: join(base, 'place/home'), _TAPJS_PROCESSINFO_CWD_: base },
    })
    const found = JSON.parse(printed) as NetworkLeaks | 'none'
    if (found === 'none') return void (process.env.CI ? t.fail(`no network can be made behind ${kind} here`) : t.pass(`skipped: no network can be made behind ${kind} here`))
    const { reached, changed, pages, allowed, refused, user: [own, shared] } = found
    t.strictSame(reached, [], 'reached')
    t.strictSame(changed, [], 'changed')
    t.strictSame(pages, ['one', 'two'], 'each conversation has its own port 3000')
    t.strictSame(allowed.map(line => line.split(' ')[1]), ['direct', 'forward', 'connect', 'socks'], 'what is allowed answers in every way')
    for (const target of ['169.254.169.254:80', '10.255.255.1:80']) t.ok(refused.includes(target), `told of ${target}`)
    t.equal(own, shared, 'a program is the same user as in the network of the machine')
  })
}
