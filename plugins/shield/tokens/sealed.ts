import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const NONCE = 12
const TAG = 16

/** A value that only the key of the vault opens. */
export interface Sealed {
  readonly sealed: string
}

/** Encrypts a JSON value, bound to a name. */
export const sealedValue = (key: Buffer, name: string, value: unknown): Sealed => {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG }).setAAD(Buffer.from(name))
  const text = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()])
  return { sealed: Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64') }
}

/** Decrypts a value; throws where it was sealed with another key or under another name. */
export const openedValue = <T>(key: Buffer, name: string, { sealed }: Sealed): T => {
  const bytes = Buffer.from(sealed, 'base64')
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE), { authTagLength: TAG })
    .setAAD(Buffer.from(name))
    .setAuthTag(bytes.subarray(NONCE, NONCE + TAG))
  const text = Buffer.concat([decipher.update(bytes.subarray(NONCE + TAG)), decipher.final()])
  return JSON.parse(text.toString('utf8')) as T
}

/** A short hash that nobody can guess values with who lacks the key. */
export const keyedHash = (key: Buffer, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url').slice(0, 16)
