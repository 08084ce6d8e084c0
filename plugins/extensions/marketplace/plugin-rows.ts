import { posix } from 'node:path'
import type { MarketEntry, MarketSource } from './contract.js'
import type { ListedSource, PluginList } from './plugin-list.js'

/** Where a list of plugins is in a repository. */
export const PLUGIN_LIST_FILE = '.claude-plugin/marketplace.json'

/** The repository that a list was read from. */
export interface ListOrigin {
  readonly url: string
  readonly commit: string
}

/** Where a plugin is fetched from; undefined: not with git, or its list is in no repository. */
const sourceOf = (
  source: string | ListedSource,
  root: string,
  origin: ListOrigin | undefined,
): MarketSource | undefined => {
  if (typeof source === 'string') {
    const path = posix.normalize(posix.join(root, source)).replace(/\/$/, '')
    if (!origin || path.startsWith('..') || posix.isAbsolute(path)) return undefined
    return { url: origin.url, ref: origin.commit, ...(path !== '.' && { path }) }
  }
  const { repo, url, path, sha, ref } = source
  const found = source.source === 'github' && repo !== undefined ? `https://github.com/${repo}.git` : url
  const commit = sha ?? ref
  return found === undefined
    ? undefined
    : { url: found, ...(commit !== undefined && { ref: commit }), ...(path !== undefined && { path }) }
}

/** The rows of a list of plugins. */
export const pluginRows = (
  { plugins, metadata }: PluginList,
  origin: ListOrigin | undefined,
  isFetched: (url: string) => boolean,
): MarketEntry[] =>
  plugins.map(({ name, source, ...shown }) => {
    const install = sourceOf(source, metadata?.pluginRoot ?? '', origin)
    return {
      name,
      kind: 'plugin',
      ...shown,
      trust: 'listed',
      admitted: false,
      ...(install && isFetched(install.url) && { install }),
    }
  })
