import type { PortScan } from './scan/scan.js'

/** The dependencies of the sampler. */
export interface SamplerDeps {
  readonly scan: Pick<PortScan, 'sockets'>
  readonly everyMs: number
  /** Called when the listening sockets changed. */
  readonly changed: () => Promise<void>
  /** Called after each sample. */
  readonly sampled: () => Promise<void>
  readonly failed: (error: unknown) => void
  readonly signal: AbortSignal
}

/** Reads the socket tables at intervals, without looking at processes, until the signal is aborted. */
export const sample = ({ scan, everyMs, changed, sampled, failed, signal }: SamplerDeps): void => {
  let before: string | undefined
  let running = false
  const once = async () => {
    const networks = await scan.sockets()
    const now = networks
      .flatMap(({ conversationId = '', sockets }) =>
        sockets.map(({ port, address, inode }) => `${conversationId} ${port} ${address} ${inode}`),
      )
      .sort()
      .join('\n')
    if (before !== undefined && now !== before) await changed()
    before = now
    await sampled()
  }
  const timer = setInterval(() => {
    if (running) return
    running = true
    once()
      .catch(error => signal.aborted || failed(error))
      .finally(() => (running = false))
  }, everyMs).unref()
  signal.addEventListener('abort', () => clearInterval(timer), { once: true })
}
