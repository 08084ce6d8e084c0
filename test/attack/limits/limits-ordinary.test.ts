import t from 'tap'
import { attack, limited } from './limits-attack.js'

/** The user `nobody` of every system. */
const ORDINARY = 65_534

t.test(
  'a turn of an ordinary user over a limit ends with a message',
  { skip: process.getuid?.() !== 0 && 'only the superuser can become another user' },
  async t => attack(t, await limited(t, { user: ORDINARY })),
)
