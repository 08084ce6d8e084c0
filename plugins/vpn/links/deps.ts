import type { Host } from '../../../sdk/index.js'
import type { TunnelClient } from '../../../sdk/node/tunnels/client.js'
import type { VpnSettings } from '../settings/settings.js'
import type { VpnMachine } from '../system/machine.js'
import type { VpnEntries } from './entries.js'
import type { LinkFolders } from './standing-file.js'

/** What tunnels are dialled and looked at with. */
export interface LinksDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'signal' | 'emit'>
  readonly entries: VpnEntries
  readonly folders: LinkFolders
  readonly machine: VpnMachine
  readonly clients: { readonly [provider in VpnSettings['provider']]: TunnelClient<never> }
}
