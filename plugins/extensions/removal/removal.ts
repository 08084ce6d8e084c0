import { lstat, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal, refuse, type Context } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isClosed } from '../../../sdk/node/files/disk.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { inRealFolder } from '../../../sdk/node/files/real-folders.js'
import { record } from '../../../sdk/node/record/record.js'
import type { LoadedExtension } from '../listing/catalog.js'
import type { RemovalPlan } from '../listing/contract.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { WORKSPACE_EXTENSIONS, WORKSPACE_FOLDER } from '../listing/workspace-folder.js'
import { SETTINGS_FILE } from '../settings/extension-settings.js'
import type { KeptExtension } from '../records/kept-extension.js'

/** A folder that is being removed; no extension's folder begins so. */
const PARKED = '.removed-'

/** The effects of removing an extension. */
export const removalPlan = async (
  all: LoadedExtensions,
  id: string,
  updating: (id: string) => boolean,
): Promise<RemovalPlan> => {
  if (all.isBuiltin(id)) return builtinPlan(all, id)
  await all.refresh()
  const found = all.get(id)
  const { manifest, name, version, source } = found
  const { settings = [], processes = [], environment } = manifest.contributes ?? {}
  const stored = await all.values.stored(id)
  const secrets = await all.values.secretKeys(id)
  return {
    ...{ id, name, version, source },
    ...(updating(id) && { blocked: 'an update of it is being applied: wait until that is done' }),
    files: await filesOf(all, found),
    connections: await connectionsOf(all, found),
    settings: [
      ...Object.keys(stored).map(key => ({ key, secret: false })),
      ...secrets.map(key => ({ key, secret: true })),
    ].sort((one, other) => (one.key < other.key ? -1 : 1)),
    processes: processes.map(process => process.name),
    automations: await automationsOf(all, manifest.contributes?.listener?.provider),
    rebuildNeeded: environment !== undefined,
    keeps: [
      'files that it wrote into the workspace stay',
      ...(settings.length > 0 || source === 'workspace' ? [`other entries of ${SETTINGS_FILE} stay as they are`] : []),
    ],
  }
}

/**
 * The connections that have to do with it: the one that installed it and those made from its cards, which are nothing
 * without it, and those of cards that another extension offers too, which stay.
 */
const connectionsOf = async (all: LoadedExtensions, { id, manifest }: LoadedExtension) => {
  if (!(await all.host.serves('capabilities.records'))) return []
  const cards = manifest.contributes?.capabilities ?? []
  const link = all.kept.get(id)?.installed?.link
  const { capabilities } = await all.host.call('capabilities.records', { waiting: true })
  return capabilities.flatMap(({ id: name, kind, card = kind, brought = false, secrets }) => {
    const installed = name === link && kind === 'extension'
    if (!installed && !(brought && cards.some(own => own.id === card && own.kind === kind))) return []
    const effect = installed || offering(all, card) === id ? ('removed' as const) : ('stays' as const)
    return [{ id: name, kind, entry: card, secrets: [...secrets], effect }]
  })
}

/** The extension whose card of an id is the one that connections are made from. */
const offering = (all: LoadedExtensions, card: string): string | undefined => {
  const having = [...all.catalog.loaded.values()].filter(({ manifest }) =>
    manifest.contributes?.capabilities?.some(({ id }) => id === card),
  )
  return (having.find(({ id }) => all.runnable(id)) ?? having[0])?.id
}

/** The automations that start by messages of a provider. */
const automationsOf = async ({ host }: LoadedExtensions, provider: string | undefined): Promise<string[]> => {
  if (provider === undefined || !(await host.serves('automations.listening'))) return []
  return (await host.call('automations.listening', { provider })).automations.map(({ id }) => id)
}

const builtinPlan = (all: LoadedExtensions, id: string): RemovalPlan => {
  const { name, version } = all.groups.find(group => id === `sandbox.${group.name}`)!
  return {
    ...{ id, name, version, source: 'builtin', blocked: `${id} is built in and cannot be removed` },
    ...{ files: [], connections: [], settings: [], processes: [], automations: [], rebuildNeeded: false, keeps: [] },
  }
}

/** The folders that a removal deletes, in the daemon's data folder or the workspace. */
const foldersToRemove = (all: LoadedExtensions, id: string): { at: string; shown: string; detail: string }[] => [
  { at: join(all.codeFolder, id), shown: `code/${id}`, detail: 'the commits that are kept of it' },
  { at: join(all.devFolder, id), shown: `dev/${id}`, detail: 'the copy that it runs from' },
  { at: all.dataFolder(id), shown: `data/${id}`, detail: 'its data' },
]

