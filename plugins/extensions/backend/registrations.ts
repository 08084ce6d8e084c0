import type { RouteTable } from './route-table.js'
import { refuse } from '../../../sdk/index.js'
import type { ExtensionBackend } from './backend.js'
import type { HostHandlers } from './operations.js'
import type { PublishedEvents } from './events/published-events.js'
import type { ExtensionRecords } from '../runtime.js'
import { deny } from '../../../sdk/node/extension/denied.js'
import type { ManifestEntries } from '../../../sdk/node/extension/entries.js'
import type { PaymentRequest } from '../../../sdk/node/extension/protocol.js'
import { isLoopbackHostname } from '../../../sdk/node/models/outgoing.js'
import { normalHost } from '../../../sdk/node/network/host-form.js'
import { webAddress } from '../../../sdk/node/network/outbound.js'
import type { RunningToolCalls } from './tool-calls.js'

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

const HTTPS = 443
const SECRET = /\{\{\s*secret:/

/** Where a payment goes; values of secrets are for what the extension sends itself, by its manifest. */
const targetOf = (payment: PaymentRequest): { readonly url: URL; readonly host: string } => {
  if (SECRET.test(JSON.stringify(payment)))
    refuse('invalid', 'expected a payment without references to secrets, found one')
  const url = webAddress(payment.url)
  if (url.protocol !== 'https:' && !isLoopbackHostname(url.hostname))
    refuse('invalid', `url: expected https, for what is paid could be changed on the way, found ${url.protocol}`)
  const host = normalHost(url.hostname)
  return { url, host: host ?? refuse('invalid', `url: expected a host, found ${url.hostname.slice(0, 200)}`) }
}

/** The operations that serve contributed tools. */
export const toolOperations = (
  backend: ExtensionBackend,
  calls: RunningToolCalls,
  entries: Pick<ManifestEntries, 'netFor'>,
): Pick<HostHandlers, `tools.${'handle' | 'off' | 'progress' | 'offer' | 'pay' | 'served'}`> => ({
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
    calls.progress(backend.extension.id, call, text)
    return {}
  },
  'tools.offer': async ({ call, offer }) => {
    const allowed = await calls.offer(backend.extension, call, offer)
    return { ...(allowed !== undefined && { offer: allowed }) }
  },
  'tools.pay': ({ call, payment }) => {
    const { url, host } = targetOf(payment)
    if (!entries.netFor(host, url.port === '' ? HTTPS : Number(url.port))) deny(`net:${url.host}`)
    return calls.pay(backend.extension, call, payment)
  },
  'tools.served': ({ call, offer, event }) => {
    calls.served(backend.extension.id, call, offer, event)
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
