import { constants } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'
import { debianPackage, ownProgram } from '../programs/own-programs.js'

const NET_ADMIN = 12n

/** What this machine has of what tunnels need. */
export interface TunnelMachine {
  hasProgram(name: string): Promise<boolean>
  hasTun(): Promise<boolean>
  hasNetAdmin(): Promise<boolean>
  /** Whether the kernel itself speaks WireGuard. */
  hasWireguard(): Promise<boolean>
}
/** Something that this machine lacks to dial a tunnel. */
export interface MissingPart {
  what: 'program' | 'device' | 'privilege'
  name: string
  /** How to get it. */
  install: string
}
/** What something needs of the machine. */
export interface MachineNeeds {
  readonly programs: readonly string[]
  readonly tun?: boolean
  readonly netAdmin?: boolean
}

export const thisMachine: TunnelMachine = {
  hasProgram: async name => (await ownProgram(name)) !== undefined,
  hasTun: () =>
    open('/dev/net/tun', constants.O_RDWR).then(
      async handle => (await handle.close(), true),
      () => false,
    ),
  hasNetAdmin: async () => {
    const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
    const granted = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'
    return ((BigInt(`0x${granted}`) >> NET_ADMIN) & 1n) === 1n
  },
  hasWireguard: () =>
    stat('/sys/module/wireguard').then(
      () => true,
      () => false,
    ),
}

const TUN: MissingPart = {
  what: 'device',
  name: '/dev/net/tun',
  install: 'start the container with --device=/dev/net/tun',
}
const NET_ADMIN_MISSING: MissingPart = {
  what: 'privilege',
  name: 'CAP_NET_ADMIN',
  install: 'start the container with --cap-add=NET_ADMIN',
}

/** What this machine lacks of what something needs. */
export const missingParts = async (
  { programs, tun, netAdmin }: MachineNeeds,
  machine: TunnelMachine,
): Promise<MissingPart[]> => {
  const found = await Promise.all(programs.map(async name => ({ name, there: await machine.hasProgram(name) })))
  return [
    ...found
      .filter(({ there }) => !there)
      .map(({ name }): MissingPart => ({
        what: 'program',
        name,
        install: `apt-get install ${debianPackage(name)}`,
      })),
    ...(tun && !(await machine.hasTun()) ? [TUN] : []),
    ...(netAdmin && !(await machine.hasNetAdmin()) ? [NET_ADMIN_MISSING] : []),
  ]
}

/** What is missing, as a sentence. */
export const missingSentence = (missing: readonly MissingPart[]): string =>
  `this machine lacks ${missing.map(({ what, name, install }) => `the ${what} ${name} (${install})`).join(', and ')}`
