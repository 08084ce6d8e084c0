import type { RouterMiddleware } from '@koa/router'
import type { Contract } from '../../sdk/contract.js'
import type { Caller } from '../../sdk/types.js'
import type { Arrival } from './origin.js'
import type { HttpReply } from './reply.js'

/** What a request has passed so far; each step of `kernel/http` reads what the steps before it set. */
export interface RequestState {
  /** What the answer is written with. */
  reply: HttpReply
  /** Where the request comes from and where it was sent. */
  arrival: Arrival
  /** The contract of the group that serves the route. */
  contract: Contract
  /** Who was let in. */
  caller: Caller
  /** Ends the count of this call among those of its caller; a stream counts no longer once it has begun. */
  leave: () => void
  /** The body or the query, with the path parameters. */
  input: object
}

/** One step in the way of a request. */
export type RequestStep = RouterMiddleware<RequestState>

export type RequestContext = Parameters<RequestStep>[0]
