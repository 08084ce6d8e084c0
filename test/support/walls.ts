import { wallKind } from '../../sdk/node/wall/wall.js'
import { ownProgram } from '../../sdk/node/programs/own-programs.js'

/** The variables with which a daemon starts where the machine can build no wall. */
export const ALSO_UNWALLED: { readonly [name: string]: string } =
  (await wallKind()) === 'none' ? { SANDBOX_NO_WALL: '1' } : {}

const installed = (await ownProgram('bwrap')) !== undefined

/**
 * The reason for skipping a test that needs a wall; false: it runs. If bubblewrap is installed and does not start,
 * the test fails, because that is a fault of the machine; in CI every kind of wall is required.
 */
export const noWall = (starts: boolean, kind: 'bwrap' | 'unshare' | 'any' = 'any'): string | false => {
  if (starts || process.env.CI || (installed && kind !== 'unshare')) return false
  return kind === 'any'
    ? 'this machine can build no wall: neither bwrap nor unshare starts'
    : `${kind} does not start here`
}
