import type { Handlers } from '../../../sdk/index.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { cardsNamed, configWithReferences, connectionFor } from './connections.js'
import type { ConnectionCalls } from './contract.js'

/** Serves connections to the extensions that may use them. */
export const connectionCalls = (all: LoadedExtensions): Handlers<ConnectionCalls> => ({
  'GET /capabilities/{id}/connection': async ({ id }, { caller }) => {
    const extension = all.runnable(caller.actor.replace(/^extension:/, ''))
    const found = await connectionFor(all.host, id, extension ? cardsNamed(extension.manifest) : new Set())
    return { id, kind: found.kind, config: configWithReferences(found) }
  },
})
