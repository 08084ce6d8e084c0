import type { Host } from '../../sdk/index.js'
import { openBackends } from './backend/open.js'
import { ExtensionLogs } from './backend/process/log.js'
import { connectionCalls } from './connections/calls.js'
import { extensionsContract } from './contract.js'
import { devCalls } from './dev/calls.js'
import { DevRuns } from './dev/dev-runs.js'
import { installParts } from './install/calls.js'
import { EXTENSION_KIND } from './install/connected.js'
import { listingCalls } from './listing/calls.js'
import { listenerHandlers } from './listeners/calls.js'
import { Listeners } from './listeners/listeners.js'
import { LoadedExtensions } from './listing/loaded-extensions.js'
import { marketplaceCalls } from './marketplace/calls.js'
import { backgroundPrograms, processCalls } from './processes/calls.js'
import { ExtensionProcesses } from './processes/extension-processes.js'
import { recoverRemovals } from './removal/removal.js'
import { recoverCreations } from './scaffold/scaffold.js'
import { extensionTurnCalls } from './turns/turn-parts.js'

/** Serves the calls of the group. */
export const serveExtensions = async (host: Host): Promise<void> => {
  const all = new LoadedExtensions(host)
  const logs = new ExtensionLogs(host.place.logs)
  const processes = new ExtensionProcesses({
    host,
    records: all,
    routes: () => all.routes,
  })
  host.contribute('system.processes', () => processes.owned)
  host.contribute('capabilities.kinds', () => [EXTENSION_KIND])
  const background = backgroundPrograms(all, processes)
  const running = () => [...all.catalog.loaded.values()].filter(({ id }) => all.refused(id) === undefined)
  const listeners = new Listeners({ host, running })
  const backends = openBackends(host, all, { logs, background, received: listeners })
  all.runBackendsOn(backends.runtime)
  all.runProcessesOn(processes)
  const install = installParts(all)
  const dev = new DevRuns(all, install.updates)
  const failed = (error: unknown) =>
    host.signal.aborted || host.log.error('starting or ending extensions failed', { error: String(error) })
  host.boot('Extensions', async () => {
    await all.load()
    await Promise.all([recoverCreations(all), install.recover(), dev.sweep()])
    await recoverRemovals(all)
  })
  // Programs of extensions start when everything that they may call is up.
  host.on('daemon.ready', () => {
    const begin = async () => {
      await all.open()
      install.start()
      await dev.endGone()
    }
    void begin().catch(failed)
  })
  host.on('conversation.gone', ({ conversationId }) => void dev.copyGone(conversationId).catch(failed))
  const connections = () =>
    void processes.connectionsChanged().catch(error => {
      if (!host.signal.aborted)
        host.log.warn('giving programs of extensions the fields of connections failed', { error: String(error) })
    })
  host.on('capability.connected', connections)
  host.on('capability.removed', connections)
  host.on('terminal.ended', ({ purpose, exitCode }) => processes.ended(purpose, exitCode))
  host.on('extension.reached', ({ extension, entry }) => all.used(extension, entry))
  host.stopping(() => all.close())
  host.stopping(async () => processes.close())
  await host.serve(extensionsContract, {
    ...backends.calls,
    ...install.calls,
    ...processCalls(background),
    ...devCalls(dev),
    ...connectionCalls(all),
    ...extensionTurnCalls(host, all),
    ...marketplaceCalls(all),
    ...listenerHandlers(host, listeners),
    ...listingCalls(all, {
      updating: id => install.updates.isRunning(id),
      checkedAt: () => install.checks.checkedAt(),
      devRun: (id, from, context) => dev.shown(id, from, context),
    }),
  })
}
