import type { Host } from '../../../sdk/index.js'
import { Masker } from '../../../sdk/node/access/masker.js'

/** Masks stored values in entries of the log; reads the values again after a change. */
export class StoredMasker {
  readonly #host: Pick<Host, 'call' | 'serves' | 'on'>
  #masker: Promise<Masker> | undefined

  constructor(host: Pick<Host, 'call' | 'serves' | 'on'>) {
    this.#host = host
    const again = () => void (this.#masker = undefined)
    host.on('secret.set', again)
    host.on('secret.removed', again)
  }

  /** Replaces every stored value by its reference; fails when the values cannot be read. */
  async mask<T>(value: T): Promise<T> {
    this.#masker ??= this.#read()
    const reading = this.#masker
    try {
      return (await reading).maskJson(value)
    } catch (error) {
      if (this.#masker === reading) this.#masker = undefined
      throw error
    }
  }

  async #read(): Promise<Masker> {
    if (!(await this.#host.serves('secrets.values'))) return new Masker([])
    return new Masker((await this.#host.call('secrets.values')).values)
  }
}
