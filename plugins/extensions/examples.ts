import type { Examples } from '../../sdk/contract.js'
import type { ExtensionsCalls } from './contract.js'

/** One use of each call. */
export const examples = (): Examples<ExtensionsCalls> => ({
  'GET /extensions': { input: { query: 'a' }, output: { entries: [{ id: 'a-1' }] } },
})
