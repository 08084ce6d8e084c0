import type { Duplex } from 'node:stream'

const AT_ONCE = 256

/** Limits the rate of messages of one pipe, so that only a process that floods it has to wait. */
export class Pace {
  readonly #perSecond: number
  readonly #pipe: Duplex
  #left: number
  #since = performance.now()
  #run = 0
  #timer: NodeJS.Timeout | NodeJS.Immediate | undefined
  #ended = false

  constructor(perSecond: number, pipe: Duplex) {
    this.#perSecond = perSecond
    this.#pipe = pipe
    this.#left = perSecond
  }

  /** Counts one message; stops reading the pipe for a while when there were too many. */
  count(): void {
    this.#left--
    if (++this.#run < AT_ONCE && this.#left > 0) return
    this.#run = 0
    const now = performance.now()
    this.#left = Math.min(this.#perSecond, this.#left + ((now - this.#since) * this.#perSecond) / 1000)
    this.#since = now
    if (this.#timer || this.#ended) return
    this.#pipe.pause()
    const wait = this.#left > 0 ? 0 : Math.ceil((-this.#left * 1000) / this.#perSecond) + 10
    const resume = () => {
      this.#timer = undefined
      if (!this.#ended) this.#pipe.resume()
    }
    this.#timer = wait === 0 ? setImmediate(resume) : setTimeout(resume, wait)
  }

  end(): void {
    this.#ended = true
  }
}
