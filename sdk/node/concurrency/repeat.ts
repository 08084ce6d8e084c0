import type { Host } from '../../host.js'

/** Repeats some work every so many milliseconds until the group stops; a failure is logged as `what` that failed. */
export const repeat = (
  { signal, log }: Pick<Host, 'signal' | 'log'>,
  ms: number,
  what: string,
  work: () => Promise<unknown>,
): void => {
  const failed = (error: unknown) => void (signal.aborted || log.error(`${what} failed`, { error: String(error) }))
  const timer = setInterval(() => void work().catch(failed), ms).unref()
  signal.addEventListener('abort', () => clearInterval(timer), { once: true })
}
