import { readFile, readlink, realpath } from 'node:fs/promises'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { needProgram } from '../../../sdk/node/programs/run.js'
import { VICI } from '../settings/ipsec-conf.js'
import { runStarter, type ProgramOptions, type StarterEnd } from '../system/programs.js'
import type { Standing } from './client.js'

/** The file of charon's settings, in the folder of the tunnel. */
export const CHARON_SETTINGS = 'strongswan.conf'

/** Speaks to the charon of a tunnel with `swanctl`, whose own failures to load plugins are left out. */
export const swanctl = async (
  folder: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<StarterEnd> => {
  const { line } = options
  const { code, output } = await runStarter(await needProgram('swanctl'), [...args, '--uri', `unix://${VICI}`], {
    ...options,
    ...{ cwd: folder, env: { STRONGSWAN_CONF: CHARON_SETTINGS } },
    ...(line && { line: text => isNoise(text) || line(text) }),
  })
  return {
    code,
    output: output
      .split('\n')
      .filter(text => !isNoise(text))
      .join('\n'),
  }
}

const isNoise = (text: string): boolean => /^plugin '[^']*': failed to load/.test(text)

/** Whether the process of a tunnel is still its charon. */
export const isCharon = async ({ pid, folder }: Pick<Standing, 'pid' | 'folder'>): Promise<boolean> => {
  if (pid === undefined) return false
  const [command, cwd, own] = await Promise.all([
    readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
    readlink(`/proc/${pid}/cwd`).catch(() => undefined),
    realpath(folder).catch(() => folder),
  ])
  return /(^|\/)charon-systemd\0/.test(command) && cwd === own
}

/** Ends a process; one that has ended is fine. */
export const signalProcess = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}

/** What charon agreed on with the gateway. */
export interface SecurityAssociation {
  readonly gateway: string
  readonly addresses: readonly string[]
  readonly networks: readonly string[]
  /** How long ago the keys were exchanged, in seconds. */
  readonly age: number
}

const listed = (text: string, name: string): string[] =>
  [...text.matchAll(new RegExp(`\\b${name}=\\[([^\\]]*)\\]`, 'g'))].flatMap(([, each = '']) =>
    each.split(' ').filter(Boolean),
  )

/** What `swanctl --list-sas --raw` says of a tunnel; undefined: it is not up. */
export const associationIn = (text: string): SecurityAssociation | undefined => {
  if (!/\bstate=ESTABLISHED\b/.test(text) || !/\bstate=INSTALLED\b/.test(text)) return undefined
  return {
    gateway: /\bremote-host=(\S+)/.exec(text)?.[1] ?? '',
    addresses: listed(text, 'local-vips'),
    networks: [...new Set(listed(text, 'remote-ts'))],
    age: Number(/\bestablished=(\d+)/.exec(text)?.[1] ?? 0),
  }
}
