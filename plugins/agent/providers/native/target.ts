import type { EndpointTarget } from '../../../endpoints/contract.js'
import type { NativeOver } from './over.js'

/** A server, and the account on which a turn runs there. */
export interface NativeTarget extends EndpointTarget {
  readonly account?: string
  /** Sends requests in place of the usual way. */
  readonly send?: typeof fetch
  /** Called when the turn is over here, with the failure that ended it. */
  readonly over?: (failure: NativeOver['failure'], stopped: boolean) => void
}
