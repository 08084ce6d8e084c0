import type { Program } from '../../sdk/kernel.js'
import { gitVersion } from '../../sdk/node/git.js'
import { wallKind } from '../../sdk/node/wall/wall.js'

const PACKAGES = { git: 'git', bwrap: 'bubblewrap' } as const

/** The programs of the machine that turns use: git for private copies, bubblewrap for the wall around their commands. */
export const programs = async (): Promise<Program[]> => {
  const [version, wall] = await Promise.all([gitVersion().catch(() => undefined), wallKind()])
  const row = (name: keyof typeof PACKAGES, present: boolean): Program =>
    ({ name, present, neededBy: ['agent', 'agents'], install: `${process.platform === 'darwin' ? 'brew' : 'apt-get'} install ${PACKAGES[name]}` })
  return [{ ...row('git', version !== undefined), ...(version !== undefined && { version }) }, row('bwrap', wall === 'bwrap')]
}
