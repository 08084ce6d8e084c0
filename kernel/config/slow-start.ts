import type { Daemon } from '../daemon.js'
import type { Logger } from '../logs/log.js'

const SLOW = 10_000

/** Resolves when the daemon is ready; a slow start says every 10 s which step it waits for. */
export const saysWhatItWaitsFor = async (
  { kernel, ready }: Pick<Daemon, 'kernel' | 'ready'>,
  log: Pick<Logger, 'warn'>,
): Promise<void> => {
  const says = setInterval(() => {
    const step = kernel.boot.progress().steps.find(({ state }) => state === 'running')
    log.warn(`the sandbox is still starting: ${step?.label ?? 'waiting'}`)
  }, SLOW)
  await ready.finally(() => clearInterval(says))
}
