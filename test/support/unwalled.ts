import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { Test } from 'tap'
import { wallKind } from '../../sdk/node/wall/wall.js'
import { folderOf, makeWorkspace, spawnDaemon } from './daemon.js'

/** Hides the programs that build walls, only from the given program. */
const HIDDEN = [
  'unshare',
  '--map-root-user',
  '--mount',
  'sh',
  '-c',
  'for p in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do for n in bwrap setpriv; do [ ! -e '
    + '$p/$n ] || mount --bind /dev/null $p/$n || exit; done; done; exec "$@"',
  'sh',
]

const NO_WALL = (await wallKind()) === 'none'

/** What starts a program on a machine that can build no wall. */
export const WITHOUT_WALL = NO_WALL ? [] : HIDDEN

/** The options of a test that needs such a machine. */
export const unwalled = () => {
  const [program = '', ...args] = HIDDEN
  const hides = NO_WALL || spawnSync(program, [...args, 'true']).status === 0
  return { skip: !hides && 'programs cannot be hidden on this machine' }
}

/** The real program on a machine that can build no wall. */
export const spawnUnwalled = async (t: Test, files: { [path: string]: string }) => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, files)
  return spawnDaemon(t, { ...where, args: ['--no-wall'], starter: WITHOUT_WALL })
}
