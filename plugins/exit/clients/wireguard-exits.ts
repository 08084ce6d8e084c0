import { join } from 'node:path'
import { readJson, writeAtomic } from '../../../sdk/node/files/files.js'
import { interfaceExists } from '../../../sdk/node/tunnels/interfaces.js'
import { missingParts } from '../../../sdk/node/tunnels/machine.js'
import { WireguardClient } from '../../../sdk/node/tunnels/wireguard.js'
import { supplyOf } from '../catalogue/countries.js'
import type { WireguardExitSettings } from '../settings/settings.js'
import type { WireguardPart } from '../settings/wireguard-parts.js'
import type { TunnelKind, TunnelWay } from './tunnel-exits.js'

interface WireguardWay extends TunnelWay {
  readonly part: WireguardPart
}

/** The countries in which configurations without a label were seen, by their keys. */
type Learned = { readonly [key: string]: string }

const fileIn = (folder: string): string => join(folder, 'learned.json')

const learnedIn = async (folder: string): Promise<Learned> => (await readJson<Learned>(fileIn(folder))) ?? {}

const waysOf = async ({ parts }: WireguardExitSettings, folder: string): Promise<WireguardWay[]> => {
  const learned = await learnedIn(folder)
  return parts.map(part => {
    const country = part.country ?? (Object.hasOwn(learned, part.key) ? learned[part.key] : undefined)
    return { server: part.key, shown: part.server, part, ...(country !== undefined && { country }) }
  })
}

/** Exits through WireGuard, with configurations of one's own. */
export const wireguardKind = (): TunnelKind<WireguardExitSettings, WireguardWay> => {
  const client = new WireguardClient()
  const countriesOf = async (setup: WireguardExitSettings, folder: string) =>
    supplyOf((await waysOf(setup, folder)).flatMap(({ country }) => (country ? [{ country, weight: 1 }] : [])))
  return {
    client,
    bare: false,
    missing: async machine => {
      const userSpace = !(await machine.hasWireguard())
      const programs = ['wg-quick', 'wg', 'ip', ...(userSpace ? ['wireguard-go'] : [])]
      return missingParts({ programs, tun: userSpace, netAdmin: true }, machine)
    },
    ways: waysOf,
    // One that is not known yet may be in any country.
    known: async (setup, folder) => {
      const ways = await waysOf(setup, folder)
      const isOpen = ways.some(({ country }) => country === undefined)
      return isOpen ? undefined : [...new Set(ways.flatMap(({ country }) => country ?? []))]
    },
    countries: async (setup, folder) => ({ countries: setup ? await countriesOf(setup, folder) : [], live: true }),
    dial: async ({ part }, { id, folder, log, signal }, { interface: name, started }) => {
      const { dns } = await client.dial({
        ...{ id, interface: name, folder, log, signal, started, settings: { conf: part.conf } },
      })
      return { dns, address: part.address }
    },
    isAlive: ({ interface: name = '' }) => interfaceExists(name),
    seen: async ({ server = '', folder }, country) => {
      const learned = await learnedIn(folder)
      if (learned[server] !== country)
        await writeAtomic(fileIn(folder), JSON.stringify({ ...learned, [server]: country }))
    },
  }
}
