import typia from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { BackendServices } from './backend/contract.js'
import type { ConnectionCalls } from './connections/contract.js'
import type { DevCalls } from './dev/contract.js'
import type { ConnectedExtensionCalls, InstallCalls } from './install/contract.js'
import type { ListenerServices } from './listeners/contract.js'
import type { ListingCalls } from './listing/contract.js'
import type { MarketplaceCalls } from './marketplace/contract.js'
import type { ProcessCalls } from './processes/contract.js'
import type { ExtensionTurnCalls } from './turns/contract.js'

export type * from './backend/contract.js'
export type * from './connections/contract.js'
export type * from './dev/contract.js'
export type * from './install/contract.js'
export type * from './listeners/contract.js'
export type * from './listing/contract.js'
export type * from './manifest/manifest.js'
export type * from './marketplace/contract.js'
export type * from './processes/contract.js'
export type * from './turns/contract.js'

/** The extensions of the sandbox: the loaded ones, those that wait for approval, and their powers. */
export interface ExtensionsCalls
  extends
    BackendServices,
    ConnectedExtensionCalls,
    ConnectionCalls,
    DevCalls,
    ExtensionTurnCalls,
    InstallCalls,
    ListenerServices,
    ListingCalls,
    MarketplaceCalls,
    ProcessCalls {}

export const extensionsContract: Contract<ExtensionsCalls> = {
  schema: () => typia.json.application<ExtensionsCalls>(),
  request: typia.misc.createValidatePrune<Requests<ExtensionsCalls>>(),
  reply: () => typia.createValidate<Replies<ExtensionsCalls>>(),
}
