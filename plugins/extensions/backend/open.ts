import { join } from 'node:path'
import type { Handlers, Host } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import { Names } from '../../../sdk/node/network/names.js'
import type { ExtensionRecords } from '../runtime.js'
import type { ExtensionBackend, BackendParts } from './backend.js'
import { backgroundOperations, type BackgroundPrograms } from './background.js'
import { callOperations } from './calls.js'
import type { BackendServices } from './contract.js'
import { connectOperations } from './connections.js'
import { fetchOperations } from './fetch.js'
import { fileOperations } from '../../../sdk/node/extension/workspace-files.js'
import { BACKEND_LIMITS, type BackendLimits } from './process/limits.js'
import { ExtensionLogs, logOperations } from './process/log.js'
import { operateWith } from './operations.js'
import { PublishedEvents } from './events/published-events.js'
import { programOperations } from './programs.js'
import {
  documentOperations,
  publishOperations,
  routeOperations,
  settingsOperations,
  toolOperations,
} from './registrations.js'
import { Backends } from './runtime.js'
import { derivedDocument, documentTypes } from './documents.js'
import { eventOperations, SandboxEvents } from './events/sandbox-events.js'
import { Schedule, scheduleOperations } from './events/schedule.js'
import { secretOperations } from './secrets.js'
import { serveRequest } from './serve.js'
import { ExtensionStorage, storageOperations } from './storage.js'
import { RunningToolCalls } from './tool-calls.js'
import { callExtensionTool, offeredTools } from './tools.js'
import type { Listeners } from '../listeners/listeners.js'
import type { ProcessPlace } from './process/start-process.js'
import { ignored } from '../../../sdk/index.js'

/** The runtime of backends, and the calls that use it. */
export interface OpenedBackends {
  readonly runtime: Backends
  readonly calls: Handlers<BackendServices>
}

/** Creates the runtime of extension backends. */
export const openBackends = (
  host: Host,
  records: ExtensionRecords,
  {
    limits = BACKEND_LIMITS,
    wall,
    logs = new ExtensionLogs(host.place.logs),
    background,
    received,
  }: {
    limits?: BackendLimits
    wall?: ProcessPlace['wall']
    logs?: ExtensionLogs
    background?: BackgroundPrograms
    received?: Listeners
  } = {},
): OpenedBackends => {
  const { place } = host
  const published = new PublishedEvents()
  const events = new SandboxEvents(host, published)
  const names = new Names()
  const listeners = async () => (await host.call('kernel.listeners')).listeners
  const toolCalls = new RunningToolCalls()
  const parts = (backend: ExtensionBackend): BackendParts => {
    const { extension, entries } = backend
    const { id } = extension
    const link = () => backend.link()
    const subscribed = eventOperations(events, backend, records)
    const secrets = { host, extension, entries }
    const used = (entry: string) => records.used(id, entry)
    const reach = { entries, listeners, names, used }
    const schedule = new Schedule(host.store, id, key => {
      void backend.process?.link.request('due', { key }).catch(ignored('its process has ended'))
    })
    const connected = connectOperations({ reach, secrets, link })
    const programs = background && backgroundOperations(background, backend)
    const listening = received?.operations(backend)
    return {
      operate: operateWith({
        ...logOperations(logs, id),
        ...storageOperations(new ExtensionStorage(join(place.folder, 'storage', id))),
        ...settingsOperations(records, id),
        ...secretOperations(secrets),
        ...fetchOperations({ reach, secrets, link }),
        ...connected.handlers,
        ...programOperations({ host, place, extension, entries, records, wall }),
        ...programs?.handlers,
        ...listening?.handlers,
        ...scheduleOperations(schedule),
        ...toolOperations(backend, toolCalls, entries),
        ...documentOperations(backend),
        ...fileOperations({ workspace: place.workspace, entries, used }),
        ...callOperations({ host, records, id, entries, link }),
        ...routeOperations(backend.routes),
        ...publishOperations(published, id),
        ...subscribed.handlers,
      }),
      end: () => {
        subscribed.end()
        connected.end()
        schedule.end()
        programs?.end()
        listening?.end()
      },
    }
  }
  const runtime = new Backends({
    place: { data: place.data, ...(wall && { wall }) },
    limits,
    parts,
    printed: (id, line) => logs.write(id, 'info', line),
    failed: (id, error) => host.log.error('the host of an extension failed', { extension: id, error: String(error) }),
    changed: id => records.changed(id),
    crashed: (id, why, quarantined) => {
      logs.write(id, 'error', why)
      const type = quarantined ? 'extension.quarantined' : 'extension.failed'
      void record(host, { type, actor: `extension:${id}`, outcome: 'error', error: why.slice(0, 500) })
    },
  })
  const tools = { backends: runtime, records, calls: toolCalls }
  host.stopping(async () => {
    events.close()
    await runtime.close(Date.now() + 7_500)
    await logs.close()
  })
  return {
    runtime,
    calls: {
      'extensions.tools': () => offeredTools(tools),
      'extensions.tool': (asked, context) => callExtensionTool(tools, asked, context),
      'extensions.answerOffer': ({ id, approve }) => {
        toolCalls.answer(id, approve)
        return { ok: true }
      },
      'extensions.answerPayment': ({ id, ...answer }) => {
        toolCalls.answerPayment(id, answer)
        return { ok: true }
      },
      'extensions.documentTypes': () => ({ types: documentTypes(tools) }),
      'extensions.document': (asked, { signal }) => derivedDocument({ ...tools, data: place.data }, asked, signal),
      'extensions.serve': (request, context) =>
        serveRequest({ host, records, backends: runtime, published }, request, context),
    },
  }
}
