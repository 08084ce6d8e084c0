import { spawnSync } from 'node:child_process'
import t from 'tap'
import { hiding } from '../support.js'
import { attack, limited } from './limits-attack.js'

const works = ([program = '', ...args]: readonly string[]): boolean =>
  process.getuid?.() === 0 && spawnSync(program, [...args, 'true']).status === 0

t.test(
  'a turn over a limit ends with a message, also without bubblewrap',
  { skip: !works(hiding('bwrap')) && 'only the superuser can hide programs' },
  async t => attack(t, await limited(t, { starter: hiding('bwrap') })),
)
