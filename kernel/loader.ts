import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { GroupSettings, LimitSettings, PreviewPlace, PublicPlace, WallGrants } from '../sdk/host.js'
import { Group } from './group.js'
import { parseManifest, type PluginManifest } from './manifest.js'
import { inOrder, levelsOf } from './permissions.js'
import type { KernelServices } from './services.js'
import { Waits } from './waits.js'

/** What a start gives to every group. */
export interface LoadOptions extends GroupSettings {
  /** The folder of the manifests. */
  readonly manifests: string
  /** The program's folder; the entries of manifests are relative to it. */
  readonly root: string
  readonly workspace: string
  readonly data: string
  /** Files and folders that no turn may see, besides the data folder. */
  readonly hidden: readonly string[]
  /** Files and folders that the deployment makes visible behind every wall. */
  readonly grants: WallGrants
  /** The deployment's limits for turns. */
  readonly limits: LimitSettings
  /** Where previews are served. */
  readonly previews: PreviewPlace
  /** Where public files and pages are served. */
  readonly publicPages: PublicPlace
  /** Load only these groups; default: all. */
  readonly only?: readonly string[]
  /** Groups that each run in a separate process, of the program in `root`. */
  readonly apart?: { readonly groups: readonly string[]; readonly root: string }
}

/** How long all groups together may take to save their work, in ms. */
const LAST_WORK = 8_000

/**
 * Declares every group of the manifest folder, each after those it needs, and starts those whose `boot` says so.
 *
 * Throws an error that names the group when a call it needs is not served, or when it fails to start.
 */
export const loadGroups = async (kernel: KernelServices, options: LoadOptions): Promise<Group[]> => {
  const { manifests: folder, only, apart, ...shared } = options
  const manifests = readManifests(folder).filter(({ name }) => !only || only.includes(name))
  // A group's folder is made when it starts.
  const ranBefore = new Set(readdirSync(shared.data))
  const waits = new Waits()
  const groups = inOrder(manifests).map(manifest => {
    const { name, entry } = manifest
    const from = apart?.groups.includes(name) ? apart : undefined
    const root = from?.root ?? shared.root
    const place = { ...shared, root, folder: join(shared.data, name), logs: join(shared.data, 'logs') }
    return new Group(manifest, { kernel, place, entry: join(root, entry), apart: from !== undefined, waits })
  })
  for (const group of groups) {
    const { name, routes, calls, domains, slowDomains, events = [], points = [] } = group.manifest
    const start = (by?: string) => group.start(by)
    kernel.calls.declare(name, [...Object.keys(routes), ...calls], start)
    kernel.events.declare(name, { events, points }, start, !ranBefore.has(name))
    kernel.live.declare(name, domains, slowDomains)
  }
  for (const { name, permissions } of manifests) {
    const missing = permissions.daemon.find(call => !kernel.calls.has(call))
    if (missing) throw new Error(`${name} cannot start: nothing serves ${missing}, which its manifest needs`)
  }
  const booting = groups.filter(({ manifest: { name, boot } }) => (boot === 'used' ? ranBefore.has(name) : boot))
  const started = await Promise.allSettled(booting.map(group => group.start()))
  const failed = started.find(result => result.status === 'rejected')
  if (!failed) return groups
  await stopGroups(groups)
  throw failed.reason
}

/** Stops groups, callers before the groups they call, with one deadline for all. */
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
