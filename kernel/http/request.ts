import type { RouterMiddleware } from '@koa/router'
import type { Contract } from '../../sdk/contract.js'
import type { Caller } from '../../sdk/types.js'
import type { Arrival } from './origin.js'
import type { HttpReply } from './reply.js'

/** The state of a request; each step of `kernel/http` reads what earlier steps set. */
export interface RequestState {
  /** Writes the answer. */
  reply: HttpReply
  /** Where the request comes from and which host it names. */
  arrival: Arrival
  /** The call that the route is. */
  call?: string
  /** The answer is a stream or a socket, which ends when its reader goes. */
  streamed?: true
  /** The contract of the group that serves the route. */
  contract: Contract
  /** The route is a public page: failures are pages for browsers, and every 404 is the same. */
  publicPage?: true
  /** The admitted caller. */
  caller: Caller
  /** Stops counting this call for its caller's limits; called when the request ends, and once a stream has begun. */
  leave?: () => void
  /** The body or the query, with the path parameters. */
  input: object
}

/** One middleware of the request path. */
export type RequestStep = RouterMiddleware<RequestState>

export type RequestContext = Parameters<RequestStep>[0]
