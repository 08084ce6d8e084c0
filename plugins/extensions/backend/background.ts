import { refuse, ignored } from '../../../sdk/index.js'
import type { ExtensionProcessExit, ExtensionProcessStatus } from '../../../sdk/node/extension/protocol.js'
import type { ExtensionBackend } from './backend.js'
import type { HostHandlers } from './operations.js'

/** The background programs that manifests contribute, by extension and name. */
export interface BackgroundPrograms {
  start(id: string, name: string): Promise<void>
  stop(id: string, name: string): Promise<void>
  status(id: string, name: string): Promise<ExtensionProcessStatus>
  /** Calls the listener with each end of one of them, until the answered function is called. */
  onExit(id: string, listener: (exit: ExtensionProcessExit) => void): () => void
}

const MOST_WATCHES = 100

/** The operations on the background programs of a backend's extension, and the function that ends its watches. */
export const backgroundOperations = (
  programs: BackgroundPrograms,
  backend: ExtensionBackend,
): {
  handlers: Pick<HostHandlers, `processes.${'start' | 'stop' | 'status' | 'watch' | 'unwatch'}`>
  end: () => void
} => {
  const { id } = backend.extension
  const watches = new Map<number, () => void>()
  return {
    handlers: {
      'processes.start': async ({ name }) => {
        await programs.start(id, name)
        return {}
      },
      'processes.stop': async ({ name }) => {
        await programs.stop(id, name)
        return {}
      },
      'processes.status': async ({ name }) => ({ status: await programs.status(id, name) }),
      'processes.watch': ({ watch }) => {
        if (watches.has(watch) || watches.size >= MOST_WATCHES)
          refuse('too-many', `expected at most ${MOST_WATCHES} watches of background programs`)
        const told = (exit: ExtensionProcessExit) =>
          void backend.process?.link.request('exited', { watch, exit }).catch(ignored('its process has ended'))
        watches.set(watch, programs.onExit(id, told))
        return {}
      },
      'processes.unwatch': ({ watch }) => {
        watches.get(watch)?.()
        watches.delete(watch)
        return {}
      },
    },
    end: () => {
      for (const off of watches.values()) off()
      watches.clear()
    },
  }
}
