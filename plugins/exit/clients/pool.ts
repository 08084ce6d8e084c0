import { readFile } from 'node:fs/promises'
import { missingParts } from '../../../sdk/node/tunnels/machine.js'
import { OpenvpnClient } from '../../../sdk/node/tunnels/openvpn.js'
import { MANAGEMENT } from '../../../sdk/node/tunnels/management.js'
import type { ExitCatalogues } from '../catalogue/catalogues.js'
import { builtIn, supplyOf } from '../catalogue/countries.js'
import { poolConf, type PoolServer } from '../catalogue/pool-list.js'
import type { PoolSettings } from '../settings/settings.js'
import type { TunnelKind, TunnelWay } from './tunnel-exits.js'

const COUNTRIES = 'JP KR TH US VN RU CA GB DE FR'

interface PoolWay extends TunnelWay {
  readonly packed: string
}

const wayOf = ({ host, ip, country, packed }: PoolServer): PoolWay => ({
  ...{ server: host, shown: `${host} (${ip})`, country, packed },
})

const supplied = (servers: readonly PoolServer[]) => supplyOf(servers.map(({ country }) => ({ country, weight: 1 })))

/** Exits through free servers of OpenVPN that a public list names. */
export const poolKind = (catalogues: Pick<ExitCatalogues, 'pool'>): TunnelKind<PoolSettings, PoolWay> => {
  const client = new OpenvpnClient()
  return {
    client,
    bare: true,
    missing: machine => missingParts({ programs: ['openvpn', 'ip'], tun: true, netAdmin: true }, machine),
    ways: async () => (await catalogues.pool.list()).items.map(wayOf),
    known: async () => {
      const held = await catalogues.pool.fresh()
      return held && supplied(held.items).map(({ country }) => country)
    },
    countries: async () => {
      const held = await catalogues.pool.list().catch(() => undefined)
      return held
        ? { countries: supplied(held.items), live: held.live }
        : { countries: builtIn(COUNTRIES), live: false }
    },
    dial: async (way, { id, folder, log, signal }, { interface: name, started }) =>
      client.dial({
        ...{ id, interface: name, folder, log, signal, started },
        settings: { conf: poolConf(way), only: [], bare: true },
      }),
    isAlive: async ({ pid, interface: name = '' }) => {
      const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
      return words.includes(MANAGEMENT) && words[words.indexOf('--dev') + 1] === name
    },
  }
}
