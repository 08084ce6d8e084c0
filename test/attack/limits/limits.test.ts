import t from 'tap'
import { attack, limited } from './limits-attack.js'
import { walled } from '../support.js'

t.test('a turn over a limit ends with a message, and other turns are not affected', walled(), async t =>
  attack(t, await limited(t)),
)
