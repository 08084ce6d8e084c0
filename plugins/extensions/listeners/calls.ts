import type { Handlers } from '../../../sdk/index.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import type { ListenerServices } from './contract.js'

/** Serves what extensions are for automations. */
export const listenerCalls = (all: LoadedExtensions): Handlers<ListenerServices> => ({
  'extensions.automations': () => {
    const running = [...all.catalog.loaded.values()].filter(({ id }) => all.refused(id) === undefined)
    return {
      listeners: running.flatMap(({ id: extension, manifest }) => {
        const { listener } = manifest.contributes ?? {}
        return listener ? [{ extension, listener }] : []
      }),
      templates: running.flatMap(({ id: extension, manifest }) =>
        (manifest.contributes?.automationTemplates ?? []).map(template => ({ extension, template })),
      ),
    }
  },
  'extensions.deliver': () => ({ ok: true }),
})
