import { constants } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'
import { debianPackage, ownProgram } from '../../../sdk/node/programs/own-programs.js'
import type { VpnMissing } from '../contract.js'
import type { VpnSettings } from '../settings/settings.js'
import { isEverything } from '../settings/networks.js'

const NET_ADMIN = 12n
/** Where distributions keep the plugins of strongSwan. */
const LIBIPSEC = ['/usr/lib/ipsec', '/usr/lib/strongswan', '/usr/lib64/strongswan'].map(
  folder => `${folder}/plugins/libstrongswan-kernel-libipsec.so`,
)

/** What this machine has of what tunnels need. */
export interface TunnelMachine {
  hasProgram(name: string): Promise<boolean>
  hasTun(): Promise<boolean>
  hasNetAdmin(): Promise<boolean>
  /** Whether strongSwan has its plugin for ESP in user space. */
  hasLibipsec(): Promise<boolean>
  /** Whether the kernel itself speaks WireGuard. */
  hasWireguard(): Promise<boolean>
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
  hasLibipsec: async () => {
    const found = await Promise.all(
      LIBIPSEC.map(path =>
        stat(path).then(
          () => true,
          () => false,
        ),
      ),
    )
    return found.includes(true)
  },
  hasWireguard: () =>
    stat('/sys/module/wireguard').then(
      () => true,
      () => false,
    ),
}

const TUN: VpnMissing = {
  what: 'device',
  name: '/dev/net/tun',
  install: 'start the container with --device=/dev/net/tun',
}
const NET_ADMIN_MISSING: VpnMissing = {
  what: 'privilege',
  name: 'CAP_NET_ADMIN',
  install: 'start the container with --cap-add=NET_ADMIN',
}

/** What a tunnel needs; without settings, what every tunnel of the provider does. */
const needsOf = async (
  provider: VpnSettings['provider'],
  settings: VpnSettings | undefined,
  machine: TunnelMachine,
): Promise<{ programs: string[]; tun: boolean }> => {
  if (provider === 'ipsec')
    return {
      programs: ['swanctl', 'charon-systemd', 'ip', ...((await machine.hasLibipsec()) ? [] : ['kernel-libipsec'])],
      tun: true,
    }
  if (provider === 'fortinet') return { programs: ['openconnect', 'ip'], tun: true }
  if (provider === 'openvpn') return { programs: ['openvpn', 'ip'], tun: true }
  const userSpace = !(await machine.hasWireguard())
  const conf = settings?.provider === 'wireguard' ? settings.conf : undefined
  const filters = conf && isEverything(conf.networks) && !(await machine.hasProgram('nft')) ? ['iptables'] : []
  return {
    programs: [
      ...['wg-quick', 'wg', 'ip'],
      ...(userSpace ? ['wireguard-go'] : []),
      ...(conf && conf.dns.length > 0 ? ['resolvconf'] : []),
      ...filters,
    ],
    tun: userSpace,
  }
}

/** What this machine lacks to dial a tunnel. */
export const missingFor = async (
  provider: VpnSettings['provider'],
  settings: VpnSettings | undefined,
  machine: TunnelMachine,
): Promise<VpnMissing[]> => {
  const { programs, tun } = await needsOf(provider, settings, machine)
  const found = await Promise.all(programs.map(async name => ({ name, there: await machine.hasProgram(name) })))
  return [
    ...found
      .filter(({ there }) => !there)
      .map(({ name }): VpnMissing => ({
        what: 'program',
        name,
        install: `apt-get install ${debianPackage(name)}`,
      })),
    ...(tun && !(await machine.hasTun()) ? [TUN] : []),
    ...((await machine.hasNetAdmin()) ? [] : [NET_ADMIN_MISSING]),
  ]
}

/** What is missing, as a sentence. */
export const missingSentence = (missing: readonly VpnMissing[]): string =>
  `this machine lacks ${missing.map(({ what, name, install }) => `the ${what} ${name} (${install})`).join(', and ')}`
