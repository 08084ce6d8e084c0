import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { BackendServices } from './backend/contract.js'

export type * from './backend/contract.js'

/** One of the entries. */
export interface ExtensionsEntry {
  id: string
}
/** The entries of a list. */
export interface ExtensionsList {
  entries: ExtensionsEntry[]
}

/** The extensions of the sandbox: what is loaded, what waits for approval, what each may do. */
export interface ExtensionsCalls extends BackendServices {
  /** List the entries by id; `query` is looked for in their ids. */
  'GET /extensions'(input: { query?: string & tags.MaxLength<100> }): ExtensionsList
}

export const extensionsContract: Contract<ExtensionsCalls> = {
  schema: () => typia.json.application<ExtensionsCalls>(),
  request: typia.misc.createValidatePrune<Requests<ExtensionsCalls>>(),
  reply: () => typia.createValidate<Replies<ExtensionsCalls>>(),
}
