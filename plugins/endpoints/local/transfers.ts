import { fetchWeights, type TransferAsked } from './transfer.js'
import { ignored } from '../../../sdk/index.js'

interface Running {
  readonly stop: AbortController
  readonly receivers: Set<TransferAsked['received']>
  /** What was last received, for a caller that joins. */
  last: Parameters<TransferAsked['received']> | undefined
  over: Promise<void>
}

/** Fetches each file of weights once, however many wait for it; a transfer that nobody waits for any more ends. */
export class WeightsTransfers {
  readonly #running = new Map<string, Running>()
  readonly #signal: AbortSignal

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Waits until a file is here; leaving by the signal of `asked` ends the transfer only for the last who waits. */
  async fetch(asked: TransferAsked): Promise<void> {
    const { path, signal, received } = asked
    for (;;) {
      signal.throwIfAborted()
      const running = this.#running.get(path)
      if (!running?.stop.signal.aborted) break
      await running.over.catch(ignored('its own receivers get the failure'))
    }
    const running = this.#running.get(path) ?? this.#start(asked)
    running.receivers.add(received)
    if (running.last) received(...running.last)
    const left = Promise.withResolvers<never>()
    const leave = () => left.reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    try {
      await Promise.race([running.over, left.promise])
    } finally {
      signal.removeEventListener('abort', leave)
      running.receivers.delete(received)
      if (running.receivers.size === 0) {
        running.stop.abort()
        await running.over.catch(ignored('its own receivers get the failure'))
      }
    }
  }

  #start({ signal: _signal, received: _received, ...file }: TransferAsked): Running {
    const running: Running = {
      stop: new AbortController(),
      receivers: new Set(),
      last: undefined,
      over: Promise.resolve(),
    }
    running.over = fetchWeights({
      ...file,
      signal: AbortSignal.any([this.#signal, running.stop.signal]),
      received: (...now) => {
        running.last = now
        running.receivers.forEach(receive => receive(...now))
      },
    }).finally(() => this.#running.delete(file.path))
    this.#running.set(file.path, running)
    return running
  }
}
