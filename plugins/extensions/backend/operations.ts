import { refuse } from '../../../sdk/index.js'
import type { HostOperations, OperationInput, OperationOutput } from '../../../sdk/node/extension/protocol.js'
import type { Operate } from './process.js'

/** The operations of backends, each with its checked input. */
export type HostHandlers = {
  readonly [O in keyof HostOperations]: (
    input: OperationInput<HostOperations, O>,
    signal: AbortSignal,
  ) => Promise<OperationOutput<HostOperations, O>> | OperationOutput<HostOperations, O>
}

/** Carries operations out by these handlers. */
export const operateWith =
  (handlers: Partial<HostHandlers>): Operate =>
  async (op, input, signal) => {
    const handle = Object.hasOwn(handlers, op) ? handlers[op as keyof HostOperations] : undefined
    if (!handle) return refuse('not-found', `the host has no ${op}`)
    return (handle as (input: unknown, signal: AbortSignal) => unknown)(input, signal)
  }
