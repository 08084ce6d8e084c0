import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { LimitSettings, ModelSettings, WallGrants } from '../sdk/host.js'
import { Group } from './group.js'
import { parseManifest, type PluginManifest } from './manifest.js'
import { inOrder, levelsOf } from './permissions.js'
import type { KernelServices } from './services.js'
import { Waits } from './waits.js'

export interface LoadOptions {
  /** The folder of the manifests. */
  readonly manifests: string
  /** Where the program is: entries of manifests count from here. */
  readonly root: string
  readonly workspace: string
  readonly data: string
  /** Files and folders beside the data folder that no turn may see. */
  readonly hidden: readonly string[]
  /** What the deployment shows behind every wall. */
  readonly grants: WallGrants
  /** What the deployment says of the limits of turns. */
  readonly limits: LimitSettings
  /** What the deployment says of models. */
  readonly models?: ModelSettings
  /** Only these groups; left out: all. */
  readonly only?: readonly string[]
  /** Groups to run in processes of their own. */
  readonly apart?: readonly string[]
}

/** How long all groups together may take to bring their work to a safe place, in ms. */
const LAST_WORK = 8_000

/**
 * Declares every group whose manifest is there, each after those it needs, and starts the ones with `boot`.
 *
 * A manifest that needs what nobody serves, and a group that cannot start, stop the start by name.
 */
export const loadGroups = async (kernel: KernelServices, options: LoadOptions): Promise<Group[]> => {
  const { root, only, apart = [], workspace, data, hidden, grants, limits, models } = options
  const manifests = readManifests(options.manifests).filter(({ name }) => !only || only.includes(name))
  const waits = new Waits()
  const groups = inOrder(manifests).map(manifest => {
    const { name } = manifest
    const place = { workspace, data, folder: join(data, name), root, hidden, grants, limits, ...(models && { models }) }
    return new Group(manifest, { kernel, place, entry: join(root, manifest.entry), apart: apart.includes(name), waits })
  })
  for (const group of groups) {
    const { name, routes, calls, domains, slowDomains, events = [], points = [] } = group.manifest
    const start = (by?: string) => group.start(by)
    kernel.calls.declare(name, [...Object.keys(routes), ...calls], start)
    kernel.events.declare(name, { events, points }, start)
    kernel.live.declare(name, domains, slowDomains)
  }
  for (const { name, permissions } of manifests) {
    const missing = permissions.daemon.find(call => !kernel.calls.has(call))
    if (missing) throw new Error(`${name} cannot start: nothing serves ${missing}, which its manifest needs`)
  }
  const started = await Promise.allSettled(groups.filter(({ manifest }) => manifest.boot).map(group => group.start()))
  const failed = started.find(result => result.status === 'rejected')
  if (!failed) return groups
  await stopGroups(groups)
  throw failed.reason
}

/** Stops groups, callers before those they need, within one deadline for all. */
export const stopGroups = async (groups: readonly Group[]): Promise<void> => {
  const end = Date.now() + LAST_WORK
  const levels = levelsOf(groups.map(({ manifest }) => manifest))
  for (const level of levels)
    await Promise.allSettled(
      groups.filter(({ manifest }) => level.includes(manifest)).map(group => group.stop(Math.max(0, end - Date.now()))),
    )
}

/** Every manifest of a folder, by name. */
export const readManifests = (folder: string): PluginManifest[] => {
  const files = readdirSync(folder).filter(file => file.endsWith('.json') && file !== 'schema.json')
  return files.sort().map(file => parseManifest(readFileSync(join(folder, file), 'utf8'), file))
}
