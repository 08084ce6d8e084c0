import { readFile, readlink, realpath } from 'node:fs/promises'
import { needProgram } from '../../../sdk/node/programs/run.js'
import { VICI } from '../settings/ipsec-conf.js'
import { runStarter, type ProgramOptions, type StarterEnd } from '../../../sdk/node/tunnels/programs.js'
import type { Standing } from '../../../sdk/node/tunnels/client.js'

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

/** An association that is being renewed carries packets until the new one does. */
const UP = /\bstate=(?:ESTABLISHED|INSTALLED|UPDATING|REKEYING|REKEYED)\b/

/** What `swanctl --list-sas --raw` says of a tunnel; undefined: it is not up. */
export const associationIn = (raw: string): SecurityAssociation | undefined => {
  // Each event is about one exchange of keys and, after its own fields, its children.
  const text = raw.split(/^list-sa event /m).find(event => {
    const [own = '', children = ''] = event.split(/\bchild-sas \{/)
    return UP.test(own) && UP.test(children)
  })
  if (text === undefined) return undefined
  return {
    gateway: /\bremote-host=(\S+)/.exec(text)?.[1] ?? '',
    addresses: listed(text, 'local-vips'),
    networks: [...new Set(listed(text, 'remote-ts'))],
    age: Number(/\bestablished=(\d+)/.exec(text)?.[1] ?? 0),
  }
}
