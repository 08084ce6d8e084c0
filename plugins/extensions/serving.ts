import type { Host } from '../../sdk/index.js'
import { extensionsContract } from './contract.js'
import { listingCalls } from './listing/calls.js'
import { LoadedExtensions, type RuntimeOf } from './listing/loaded-extensions.js'
import { recoverRemovals } from './removal/removal.js'
import { recoverCreations } from './scaffold/scaffold.js'

/** Serves the calls of the group; without a runtime no backend runs. */
export const serveExtensions = async (host: Host, runtimeOf?: RuntimeOf): Promise<void> => {
  const all = new LoadedExtensions(host, runtimeOf)
  const failed = (error: unknown) =>
    host.signal.aborted || host.log.error('starting the extensions failed', { error: String(error) })
  host.boot('Extensions', async () => {
    await all.load()
    await recoverCreations(all)
    await recoverRemovals(all)
  })
  // Programs of extensions start when everything that they may call is up.
  host.on('daemon.ready', () => void all.open().catch(failed))
  host.stopping(() => all.close())
  await host.serve(extensionsContract, {
    ...listingCalls(all, { updating: () => false, devOf: async () => undefined, checkedAt: () => undefined }),
  })
}
