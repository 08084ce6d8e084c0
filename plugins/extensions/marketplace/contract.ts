import typia, { type tags } from 'typia'
import type { PluginList } from './plugin-list.js'

/** Where a listed item is fetched from. */
export interface MarketSource {
  url: string
  ref?: string
  path?: string
}
/** The installed item of that name. */
export interface MarketInstalled {
  id: string
  ref: string
}
/** One item of an index. */
export interface MarketEntry {
  name: string
  kind: 'extension' | 'plugin'
  description?: string
  version?: string
  trust: 'verified' | 'listed' | 'blocked'
  trustReason?: string
  securityFix?: boolean
  /** Whether it can be installed from here: an extension at a full commit that runs on this host and is not blocked. */
  admitted: boolean
  category?: string
  art?: string
  logo?: string
  icon?: string
  homepage?: string
  engines?: string
  /** Whether it is for this host. */
  compatible?: boolean
  /** Left out: this daemon cannot fetch it. */
  install?: MarketSource
  installed?: MarketInstalled
}
/** What an index offers. */
export interface Marketplace {
  name: string
  plugins: MarketEntry[]
}

/** Indexes of what can be installed. */
export interface MarketplaceCalls {
  /**
   * Read an index of extensions, or the list of plugins in a repository, as rows of one shape: verified ones first.
   *
   * The address is that of a `registry.json` (https, or http on this machine), a file of the workspace, or a git
   * repository, whose address ends with `.git` or is a folder of the workspace; there `registry.json` comes before
   * `.claude-plugin/marketplace.json`. Blocked items come last and are not admitted. Plugins are shown, and cannot be
   * installed yet. Nothing is stored; the token is sent for this read only.
   *
   * - 400: no address that is read here, or a token for one that is not https
   * - 413: the index has more than 5 MiB, or its repository more than 256 MiB
   * - 422: there is no index, or one that cannot be used
   * - 424: the server cannot be reached, or refused
   */
  'POST /capabilities/marketplace'(input: {
    url: string & tags.MinLength<1> & tags.MaxLength<2000>
    /** Sent as access token, over https or to this machine. */
    token?: string & tags.MinLength<1> & tags.MaxLength<1000> & tags.Format<'password'>
  }): Marketplace
}

/** Checks a list of plugins. */
export const checkPluginList = typia.misc.createValidatePrune<PluginList>()
