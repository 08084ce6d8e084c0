import { stat } from 'node:fs/promises'
import { missingParts, thisMachine, type MachineNeeds, type TunnelMachine } from '../../../sdk/node/tunnels/machine.js'
import { isEverything } from '../../../sdk/node/tunnels/networks.js'
import type { VpnMissing } from '../contract.js'
import type { VpnSettings } from '../settings/settings.js'

/** Where distributions keep the plugins of strongSwan. */
const LIBIPSEC = ['/usr/lib/ipsec', '/usr/lib/strongswan', '/usr/lib64/strongswan'].map(
  folder => `${folder}/plugins/libstrongswan-kernel-libipsec.so`,
)

/** What this machine has of what the tunnels of this group need. */
export interface VpnMachine extends TunnelMachine {
  /** Whether strongSwan has its plugin for ESP in user space. */
  hasLibipsec(): Promise<boolean>
}

export const thisVpnMachine: VpnMachine = {
  ...thisMachine,
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
}

/** What a tunnel needs; without settings, what every tunnel of the provider does. */
const needsOf = async (
  provider: VpnSettings['provider'],
  settings: VpnSettings | undefined,
  machine: VpnMachine,
): Promise<MachineNeeds> => {
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
  machine: VpnMachine,
): Promise<VpnMissing[]> => missingParts({ ...(await needsOf(provider, settings, machine)), netAdmin: true }, machine)
