import type { Host } from '../../../sdk/index.js'
import { Masker } from '../../../sdk/node/access/masker.js'

/** Finds the stored values of the sandbox in whatever its turns say, as they are now. */
export class StoredValues {
  readonly #host: Pick<Host, 'call' | 'serves' | 'on' | 'log'>
  #revision: number | undefined
  #reading: Promise<void> = Promise.resolve()
  masker = new Masker([])

  constructor(host: Pick<Host, 'call' | 'serves' | 'on' | 'log'>) {
    this.#host = host
    const again = () =>
      void this.refresh().catch(error =>
        host.log.error('the stored values could not be read to be masked', { error: String(error) }),
      )
    host.on('secret.set', again)
    host.on('secret.removed', again)
  }

  /** Reads the values anew; a turn that begins waits for it, and does not begin where they cannot be read. */
  refresh(): Promise<void> {
    const read = this.#reading.then(() => this.#read())
    this.#reading = read.catch(() => {})
    return read
  }

  async #read(): Promise<void> {
    if (!(await this.#host.serves('secrets.values'))) return
    const { values, revision } = await this.#host.call('secrets.values')
    if (revision === this.#revision) return
    this.masker = new Masker(values)
    this.#revision = revision
  }
}
