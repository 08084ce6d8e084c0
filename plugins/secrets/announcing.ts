import type { Host } from '../../sdk/index.js'

/** A use of values is announced at most so often. */
const USES_EVERY = 5_000

/** Tells watchers of the sandbox that secrets changed, and now and then that they were used. */
export class Announcing {
  readonly #host: Pick<Host, 'call' | 'log' | 'signal'>
  #waiting: NodeJS.Timeout | undefined
  #last = -Infinity

  constructor(host: Pick<Host, 'call' | 'log' | 'signal'>) {
    this.#host = host
    host.signal.addEventListener('abort', () => clearTimeout(this.#waiting), { once: true })
  }

  changed(key?: string): void {
    this.#host
      .call('kernel.events.publish', { domain: 'secrets', ...(key !== undefined && { key }) })
      .catch(error => this.#host.log.warn('publishing a change of secrets failed', { error: String(error) }))
  }

  used(): void {
    if (this.#waiting) return
    const wait = this.#last + USES_EVERY - performance.now()
    const tell = () => {
      this.#waiting = undefined
      this.#last = performance.now()
      this.changed()
    }
    if (wait <= 0) tell()
    else this.#waiting = setTimeout(tell, wait).unref()
  }
}
