import type { Host } from '../../../sdk/index.js'
import type { RuntimeStates } from '../../agent/contract.js'

const FRESH = 60_000

/** Which providers could be used: looked up when first asked for, then refreshed in the background. */
export class Runtimes {
  readonly #host: Pick<Host, 'call' | 'serves'>
  readonly #now: () => number
  #found: RuntimeStates | undefined
  #at = -Infinity
  #looking: Promise<void> | undefined

  constructor(host: Pick<Host, 'call' | 'serves'>, now: () => number = Date.now) {
    this.#host = host
    this.#now = now
  }

  /** The last result; undefined: there is none yet. A new look begins when it is a minute old. */
  async known(): Promise<RuntimeStates | undefined> {
    if (!(await this.#host.serves('agent.runtimes'))) return undefined
    if (this.#now() - this.#at >= FRESH) this.#looking ??= this.#look().finally(() => (this.#looking = undefined))
    if (!this.#found) await this.#looking
    return this.#found && structuredClone(this.#found)
  }

  async #look(): Promise<void> {
    const asked = await this.#host.call('agent.runtimes').catch(() => undefined)
    if (!asked) return
    this.#found = asked.runtimes
    this.#at = this.#now()
  }
}
