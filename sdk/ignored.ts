/** What failures are written to. */
interface Logged {
  readonly log: { warn(message: string, fields?: object): void }
  readonly signal?: AbortSignal
}

/** A handler of failures that may be ignored, for the reason that it names. */
export const ignored = (_why: string) => (): void => {}

/** A handler that logs a failure of `what` as a warning; when the daemon stops, much fails. */
export const warned =
  ({ log, signal }: Logged, what: string) =>
  (error: unknown): void => {
    if (!signal?.aborted) log.warn(`${what} failed`, { error: String(error) })
  }
