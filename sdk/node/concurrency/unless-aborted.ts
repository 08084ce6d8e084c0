/** The result of some work; throws the reason of a signal that is aborted before, and the work goes on alone. */
export const unlessAborted = async <T>(signal: AbortSignal, work: Promise<T>): Promise<T> => {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
