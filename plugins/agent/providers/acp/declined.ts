/** What a program asked for and does not get; the code is the protocol's. */
export class Declined extends Error {
  readonly code: number

  constructor(message: string, code = -32603) {
    super(message)
    this.code = code
  }
}

/** The protocol's code for what is not there. */
export const ABSENT = -32002
/** The protocol's code for a sign-in that is missing. */
export const UNAUTHENTICATED = -32000
