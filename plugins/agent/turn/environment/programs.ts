import type { Program } from '../../../../sdk/kernel.js'
import { gitVersion } from '../../../../sdk/node/programs/git.js'
import { ownProgram } from '../../../../sdk/node/programs/own-programs.js'
import { wallKind } from '../../../../sdk/node/wall/wall.js'

const PACKAGES = { git: 'git', bwrap: 'bubblewrap', ip: 'iproute2', slirp4netns: 'slirp4netns' } as const

/**
 * The programs of the machine that turns use: git for private copies, bubblewrap for the wall around their commands, ip
 * for networks of their own, and slirp4netns for programs there that ignore proxies.
 */
export const programs = async (): Promise<Program[]> => {
  const has = (name: keyof typeof PACKAGES) => ownProgram(name).then(path => path !== undefined)
  const [version, wall, ip, slirp] = await Promise.all([
    gitVersion().catch(() => undefined),
    wallKind(),
    has('ip'),
    has('slirp4netns'),
  ])
  const row = (name: keyof typeof PACKAGES, present: boolean): Program => ({
    name,
    present,
    neededBy: ['agent', 'agents'],
    install: `${process.platform === 'darwin' ? 'brew' : 'apt-get'} install ${PACKAGES[name]}`,
  })
  return [
    { ...row('git', version !== undefined), ...(version !== undefined && { version }) },
    row('bwrap', wall === 'bwrap'),
    row('ip', ip),
    row('slirp4netns', slirp),
  ]
}
