import t from 'tap'
import type { WallKind } from '../../../sdk/node/wall/wall.js'
import { attempted, USERS } from '../users.js'
import type { Leaks } from './wall-attempts.js'
import { spread } from '../../support/lists.js'

const FORMS = 7

/**
 * Tests that every form of a wall of this kind holds, as the superuser behind one kind and as an ordinary user behind
 * the other; with `EVERY_CASE` as each behind both.
 */
export const holds = (kind: WallKind): void => {
  for (const [user, uid] of spread(kind === 'bwrap' ? USERS : USERS.toReversed(), 1)) {
    t.test(`${user}: no rename, link, mount or open from inside changes or shows anything outside`, async t => {
      const leaks = attempted<Leaks[]>(t, './wall/wall-attempts.js', kind, uid)
      if (!leaks) return
      t.equal(leaks.length, FORMS)
      for (const { form, done, changed } of leaks) {
        t.strictSame(done, [], form)
        t.strictSame(changed, [], form)
      }
    })
  }
}
