import type { Contract, Host } from '../../sdk/index.js'
import { extensionsContract, type ExtensionsCalls } from './contract.js'
import { examples } from './examples.js'
import { serveExtensions } from './serving.js'

export const contract: Contract<ExtensionsCalls> = { ...extensionsContract, examples }

/** Manages extensions: loading, approval, and their backends. */
export const activate = (host: Host): Promise<void> => serveExtensions(host)
