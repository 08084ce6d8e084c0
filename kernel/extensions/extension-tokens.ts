import type { ExtensionReach } from '../../sdk/kernel.js'
import { refuse } from '../../sdk/refusal.js'
import { patternFor, routePattern, type RoutePattern } from '../../sdk/route-pattern.js'
import type { Caller } from '../../sdk/types.js'

/** What the credential of a running process of an extension stands for. */
export interface ExtensionToken {
  readonly id: string
  readonly extension: string
  /** The entries of its manifest for each route that these reach, by the route's operation id. */
  readonly reach: ReadonlyMap<string, readonly RoutePattern[]>
}

/** A route that is asked for, with the request that asks. */
export interface AskedRoute {
  readonly id: string
  readonly method: string
  /** The raw path of the request, which was matched already. */
  readonly path: string
}

/** What the credential of a process stands for. */
export const extensionToken = (id: string, extension: string, reach: readonly ExtensionReach[]): ExtensionToken => ({
  ...{ id, extension },
  reach: new Map(reach.map(({ route, entries }) => [route, entries.flatMap(each => routePattern(each) ?? [])])),
})

/** The caller that a process is for a route, and the entry that says so; refuses where no entry of it holds. */
export const reachedBy = (
  { id, extension, reach }: ExtensionToken,
  { id: route, method, path }: AskedRoute,
): { readonly caller: Caller; readonly entry: string } => {
  const segments = path.split('/').slice(1).map(decodeURIComponent)
  const found =
    patternFor(reach.get(route) ?? [], method, segments)
    ?? refuse('forbidden', `${extension} may not call ${route}: permissions.daemon of its manifest does not reach it`)
  // An entry with a wildcard does not reach what maintainers do.
  const role = found.named ? 'maintainer' : 'collaborator'
  return { caller: { kind: 'extension', actor: `extension:${extension}`, role, tokenId: id }, entry: found.entry }
}
