import { refuse, type Handlers } from '../../../sdk/index.js'
import type { BackgroundPrograms } from '../backend/background.js'
import type { LoadedExtension } from '../listing/catalog.js'
import { noExtension, type LoadedExtensions } from '../listing/loaded-extensions.js'
import type { ExtensionProcess } from '../manifest/manifest.js'
import type { ProcessCalls } from './contract.js'
import type { ExtensionProcesses } from './extension-processes.js'

const declaredNamed = async (
  all: LoadedExtensions,
  id: string,
  name: string,
): Promise<{ readonly found: LoadedExtension; readonly declared: ExtensionProcess }> => {
  await all.refresh()
  const found = all.kept.get(id)?.removing ? noExtension(id) : all.get(id)
  const declared = found.manifest.contributes?.processes?.find(each => each.name === name)
  return { found, declared: declared ?? refuse('not-found', `${id} declares no process ${name}`) }
}

/** The background programs of all extensions, which only approved and enabled ones may start. */
export const backgroundPrograms = (all: LoadedExtensions, processes: ExtensionProcesses): BackgroundPrograms => ({
  status: async (id, name) => {
    await declaredNamed(all, id, name)
    return processes.status(id, name)
  },
  start: async (id, name) => {
    const { found, declared } = await declaredNamed(all, id, name)
    if (!found.compatible) refuse('conflict', `${id} is for another host`)
    if (!all.isEnabled(id)) refuse('conflict', `${id} is switched off: switch it on first`)
    if (all.isPending(found)) refuse('conflict', `${id} waits for approval: approve its powers first`)
    const runnable = all.runnable(id) ?? refuse('unavailable', 'the sandbox is starting', { retryAfter: 1 })
    await processes.start(await all.asRunnable(runnable), declared)
  },
  stop: async (id, name) => {
    await declaredNamed(all, id, name)
    await processes.stop(id, name)
  },
  onExit: (id, listener) => processes.onExit(id, listener),
})

/** Serves the background programs. */
export const processCalls = (programs: BackgroundPrograms): Handlers<ProcessCalls> => ({
  'GET /extensions/{id}/processes/{name}': ({ id, name }) => programs.status(id, name),
  'POST /extensions/{id}/processes/{name}/start': async ({ id, name }) => {
    await programs.start(id, name)
    return { ok: true }
  },
  'POST /extensions/{id}/processes/{name}/stop': async ({ id, name }) => {
    await programs.stop(id, name)
    return { ok: true }
  },
})
