import type { RouteTable } from './route-table.js'
import { refuse } from '../../../sdk/index.js'
import type { ExtensionBackend } from './backend.js'
import type { HostHandlers } from './operations.js'
import type { PublishedEvents } from './events/published-events.js'
import type { ExtensionRecords } from '../runtime.js'

/** The operations that add own routes. */
export const routeOperations = (routes: RouteTable): Pick<HostHandlers, `routes.${'handle' | 'off'}`> => ({
  'routes.handle': route => {
    routes.add(route)
    return {}
  },
  'routes.off': ({ route }) => {
    routes.remove(route)
    return {}
  },
})

/** The operations that serve contributed tools. */
export const toolOperations = (
  backend: ExtensionBackend,
  progress: (call: number, text: string) => void,
): Pick<HostHandlers, `tools.${'handle' | 'off' | 'progress'}`> => ({
  'tools.handle': ({ name }) => {
    if (!backend.extension.manifest.contributes?.tools?.some(tool => tool.name === name))
      refuse('not-found', `the manifest contributes no tool ${name}`)
    backend.tools.add(name)
    return {}
  },
  'tools.off': ({ name }) => {
    backend.tools.delete(name)
    return {}
  },
  'tools.progress': ({ call, text }) => {
    progress(call, text)
    return {}
  },
})

/** The operations that say which documents it derives. */
export const documentOperations = (backend: ExtensionBackend): Pick<HostHandlers, `documents.${'handle' | 'off'}`> => ({
  'documents.handle': ({ id }) => {
    if (!backend.extension.manifest.contributes?.documents?.some(document => document.id === id))
      refuse('not-found', `the manifest contributes no documents ${id}`)
    backend.documents.add(id)
    return {}
  },
  'documents.off': ({ id }) => {
    backend.documents.delete(id)
    return {}
  },
})

/** The operation that answers the settings. */
export const settingsOperations = (
  records: Pick<ExtensionRecords, 'settings'>,
  id: string,
): Pick<HostHandlers, 'settings.get'> => ({
  'settings.get': async () => ({ settings: await records.settings(id) }),
})

/** The operation that publishes events. */
export const publishOperations = (published: PublishedEvents, id: string): Pick<HostHandlers, 'events.publish'> => ({
  'events.publish': ({ name, data }) => {
    published.publish(id, { name, data })
    return {}
  },
})
