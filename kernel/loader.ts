import { readFile, readdir, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isRoute, type Contract } from '../sdk/contract.js'
import { createHost, type Activate, type LimitSettings, type Place, type WallGrants } from '../sdk/host.js'
import { KERNEL } from './events.js'
import { parseManifest, type PluginManifest } from './manifest.js'
import { inOrder, principalOf } from './permissions.js'
import { activateApart } from './process.js'
import { PluginLink, type KernelServices } from './services.js'

/** A group that is up. */
export interface LoadedPlugin {
  readonly manifest: PluginManifest
  readonly contract: Contract
  /** Brings the group's work to a safe place, then switches it off. */
  stop(): Promise<void>
}

interface PluginModule {
  readonly contract: Contract
  readonly activate: Activate
}

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
  /** Only these groups; left out: all. */
  readonly only?: readonly string[]
  /** Groups to run in processes of their own. */
  readonly apart?: readonly string[]
}

const DEADLINE = 20_000
const LAST_WORK = 8_000

/**
 * Activates every group whose manifest is there, those it needs first; a group that cannot start stops the start by
 * name.
 */
export const loadPlugins = async (kernel: KernelServices, options: LoadOptions): Promise<LoadedPlugin[]> => {
  const { root, only, apart = [] } = options
  const manifests = (await readManifests(options.manifests)).filter(({ name }) => !only || only.includes(name))
  const loaded: LoadedPlugin[] = []
  for (const manifest of inOrder(manifests)) {
    const { name } = manifest
    const entry = join(root, manifest.entry)
    const { workspace, data, hidden, grants, limits } = options
    const place: Place = { workspace, data, folder: join(data, name), root, hidden, grants, limits }
    try {
      await mkdir(place.folder, { recursive: true, mode: 0o700 })
      const module = (await import(pathToFileURL(entry).href)) as PluginModule
      kernel.calls.describe(name, module.contract)
      kernel.live.declare(name, manifest.domains)
      const activated = apart.includes(name)
        ? activateApart(kernel, manifest, entry, place)
        : activateHere(kernel, manifest, module.activate, place)
      const stop = await within(DEADLINE, activated, `did not start within ${DEADLINE / 1000} s`)
      agree(manifest, kernel.calls.servedBy(name))
      loaded.push({ manifest, contract: module.contract, stop })
    } catch (error) {
      await stopAll(loaded)
      throw new Error(`${name} cannot start: ${error instanceof Error ? error.message : error}`, { cause: error })
    }
  }
  for (const { name, permissions } of manifests) {
    const missing = permissions.daemon.find(call => !kernel.calls.has(call))
    if (!missing) continue
    await stopAll(loaded)
    throw new Error(`${name} cannot start: nothing serves ${missing}, which its manifest needs`)
  }
  return loaded
}

/** Switches groups off, callers before those they need. */
export const stopAll = async (plugins: readonly LoadedPlugin[]): Promise<void> => {
  for (const plugin of plugins.toReversed()) await plugin.stop()
}

/** Every manifest of a folder, by name. */
export const readManifests = async (folder: string): Promise<PluginManifest[]> => {
  const files = (await readdir(folder)).filter(file => file.endsWith('.json') && file !== 'schema.json').sort()
  return Promise.all(files.map(async file => parseManifest(await readFile(join(folder, file), 'utf8'), file)))
}

const activateHere = async (
  kernel: KernelServices,
  manifest: PluginManifest,
  activate: Activate,
  place: Place,
): Promise<() => Promise<void>> => {
  const { name } = manifest
  const { host, answer } = createHost(name, place, {
    request: (call, input, with_) => link.request(call, input, with_),
  })
  const link = new PluginLink(kernel, principalOf(manifest), answer)
  await activate(host)
  return async () => {
    await within(LAST_WORK, answer('plugin.stopping', {}, KERNEL), 'took too long to stop').catch(error =>
      kernel.log(name).warn(String(error)),
    )
    await answer('plugin.stop', {}, KERNEL)
    kernel.events.drop(name)
    kernel.calls.drop(name)
  }
}

/** A manifest gives access to exactly the routes its group serves. */
const agree = ({ routes }: PluginManifest, served: readonly string[]): void => {
  const routed = served.filter(isRoute)
  for (const call of routed)
    if (!(call in routes)) throw new Error(`it serves ${call}, which has no access in its manifest`)
  for (const call of Object.keys(routes))
    if (!routed.includes(call)) throw new Error(`its manifest names ${call}, which it does not serve`)
}

const within = async <T>(ms: number, work: Promise<T>, sentence: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new Error(sentence)), ms)))
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
