import { spawnSync } from 'node:child_process'
import t from 'tap'
import { spread } from '../../support/lists.js'
import { hiding } from '../support.js'
import { attack, limited } from './limits-attack.js'

/** The user `nobody` of every system. */
const ORDINARY = 65_534

const works = ([program = '', ...args]: readonly string[]): boolean =>
  process.getuid?.() === 0 && spawnSync(program, [...args, 'true']).status === 0

const KINDS = [
  {
    of: 'a turn of an ordinary user over a limit ends with a message',
    skip: process.getuid?.() !== 0 && 'only the superuser can become another user',
    options: { user: ORDINARY },
  },
  {
    of: 'a turn over a limit ends with a message, also without bubblewrap',
    skip: !works(hiding('bwrap')) && 'only the superuser can hide programs',
    options: { starter: hiding('bwrap') },
  },
]

for (const { of, skip, options } of spread(KINDS, 1, 2))
  t.test(of, { skip }, async t => attack(t, await limited(t, options)))
