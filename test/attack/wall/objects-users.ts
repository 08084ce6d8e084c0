import t from 'tap'
import type { WallKind } from '../../../sdk/node/wall/wall.js'
import type { Faults } from './objects-attempts.js'
import { attempted, USERS } from '../users.js'

/**
 * Tests that objects are safe from turns behind a wall of this kind, as the superuser behind one kind and as an
 * ordinary user behind the other: what git checks does not depend on how both meet.
 */
export const objectsHold = (kind: WallKind): void => {
  for (const [user, uid] of (kind === 'bwrap' ? USERS : USERS.toReversed()).slice(0, 1)) {
    t.test(
      `${user}: whatever a turn does to objects, the repository is unchanged, and imports only valid objects`,
      async t => {
        const found = attempted<Faults[]>(t, './wall/objects-attempts.js', kind, uid)
        if (!found) return
        t.ok(found.length > 10)
        for (const { attempt, faults } of found) t.strictSame(faults, [], attempt)
      },
    )
  }
}
