/** A refused request of a program; the code is the protocol's. */
export class Declined extends Error {
  readonly code: number

  constructor(message: string, code = -32603) {
    super(message)
    this.code = code
  }
}

/** The protocol's code for a missing resource. */
export const ABSENT = -32002
/** The protocol's code for a missing sign-in. */
export const UNAUTHENTICATED = -32000
