/** A request that is answered with an error; the message is for people and holds no credential. */
export class ServingFailure extends Error {
  readonly status: number
  /** In seconds. */
  readonly retryAfter: string | undefined
  /** The error as the server wrote it, for a caller of its protocol. */
  readonly body: string | undefined

  constructor(status: number, message: string, more: { retryAfter?: string; body?: string } = {}) {
    super(message)
    this.status = status
    this.retryAfter = more.retryAfter
    this.body = more.body
  }
}

/** The failure among the causes of an error: packages wrap what a request throws. */
export const servingFailure = (error: unknown): ServingFailure | undefined => {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++)
    if (at instanceof ServingFailure) return at
  return undefined
}
