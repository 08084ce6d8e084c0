import type { Contract, Handlers, Host } from '../../../sdk/index.js'
import { openBackends } from '../../../plugins/extensions/backend/open.js'
import { extensionsContract, type ExtensionsCalls } from '../../../plugins/extensions/contract.js'
import { held, limitsOf } from './world.js'

export const contract: Contract<ExtensionsCalls> = extensionsContract

/** The group for tests of backends: the test instead of the management decides which extensions run. */
export const activate = async (host: Host): Promise<void> => {
  const world = held(host.place.data)
  const { runtime, calls } = openBackends(
    host,
    {
      refused: id => (world.off.has(id) ? 'off' : world.known.has(id) ? undefined : 'absent'),
      settings: async id => world.settings.get(id) ?? {},
      used: (id, entry) => void world.used.push(`${id} ${entry}`),
      changed: id => world.changed(id),
    },
    limitsOf(world),
  )
  world.runtime = runtime
  // These tests do not call the management of extensions.
  await host.serve(extensionsContract, calls as Handlers<ExtensionsCalls>)
}
