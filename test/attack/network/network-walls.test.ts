import t from 'tap'
import type { NetworkLeaks } from './network-attempts.js'
import { attempted, USERS } from '../users.js'
import { spread } from '../../support/lists.js'

const WALLS = (['bwrap', 'unshare'] as const).flatMap(kind =>
  (kind === 'bwrap' ? USERS : USERS.toReversed()).map(([user, uid]) => [kind, user, uid] as const),
)

/** Without `EVERY_CASE` as the superuser behind one kind and as an ordinary user behind the other. */
for (const [kind, user, uid] of spread(WALLS, 2)) {
  t.test(
    `${user} behind ${kind}: nothing of the machine answers in a network of its own, by any kind of request`,
    async t => {
      const found = attempted<NetworkLeaks>(t, './network/network-attempts.js', kind, uid)
      if (!found) return
      const {
        reached,
        changed,
        pages,
        allowed,
        refused,
        user: [own, shared],
      } = found
      t.strictSame(reached, [], 'reached')
      t.strictSame(changed, [], 'changed')
      t.strictSame(pages, ['one', 'two'], 'each conversation has its own port 3000')
      t.strictSame(
        allowed.map(line => line.split(' ')[1]),
        ['direct', 'forward', 'connect', 'socks'],
        'allowed targets answer every kind of request',
      )
      for (const target of ['169.254.169.254:80', '10.255.255.1:80'])
        t.ok(refused.includes(target), `reported ${target}`)
      t.equal(own, shared, 'a program is the same user as in the network of the machine')
    },
  )
}
