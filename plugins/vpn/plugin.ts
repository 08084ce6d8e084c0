import type { Contract, Host } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { assertTurnMay } from '../../sdk/node/access/turns/turn-asks.js'
import { usesConnection } from '../../sdk/node/access/turns/turn-connections.js'
import { FortinetClient } from './clients/fortinet.js'
import { IpsecClient } from './clients/ipsec.js'
import { OpenvpnClient } from '../../sdk/node/tunnels/openvpn.js'
import { WireguardClient } from '../../sdk/node/tunnels/wireguard.js'
import { vpnContract, type VpnCalls } from './contract.js'
import { examples } from './examples.js'
import { importedConnections } from './import/forticlient.js'
import { VPN_CONNECTIONS, vpnKindCalls } from './kind.js'
import { VPN_KIND, VpnEntries } from './links/entries.js'
import { Links } from './links/links.js'
import { LinkFolders } from './links/standing-file.js'
import { thisVpnMachine } from './system/machine.js'

export const contract: Contract<VpnCalls> = { ...vpnContract, examples }

const WATCH_MS = 10_000

/** Dials the tunnels that are set up as connections, and says how they are. */
export const activate = async (host: Host): Promise<void> => {
  const entries = new VpnEntries(host)
  const folders = new LinkFolders(host.place.folder)
  const clients = {
    wireguard: new WireguardClient(),
    openvpn: new OpenvpnClient(),
    ipsec: new IpsecClient(),
    fortinet: new FortinetClient(),
  }
  const links = new Links({ host, entries, folders, machine: thisVpnMachine, clients })
  host.signal.addEventListener('abort', () => clients.openvpn.leave(), { once: true })

  host.contribute('capabilities.kinds', () => [VPN_CONNECTIONS])
  host.on('daemon.ready', () => void links.recover().catch(error => host.log.error(String(error))))
  const changed = ({ id, kind }: { id: string; kind: string }): void => {
    if (kind !== VPN_KIND) return
    entries.forget(id)
    links.views.changed(id)
  }
  host.on('capability.connected', changed)
  host.on('capability.removed', changed)
  repeat(host, WATCH_MS, 'watching tunnels', () => links.watch())

  await host.serve(vpnContract, {
    ...vpnKindCalls({ links, entries, folders, machine: thisVpnMachine }),
    'GET /vpn': async (_, context) => {
      await assertTurnMay(host, context, { type: 'vpn', text: 'list the tunnels' })
      const all = await links.views.list()
      return { links: all.filter(({ id }) => usesConnection(context.caller, id)) }
    },
    'GET /vpn/{id}': async ({ id }) => links.views.detail(await entries.get(id)),
    'POST /vpn/{id}/connect': async ({ id, otp }, context) => {
      await assertTurnMay(host, context, { type: 'vpn', text: `connect ${id}` }, id)
      return links.connect(id, otp, context)
    },
    'POST /vpn/{id}/disconnect': async ({ id }, context) => {
      await assertTurnMay(host, context, { type: 'vpn', text: `disconnect ${id}` }, id)
      await entries.get(id)
      await links.drop(id, context)
      return { ok: true }
    },
    'POST /vpn/import-forticlient': async ({ xml }) => ({
      connections: importedConnections(xml, await entries.taken()),
    }),
    'vpn.links': async () => ({ links: await links.views.list() }),
  })
}
