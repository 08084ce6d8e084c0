import type { Context, Contract, Host } from '../../sdk/index.js'
import { assertTurnMay } from '../../sdk/node/access/turns/turn-asks.js'
import { usesConnection } from '../../sdk/node/access/turns/turn-connections.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { thisMachine } from '../../sdk/node/tunnels/machine.js'
import { ExitCatalogues } from './catalogue/catalogues.js'
import { RangeFile } from './catalogue/ranges.js'
import { OnionClient } from './clients/onion.js'
import { poolKind } from './clients/pool.js'
import { TunnelExits } from './clients/tunnel-exits.js'
import { wireguardKind } from './clients/wireguard-exits.js'
import { exitContract, type ExitCalls } from './contract.js'
import { examples } from './examples.js'
import { ExitEntries, EXIT_KIND } from './exits/entries.js'
import { Exits } from './exits/exits.js'
import { ExitFolders } from './exits/folders.js'
import { ExitProxies } from './exits/proxies.js'
import { EXIT_CONNECTIONS, exitKindCalls } from './kind.js'
import { CHECKS } from './proxy/check.js'

export const contract: Contract<ExitCalls> = { ...exitContract, examples }

const WATCH_MS = 10_000
const GUARD_MS = 5 * 60_000

/** Starts the exits that are set up as connections, and says how they are. */
export const activate = async (host: Host): Promise<void> => {
  const { checks = CHECKS, torrc = [], ranges: file } = host.place.exit ?? {}
  const entries = new ExitEntries(host)
  const folders = new ExitFolders(host.place.folder)
  const proxies = new ExitProxies(host)
  const ranges = new RangeFile(file)
  const catalogues = new ExitCatalogues(host)
  const clients = {
    onion_router: new OnionClient({ machine: thisMachine, catalogues, ranges, torrc }),
    public_vpn_pool: new TunnelExits(poolKind(catalogues), thisMachine),
    wireguard: new TunnelExits(wireguardKind(), thisMachine),
  }
  const exits = new Exits({ host, entries, folders, proxies, clients, checks, ranges })
  host.signal.addEventListener(
    'abort',
    () => {
      clients.public_vpn_pool.leave()
      proxies.close()
    },
    { once: true },
  )

  host.contribute('capabilities.kinds', () => [EXIT_CONNECTIONS])
  host.on('daemon.ready', () => void exits.recover().catch(error => host.log.error(String(error))))
  const changed = ({ id, kind }: { id: string; kind: string }): void => {
    if (kind === EXIT_KIND) exits.views.changed(id)
  }
  host.on('capability.connected', changed)
  host.on('capability.removed', changed)
  repeat(host, WATCH_MS, 'watching exits', () => exits.watch())
  repeat(host, GUARD_MS, 'looking at the routes of exits', () => exits.guard())

  const admit = (context: Context, text: string, id?: string): Promise<void> =>
    assertTurnMay(host, context, { type: 'exit', text }, id)

  await host.serve(exitContract, {
    ...exitKindCalls({ exits, entries, folders }),
    'GET /exit': async (_, context) => {
      await admit(context, 'list the exits')
      const all = await exits.views.list()
      return { links: all.filter(({ id }) => usesConnection(context.caller, id)) }
    },
    'GET /exit/{id}/countries': async ({ id }, context) => {
      await admit(context, `list the countries of ${id}`, id)
      return exits.countries(id)
    },
    'POST /exit/{id}/start': async ({ id }, context) => {
      await admit(context, `start ${id}`, id)
      return exits.start(id, context)
    },
    'POST /exit/{id}/use': async ({ id, country }, context) => {
      await admit(context, `move ${id} to ${country?.toUpperCase() ?? 'any country'}`, id)
      return exits.use(id, country?.toUpperCase(), context)
    },
    'POST /exit/{id}/rotate': async ({ id }, context) => {
      await admit(context, `take another address for ${id}`, id)
      return exits.rotate(id, context)
    },
    'POST /exit/{id}/check': async ({ id }, context) => {
      await admit(context, `check ${id}`, id)
      return exits.check(id)
    },
    'POST /exit/{id}/stop': async ({ id }, context) => {
      await admit(context, `stop ${id}`, id)
      await entries.get(id)
      await exits.stop(id, context)
      return { ok: true }
    },
    'exit.proxyFor': async ({ id }) => ({ port: await exits.proxyFor(id) }),
    'exit.proxies': async () => ({ ports: await exits.ports() }),
  })
}