const filesOf = async (all: LoadedExtensions, { id, source, shown, folder }: LoadedExtension) => {
  const files = source === 'workspace' ? [{ path: shown, detail: `${folder.files.size} files of the workspace` }] : []
  for (const { at, shown: path, detail } of foldersToRemove(all, id))
    if (await lstat(at).catch(() => undefined)) files.push({ path, detail })
  return files
}

/** Removes an extension with everything that the plan names. */
export const removeExtension = async (
  all: LoadedExtensions,
  id: string,
  updating: (id: string) => boolean,
  context: Context,
): Promise<{ ok: true; connections: string[]; rebuildNeeded: boolean }> => {
  if (all.isBuiltin(id)) refuse('conflict', `${id} is built in and cannot be removed`)
  if (updating(id)) refuse('conflict', `an update of ${id} is being applied: wait until that is done`)
  return all.turns.with(id, async () => {
    const { blocked, rebuildNeeded, connections: planned } = await removalPlan(all, id, updating)
    if (blocked !== undefined) refuse('conflict', blocked)
    await all.values.assertDroppable(
      id,
      planned.some(({ secrets, effect }) => effect === 'removed' && secrets.length > 0),
    )
    const connections = planned.flatMap(({ id: name, effect }) => (effect === 'removed' ? [name] : []))
    const { source, shown } = all.get(id)
    const before = all.kept.get(id) ?? { id, source, enabled: true }
    const folder = source === 'workspace' ? shown.slice(WORKSPACE_FOLDER.length + 1) : undefined
    const left = { ...(folder !== undefined && { folder }), ...(connections.length > 0 && { connections }) }
    const marked: KeptExtension = { ...before, removing: left }
    await all.kept.put(marked)
    failpoint('extensions.remove.marked')
    await finishRemoval(all, marked)
    await record(all.host, { type: 'extension.removed', outcome: 'ok', extra: { id } }, context)
    return { ok: true, connections, rebuildNeeded }
  })
}

/** Does the remaining steps of a started removal. */
const finishRemoval = async (all: LoadedExtensions, kept: KeptExtension): Promise<void> => {
  const { id, removing } = kept
  await all.converge(id)
  for (const connection of removing?.connections ?? []) await disconnect(all, connection)
  failpoint('extensions.remove.connections')
  try {
    await all.values.drop(id)
    failpoint('extensions.remove.settings')
    if (removing?.folder !== undefined) await removeWorkspaceFolder(all, removing.folder)
    failpoint('extensions.remove.folder')
    for (const { at } of foldersToRemove(all, id)) await rm(at, { recursive: true, force: true })
  } catch (error) {
    if (error instanceof Refusal || !isClosed(error)) throw error
    refuse('dependency', `a file of ${id} could not be removed (${codeOf(error)}): the next start tries again`)
  }
  await all.usage.drop(id)
  failpoint('extensions.remove.code')
  await all.kept.delete(id)
  await all.catalog.reload(id)
  await all.catalog.rescan()
  all.changed(id)
}

/** Removes a connection that is nothing without its extension. */
const disconnect = async ({ host }: LoadedExtensions, id: string): Promise<void> => {
  if (!(await host.serves('DELETE /capabilities/{id}'))) return
  await host.call('DELETE /capabilities/{id}', { id }).catch((error: unknown) => {
    if (!(error instanceof Refusal) || error.reason !== 'not-found') throw error
  })
}

/** Completes interrupted removals. */
export const recoverRemovals = async (all: LoadedExtensions): Promise<void> => {
  await inRealFolder(all.host.place.workspace, WORKSPACE_EXTENSIONS, {}, async at => {
    for (const name of await readdir(at))
      if (name.startsWith(PARKED)) await rm(join(at, name), { recursive: true, force: true })
  })
  for (const kept of all.kept.all()) {
    if (!kept.removing) continue
    await finishRemoval(all, kept).catch(error =>
      all.host.log.warn('finishing the removal of an extension failed', { id: kept.id, error: String(error) }),
    )
  }
}

const removeWorkspaceFolder = (all: LoadedExtensions, name: string): Promise<void | undefined> =>
  inRealFolder(all.host.place.workspace, WORKSPACE_EXTENSIONS, {}, async at => {
    const parked = join(at, PARKED + name)
    await rm(parked, { recursive: true, force: true })
    await rename(join(at, name), parked).catch(error => {
      if (codeOf(error) !== 'ENOENT') throw error
    })
    await flushFolder(at)
    await rm(parked, { recursive: true, force: true })
  })
