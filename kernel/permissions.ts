import { isRoute } from '../sdk/contract.js'
import type { PluginManifest } from './manifest.js'
import type { Principal } from './calls.js'

/** A group as a caller: it acts as `sandbox:<group>` unless it passes on whom it serves. */
export const principalOf = ({ name, permissions }: PluginManifest): Principal => ({
  plugin: name,
  caller: { kind: 'plugin', actor: `sandbox:${name}`, role: 'owner' },
  needed: new Set(permissions.daemon),
  late: new Set(permissions.late),
})

/** Whether a group serves a call, by its manifest. */
const serves = ({ calls, routes }: PluginManifest, call: string): boolean =>
  isRoute(call) ? call in routes : calls.includes(call)

/** Manifests in an order in which every group comes after those whose calls it needs; a cycle among them is refused. */
export const inOrder = (manifests: readonly PluginManifest[]): PluginManifest[] => {
  const ordered = new Set<PluginManifest>()
  const visit = (manifest: PluginManifest, above: readonly string[]): void => {
    if (ordered.has(manifest)) return
    const path = [...above, manifest.name]
    if (above.includes(manifest.name)) throw new Error(`these groups need each other: ${path.join(' → ')}`)
    for (const call of manifest.permissions.daemon) {
      const from = manifests.find(one => serves(one, call))
      if (from && from !== manifest) visit(from, path)
    }
    ordered.add(manifest)
  }
  for (const manifest of manifests) visit(manifest, [])
  return [...ordered]
}

/** Manifests by who is stopped first: the groups nobody needs, then those that only these need, and so on. */
export const levelsOf = (manifests: readonly PluginManifest[]): PluginManifest[][] => {
  const levels: PluginManifest[][] = []
  const depths = new Map<PluginManifest, number>()
  for (const manifest of inOrder(manifests).toReversed()) {
    const callers = manifests.filter(
      other => other !== manifest && other.permissions.daemon.some(call => serves(manifest, call)),
    )
    const depth = Math.max(0, ...callers.map(caller => depths.get(caller)! + 1))
    depths.set(manifest, depth)
    ;(levels[depth] ??= []).push(manifest)
  }
  return levels
}
