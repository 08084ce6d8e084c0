import type { Host } from '../../../sdk/index.js'
import type { RangeFile } from '../catalogue/ranges.js'
import type { ExitClient } from '../clients/client.js'
import type { ExitProvider } from '../contract.js'
import type { ExitEntries } from './entries.js'
import type { ExitFolders } from './folders.js'
import type { ExitProxies } from './proxies.js'

/** What exits are started and looked at with. */
export interface ExitsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'signal' | 'emit'>
  readonly entries: Pick<ExitEntries, 'all' | 'find' | 'get' | 'setup'>
  readonly folders: ExitFolders
  readonly proxies: ExitProxies
  readonly clients: { readonly [provider in ExitProvider]: ExitClient<never> }
  readonly checks: readonly string[]
  readonly ranges: RangeFile
}
