import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Contract } from '../../sdk/contract.js'
import { BUILD_FILE, type BuildInfo, type Shapes } from '../../sdk/build.js'
import type { KernelInfo } from '../../sdk/kernel.js'
import { packageVersion } from '../../sdk/node/programs/package.js'
import type { SandboxIdentity } from '../storage/identity.js'
import type { Boot } from '../boot.js'
import type { Group } from '../group.js'
import type { PluginManifest } from '../manifest.js'

/** The kernel's own routes, by operation id. */
export const OWN_ROUTES: { readonly [id: string]: string } = {
  'open.health': 'GET /health',
  'open.document': 'GET /openapi.json',
  'open.reference': 'GET /reference',
}

/** A group's manifest with its contract. */
export interface DescribedGroup {
  readonly manifest: PluginManifest
  readonly contract: Contract
}

/** Loads the contracts of groups without starting them. */
export const describedGroups = (groups: readonly Group[]): Promise<DescribedGroup[]> =>
  Promise.all(groups.map(async group => ({ manifest: group.manifest, contract: await group.contract() })))

/** Describes this daemon; computes the expensive parts on the first call and caches them. */
export const describeDaemon = (
  root: string,
  identity: SandboxIdentity,
  boot: Boot,
  groups: () => readonly Group[],
  wall: KernelInfo['wall'],
): (() => Promise<KernelInfo>) => {
  let fixed: Promise<Omit<KernelInfo, 'boot' | 'wall'>> | undefined
  return async () => {
    fixed ??= fixedPart(root, identity, groups())
    return { ...(await fixed), wall, boot: boot.progress() }
  }
}

const fixedPart = async (
  root: string,
  identity: SandboxIdentity,
  groups: readonly Group[],
): Promise<Omit<KernelInfo, 'boot' | 'wall'>> => {
  const { build, shapes } = JSON.parse(readFileSync(join(root, BUILD_FILE), 'utf8')) as BuildInfo
  const own = await Promise.all(
    groups.map(async group => {
      const of = shapes[group.manifest.entry] ?? (await shapesBy(root))(await group.contract())
      return Object.entries(group.manifest.routes).flatMap(([call, { id }]) => (of[call] ? [[id, of[call]]] : []))
    }),
  )
  const routes = [
    ...groups.flatMap(({ manifest }) => Object.values(manifest.routes).map(({ id }) => id)),
    ...Object.keys(OWN_ROUTES),
  ]
  const version = packageVersion(root)
  return { ...identity, version, build, routes: routes.sort(), shapes: Object.fromEntries(own.flat()) }
}

/** For a group that is not part of the program. */
const shapesBy = async (root: string): Promise<(contract: Contract) => Shapes> =>
  ((await import(pathToFileURL(join(root, 'openapi', 'shapes.js')).href)) as { shapesOf(contract: Contract): Shapes })
    .shapesOf
