import type { PluginManifest } from './manifest.js'
import type { Principal } from './calls.js'

/** A group as a caller: it acts as `sandbox:<group>`, except where it acts for the caller it serves. */
export const principalOf = ({ name, permissions }: PluginManifest): Principal => ({
  plugin: name,
  caller: { kind: 'plugin', actor: `sandbox:${name}`, role: 'owner' },
  needed: new Set(permissions.daemon),
  late: new Set(permissions.late),
})

/** Which group serves each call, by their manifests. */
const serversOf = (manifests: readonly PluginManifest[]): ReadonlyMap<string, PluginManifest> =>
  new Map(
    manifests.flatMap(manifest =>
      [...Object.keys(manifest.routes), ...manifest.calls].map(call => [call, manifest] as const),
    ),
  )

/** Sorts manifests so that each group comes after those whose calls it needs; throws on a cycle. */
export const inOrder = (manifests: readonly PluginManifest[]): PluginManifest[] => {
  const servers = serversOf(manifests)
  const ordered = new Set<PluginManifest>()
  const visit = (manifest: PluginManifest, above: readonly string[]): void => {
    if (ordered.has(manifest)) return
    const path = [...above, manifest.name]
    if (above.includes(manifest.name)) throw new Error(`these groups need each other: ${path.join(' → ')}`)
    for (const call of manifest.permissions.daemon) {
      const from = servers.get(call)
      if (from && from !== manifest) visit(from, path)
    }
    ordered.add(manifest)
  }
  for (const manifest of manifests) visit(manifest, [])
  return [...ordered]
}

/**
 * Groups manifests by when they stop: first the groups that no other needs, then those that only these need, and so on.
 */
export const levelsOf = (manifests: readonly PluginManifest[]): PluginManifest[][] => {
  const servers = serversOf(manifests)
  const depths = new Map(manifests.map(manifest => [manifest, 0]))
  for (const caller of inOrder(manifests).toReversed())
    for (const call of caller.permissions.daemon) {
      const from = servers.get(call)
      if (from && from !== caller) depths.set(from, Math.max(depths.get(from)!, depths.get(caller)! + 1))
    }
  return Object.values(Object.groupBy(manifests, manifest => depths.get(manifest)!)) as PluginManifest[][]
}
