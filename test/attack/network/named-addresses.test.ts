import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { barred } from '../../../sdk/node/network/addresses.js'
import { reachOfRedirect } from '../../../sdk/node/network/outbound.js'
import type { NetworkReach } from '../../../sdk/node/network/policy.js'
import { folderOf } from '../../support/daemon.js'
import { USERS } from '../users.js'
import type { NamedAddressesWorld } from './named-addresses-world.js'

const PROGRAM = fileURLToPath(new URL('./named-addresses-world.js', import.meta.url))
/** A network of its own for whoever runs it. */
const ALONE = ['unshare', '--map-root-user', '--net'] as const

t.setTimeout(120_000)

for (const [user, uid] of USERS) {
  const as = uid === process.getuid?.() ? {} : { uid, gid: uid }
  const isPossible = spawnSync(ALONE[0], [...ALONE.slice(1), 'ip', 'link', 'set', 'lo', 'up'], as).status === 0
  t.test(
    `${user}: no address that an answer of a public server names leads to what is near`,
    isPossible || process.env.CI ? {} : { skip: 'a network of its own cannot be made here' },
    async t => {
      const printed = execFileSync(ALONE[0], [...ALONE.slice(1), process.execPath, PROGRAM], {
        ...as,
        cwd: '/',
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { PATH: process.env.PATH, HOME: '/nowhere', _TAPJS_PROCESSINFO_CWD_: folderOf(t) },
      })
      const { reached, given, asked, controls } = JSON.parse(printed.trim().split('\n').at(-1)!) as NamedAddressesWorld
      t.same(reached, [])
      t.same(given, [])
      t.equal(asked.length, 9, `every reader asked the server: ${asked.join(', ')}`)
      for (const what of ['a request', 'a download', 'a forge', 'who signs people in', 'who signs in to a tool server'])
        t.ok(controls.includes(what), `${what}: what a near server names near is followed`)
    },
  )
}

t.test('another machine leads to no service of this one, and one of this machine does', t => {
  const reach: NetworkReach = { near: true, listeners: [] }
  for (const from of ['10.77.0.9', '192.168.7.9', 'fd12::9', '203.0.113.9']) {
    const way = { addresses: [{ address: from, family: from.includes(':') ? 6 : 4 }] }
    const next = reachOfRedirect(reach, new URL('http://server.example/'), way)
    for (const here of ['127.0.0.1', '::1', '0.0.0.0', '127.8.8.8', '::ffff:127.0.0.1'])
      t.match(barred(here, 5432, next), /another one leads there|may not reach/, `${from} to ${here}`)
    const again = reachOfRedirect(next, new URL('http://near.example/'), {
      addresses: [{ address: '127.0.0.1', family: 4 }],
    })
    t.equal(again.away, true, 'also after another redirect')
  }
  const near = reachOfRedirect(reach, new URL('http://localhost/'), {
    addresses: [{ address: '127.0.0.1', family: 4 }],
  })
  t.equal(barred('127.0.0.1', 5432, near), undefined)
  t.end()
})
