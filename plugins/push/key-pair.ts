import { createECDH } from 'node:crypto'
import { refuse, type Files, type Log } from '../../sdk/index.js'

/** The daemon's key pair on P-256, in base64url (RFC 8292). */
export interface VapidKeys {
  readonly publicKey: string
  readonly privateKey: string
}

const NAME = 'key'

/** The key pair that every subscription is bound to: made at its first use and never replaced. */
export class KeyPair {
  readonly #files: Pick<Files, 'read' | 'write'>
  readonly #log: Pick<Log, 'error'>
  #found: Promise<VapidKeys> | undefined

  constructor(files: Pick<Files, 'read' | 'write'>, log: Pick<Log, 'error'>) {
    this.#files = files
    this.#log = log
  }

  /** The key pair; refuses when the stored one cannot be read or written. */
  get(): Promise<VapidKeys> {
    const found = (this.#found ??= this.#open())
    found.catch(() => {
      if (this.#found === found) this.#found = undefined
    })
    return found
  }

  async #open(): Promise<VapidKeys> {
    try {
      const stored = await this.#files.read<VapidKeys>(NAME)
      if (stored) return stored
    } catch (error) {
      this.#log.error('the key pair cannot be read', { error: String(error) })
      return refuse(
        'unavailable',
        'the stored key of push notifications cannot be read: restore files/push/key.json in the '
          + 'data folder, or remove it, after which every device must be registered anew',
      )
    }
    const pair = createECDH('prime256v1')
    const publicKey = pair.generateKeys('base64url')
    // A private key with leading zeros is shorter than the 32 bytes that signing expects.
    const privateKey = Buffer.from(pair.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url')
    const made = { publicKey, privateKey }
    await this.#files.write(NAME, made)
    return made
  }
}
