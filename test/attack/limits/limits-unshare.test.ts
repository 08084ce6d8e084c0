import { spawnSync } from 'node:child_process'
import t from 'tap'
import { attack, limited } from './limits-attack.js'

/** Hides a program, only from the daemon. */
const without = (program: string): string[] => [
  'unshare',
  '--mount',
  'sh',
  '-c',
  `for p in /usr/local/bin /usr/bin /bin; do [ ! -e $p/${program} ] || mount --bind /dev/null $p/${program} || `
    + 'exit; done; exec "$@"',
  'sh',
]
const works = ([program = '', ...args]: readonly string[]): boolean =>
  process.getuid?.() === 0 && spawnSync(program, [...args, 'true']).status === 0

t.test(
  'a turn over a limit ends with a message, also without bubblewrap',
  { skip: !works(without('bwrap')) && 'only the superuser can hide programs' },
  async t => attack(t, await limited(t, { starter: without('bwrap') })),
)
