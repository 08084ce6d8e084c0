import type { Contract, Host } from '../../sdk/index.js'
import { openBackends } from './backend/open.js'
import { extensionsContract, type ExtensionsCalls, type ExtensionsEntry } from './contract.js'
import { examples } from './examples.js'

export const contract: Contract<ExtensionsCalls> = { ...extensionsContract, examples }

/** Lists what the group keeps. */
export const activate = async (host: Host): Promise<void> => {
  const backends = openBackends(host, {
    refused: () => 'absent',
    settings: async () => ({}),
    used: () => {},
    changed: () => {},
  })
  await host.serve(extensionsContract, {
    ...backends.calls,
    'GET /extensions': async ({ query = '' }) => {
      const kept = await host.store.all<ExtensionsEntry>()
      const entries = kept.map(([id]) => ({ id })).filter(({ id }) => id.includes(query))
      return { entries: entries.sort((a, b) => (a.id < b.id ? -1 : 1)) }
    },
  })
}
