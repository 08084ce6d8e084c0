import t from 'tap'
import { attack, limited } from './limits-attack.js'

/** The user that every system has for nobody's files. */
const ORDINARY = 65_534

t.test(
  'a turn of an ordinary user over a limit ends with a sentence',
  { skip: process.getuid?.() !== 0 && 'only the superuser becomes somebody else' },
  async t => attack(t, await limited(t, { user: ORDINARY })),
)
