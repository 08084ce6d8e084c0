import type { BackendLimits } from './limits.js'

const SPREAD = 0.2

/** When a backend that crashed is started again, and when it is not any more. */
export class Backoff {
  readonly #limits: Pick<BackendLimits, 'backoff' | 'healthyMs' | 'crashes' | 'crashesMs'>
  #crashes: number[] = []
  #wait: number

  constructor(limits: Pick<BackendLimits, 'backoff' | 'healthyMs' | 'crashes' | 'crashesMs'>) {
    this.#limits = limits
    this.#wait = limits.backoff.first
  }

  /** Records a crash and the time it ran before; returns the ms until the next start; undefined: quarantined. */
  crashed(ranMs: number, now = performance.now()): number | undefined {
    const { backoff, healthyMs, crashes, crashesMs } = this.#limits
    if (ranMs >= healthyMs) this.#wait = backoff.first
    this.#crashes = [...this.#crashes.filter(at => now - at < crashesMs), now]
    if (this.#crashes.length >= crashes) return undefined
    const wait = this.#wait * (1 - SPREAD + 2 * SPREAD * Math.random())
    this.#wait = Math.min(backoff.most, this.#wait * 2)
    return wait
  }
}
