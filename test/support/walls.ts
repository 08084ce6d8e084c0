import { ownProgram } from '../../sdk/node/programs/own-programs.js'

const installed = (await ownProgram('bwrap')) !== undefined

/**
 * Why a test that needs a wall is skipped; false: it runs. Bubblewrap that is there and does not start is a fault of
 * the machine that people are to hear of, and a pipeline has to build every wall.
 */
export const noWall = (starts: boolean, kind: 'bwrap' | 'unshare' | 'any' = 'any'): string | false => {
  if (starts || process.env.CI || (installed && kind !== 'unshare')) return false
  return kind === 'any'
    ? 'this machine can build no wall: neither bwrap nor unshare starts'
    : `${kind} does not start here`
}
