/** Resolves `ms` after a signal, to stop waiting for work that has not ended by then. */
export const timeoutAfter = (signal: AbortSignal, ms: number): { passed: Promise<undefined>; over: () => void } => {
  const { promise: passed, resolve } = Promise.withResolvers<undefined>()
  let timer: NodeJS.Timeout | undefined
  const start = () => void (timer = setTimeout(resolve, ms, undefined))
  if (signal.aborted) start()
  signal.addEventListener('abort', start, { once: true })
  const over = () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', start)
  }
  return { passed, over }
}
