import type { EndpointTarget } from '../../../endpoints/contract.js'
import type { HeardLimits } from './heard-limits.js'
import type { NativeOver } from './over.js'

/** A server, and the account on which a turn runs there. */
export interface NativeTarget extends EndpointTarget {
  readonly account?: string
  /** Stands before the ids of models in requests, such as `acme/`. */
  readonly named?: string
  /** Hears what the answers say of limits; left out: nobody does yet. */
  readonly limits?: HeardLimits
  /** Sends requests in place of the usual way. */
  readonly send?: typeof fetch
  /** Called when the turn is over here, with the failure that ended it. */
  readonly over?: (failure: NativeOver['failure'], stopped: boolean) => void
}
