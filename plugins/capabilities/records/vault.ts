import { type Host, Refusal, refuse } from '../../../sdk/index.js'

const LOCKED = 'the store of secrets is locked: open it with POST /secrets/store, and try again'
const NO_GROUP = 'this sandbox runs without the group of secrets, which keeps them'

/** The secret fields of connections, kept by the group of secrets under `<id>/<field>`. */
export class Vault {
  readonly #host: Pick<Host, 'call' | 'serves'>

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** Refuses where no secret can be stored now. */
  async assertOpen(): Promise<void> {
    if (!(await this.#isServed())) refuse('unavailable', NO_GROUP)
    if (!(await this.isOpen())) refuse('unavailable', LOCKED)
  }

  /** Whether values can be read and stored now; the first one makes the store. */
  async isOpen(): Promise<boolean> {
    return (await this.#isServed()) && (await this.#host.call('secrets.names')).open
  }

  /** Whether there is a store that is open: no value was stored without one. */
  async isMade(): Promise<boolean> {
    if (!(await this.#isServed())) return false
    const { open, made } = await this.#host.call('secrets.names')
    return open && made
  }

  async #isServed(): Promise<boolean> {
    return (await this.#host.serves('secrets.names')) && (await this.#host.serves('secrets.put'))
  }

  /** A value; undefined when none is stored or no store is open. */
  async get(id: string, field: string): Promise<string | undefined> {
    if (!(await this.#host.serves('secrets.get'))) return undefined
    try {
      return (await this.#host.call('secrets.get', { name: `${id}/${field}` })).value
    } catch (error) {
      if (error instanceof Refusal && CLOSED.has(error.reason)) return undefined
      throw error
    }
  }

  async put(id: string, field: string, value: string): Promise<void> {
    await this.assertOpen()
    await open(this.#host.call('secrets.put', { name: `${id}/${field}`, value }))
  }

  /** Removes one field of a connection, or all of them. */
  async drop(id: string, field = ''): Promise<void> {
    if (await this.#host.serves('secrets.drop')) await open(this.#host.call('secrets.drop', { name: `${id}/${field}` }))
  }

  async move(from: string, to: string): Promise<void> {
    if (await this.#host.serves('secrets.move')) await open(this.#host.call('secrets.move', { from, to }))
  }
}

const CLOSED: ReadonlySet<string> = new Set(['conflict', 'unavailable', 'not-found'])

/** Where no store can be made or opened, connecting something is refused as not ready (503), not as a conflict. */
const open = async <T>(asked: Promise<T>): Promise<T> => {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'conflict') refuse('unavailable', error.message, { cause: error })
    throw error
  }
}
