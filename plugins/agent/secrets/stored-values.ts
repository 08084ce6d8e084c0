import type { Host } from '../../../sdk/index.js'
import { Masker } from '../../../sdk/node/access/masker.js'
import type { Hidden } from '../../../sdk/node/access/mask-forms.js'
import { ignored } from '../../../sdk/index.js'

/** The current stored values of the sandbox, to be masked in the output of turns. */
export class StoredValues {
  readonly #host: Pick<Host, 'call' | 'serves' | 'on' | 'log'>
  #revision: number | undefined
  #values: readonly Hidden[] = []
  /** Credentials of running turns. */
  readonly #ofTurns = new Set<Hidden>()
  #reading: Promise<void> = Promise.resolve()
  masker = new Masker([])

  constructor(host: Pick<Host, 'call' | 'serves' | 'on' | 'log'>) {
    this.#host = host
    const again = () =>
      void this.refresh().catch(error =>
        host.log.error('reading the stored values for masking failed', { error: String(error) }),
      )
    host.on('secret.set', again)
    host.on('secret.removed', again)
  }

  /** Reads the values again; a new turn waits for it, and fails if they cannot be read. */
  refresh(): Promise<void> {
    const read = this.#reading.then(() => this.#read())
    this.#reading = read.catch(ignored('the step before told its own caller'))
    return read
  }

  async #read(): Promise<void> {
    if (!(await this.#host.serves('secrets.values'))) return
    const { values, revision } = await this.#host.call('secrets.values')
    if (revision === this.#revision) return
    this.#values = values
    this.#revision = revision
    this.#mask()
  }

  /** Masks one value more, until the returned function is called. */
  hide(value: Hidden): () => void {
    this.#ofTurns.add(value)
    this.#mask()
    return () => {
      if (this.#ofTurns.delete(value)) this.#mask()
    }
  }

  #mask(): void {
    this.masker = new Masker([...this.#values, ...this.#ofTurns])
  }
}
