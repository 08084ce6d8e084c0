import type { Host } from '../../../sdk/index.js'
import { permissionsOf, permissionsOfKind } from '../../../sdk/node/extension/permission-kinds.js'
import type { ExtensionReach, GroupRoute } from '../../../sdk/kernel.js'
import type { ExtensionManifest } from '../manifest/manifest.js'
import { listenerEntries } from '../listeners/routes.js'
import { entryCovers } from '../manifest/route-entries.js'
import { isReachable, isWildReachable, showsTranscripts } from '../manifest/trust-surface.js'
import { ignored } from '../../../sdk/index.js'

/** What a program needs to call the daemon; `end` makes its credential invalid. */
export interface DaemonAccess {
  readonly env: { readonly [name: string]: string }
  readonly end: () => void
}

/** The routes that the processes of an extension may call, with the entries of its manifest that reach them. */
export const routesReached = (
  { permissions: { daemon = [], sandbox = [] } = {} }: ExtensionManifest,
  routes: readonly GroupRoute[],
): ExtensionReach[] => {
  const entries = permissionsOfKind(permissionsOf('daemon', daemon), 'route')
  if (entries.length === 0) return []
  const transcripts = permissionsOf('sandbox', sandbox).some(({ kind }) => kind === 'conversation')
  return routes.flatMap(route => {
    if (!isReachable(route) || (showsTranscripts(route) && !transcripts)) return []
    const reaching = entries.filter(
      ({ pattern }) => entryCovers(pattern, route.call) && (pattern.named || isWildReachable(route)),
    )
    return reaching.length === 0 ? [] : [{ route: route.id, entries: reaching.map(({ entry }) => entry) }]
  })
}

/** The variables with which a program calls the daemon as its extension; nothing where its manifest names no call. */
export const daemonAccess = async (
  host: Host,
  { id, manifest }: { readonly id: string; readonly manifest: ExtensionManifest },
  routes: readonly GroupRoute[],
): Promise<DaemonAccess> => {
  const { listener: received } = manifest.contributes ?? {}
  const reach = [
    ...routesReached(manifest, routes),
    ...(received ? [{ route: 'extensions.listen', entries: listenerEntries(received.provider) }] : []),
  ]
  const { listeners } = reach.length > 0 ? await host.call('kernel.listeners') : { listeners: [] }
  const [listener] = listeners
  if (!listener) return { env: {}, end: () => {} }
  const minted = await host.call('kernel.extension.mint', { extension: id, reach })
  return {
    env: { SANDBOX_DAEMON: addressOf(listener), SANDBOX_EXTENSION_TOKEN: minted.token },
    end: () =>
      void host
        .call('kernel.extension.end', { id: minted.id })
        .catch(ignored('a daemon that stops has no credentials any more')),
  }
}

/** The address of a listener from this machine. */
const addressOf = ({ host, port }: { readonly host: string; readonly port: number }): string => {
  const near = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${near.includes(':') ? `[${near}]` : near}:${port}`
}
