import { randomBytes } from 'node:crypto'
import { Refusal, refuse, type Host } from '../../../sdk/index.js'

const FIELD = 'shield/key'
const KEY_BYTES = 32
const NO_VAULT =
  'personal data is kept encrypted with a key in the store of secrets: this sandbox has none, or no key was made yet'

/** The key of lists and tokens, which is kept with the secrets. */
export class VaultKey {
  readonly #host: Pick<Host, 'call' | 'serves'>
  #key: Buffer | undefined

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** The key; refused where there is none or the store is locked. */
  async get(): Promise<Buffer> {
    return (await this.find()) ?? refuse('unavailable', NO_VAULT)
  }

  /** The key; undefined: none was made yet. */
  async find(): Promise<Buffer | undefined> {
    if (this.#key) return this.#key
    if (!(await this.#host.serves('secrets.get'))) return undefined
    const { value } = await opened(this.#host.call('secrets.get', { name: FIELD }))
    if (value !== undefined) this.#key = Buffer.from(value, 'base64')
    return this.#key
  }

  /** The key, which is made if there is none. */
  async make(): Promise<Buffer> {
    const there = await this.find()
    if (there) return there
    if (!(await this.#host.serves('secrets.put'))) refuse('unavailable', NO_VAULT)
    const key = randomBytes(KEY_BYTES)
    await opened(this.#host.call('secrets.put', { name: FIELD, value: key.toString('base64') }))
    this.#key = key
    return key
  }
}

/** A store that is locked or cannot be made is one answer for people: not ready. */
const opened = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    const { reason, message } = Refusal.from(error)
    if (reason === 'conflict' || reason === 'unavailable')
      return refuse('unavailable', `the lists and tokens cannot be read: ${message}`)
    throw error
  }
}
