import type { TurnFailure } from '../adapter.js'

/** Thrown to end the work of a turn in this adapter. */
export class NativeOver extends Error {
  readonly why: 'stopped' | 'moved' | 'failed'
  readonly failure?: TurnFailure & { readonly resetsAt?: number }
  constructor(why: NativeOver['why'], failure?: NativeOver['failure']) {
    super(failure?.message ?? why)
    this.why = why
    if (failure) this.failure = failure
  }
}

/** Ends the turn as failed. */
export const failTurn = (message: string, code?: TurnFailure['code'], resetsAt?: number): never => {
  throw new NativeOver('failed', { message, ...(code && { code }), ...(resetsAt !== undefined && { resetsAt }) })
}
