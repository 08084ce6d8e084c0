import t from 'tap'
import type { WallKind } from '../../../sdk/node/wall/wall.js'
import type { Faults } from './objects-attempts.js'
import { byTurns } from '../../support/lists.js'
import { attempted, USERS } from '../users.js'

/**
 * Tests that objects are safe from turns behind a wall of this kind, for every user that a test can run as: each day
 * for another of them, and behind the other kind of wall for the other one.
 */
export const objectsHold = (kind: WallKind): void => {
  for (const [user, uid] of byTurns(kind === 'bwrap' ? USERS : USERS.toReversed(), USERS.length)) {
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
