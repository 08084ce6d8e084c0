import t from 'tap'
import type { NetworkLeaks } from './network-attempts.js'
import { attempted, USERS } from '../users.js'

for (const kind of ['bwrap', 'unshare'] as const)
  for (const [user, uid] of USERS) {
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
