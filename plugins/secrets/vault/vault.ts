import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import type { VaultUnlock } from '../contract.js'

/** What the beginning of a vault says in the clear: how it is opened, never what it holds. */
export interface VaultHead {
  readonly unlock: VaultUnlock
  /** The id of its key. */
  readonly key: string
  /** Of a passphrase: what its key is derived with. */
  readonly salt?: string
  readonly cost?: number
  /** Tells a wrong key from a damaged vault. */
  readonly check: string
  /** The `.env` file of the workspace that holds the values of plain keys. */
  readonly dotenv?: string
}
/** One stored value; of a plain key in a `.env` file the value is there. */
export interface StoredSecret {
  readonly name: string
  readonly kind: 'env' | 'generated' | 'field'
  readonly value: string
  readonly at: number
  readonly hosts?: readonly string[]
  readonly personas?: readonly string[]
}
/** A value that was replaced and may still show in what comes late. */
export interface ReplacedSecret {
  readonly name: string
  readonly value: string
  readonly until: number
}
/** Everything that a vault holds. */
export interface VaultContent {
  readonly secrets: readonly StoredSecret[]
  readonly replaced: readonly ReplacedSecret[]
}
/** A vault as it lies on the disk. */
export interface SealedVault {
  readonly head: VaultHead
  /** Covered by the tag: the first line, and the head. */
  readonly clear: Buffer
  readonly sealed: Buffer
}

const MAGIC = Buffer.from('SANDBOX-SECRETS 1\n')
const ALGORITHM = 'aes-256-gcm'
export const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const SALT_BYTES = 16
/** 64 MiB of memory for each guess. */
const COST = 65_536
const BLOCK = 8
const derive = promisify<string, Buffer, number, object, Buffer>(scrypt)

/** A new head for a key; of a passphrase the key is derived with its salt and cost. */
export const newHead = (unlock: VaultUnlock, dotenv?: string): Omit<VaultHead, 'check'> => ({
  unlock,
  key: randomBytes(8).toString('hex'),
  ...(unlock === 'passphrase' && { salt: randomBytes(SALT_BYTES).toString('base64'), cost: COST }),
  ...(dotenv !== undefined && { dotenv }),
})

/** The key of a passphrase. */
export const keyOfPassphrase = (passphrase: string, { salt = '', cost = COST }: Omit<VaultHead, 'check'>) =>
  derive(passphrase.normalize('NFKC'), Buffer.from(salt, 'base64'), KEY_BYTES, {
    N: cost,
    r: BLOCK,
    p: 1,
    maxmem: 256 * cost * BLOCK,
  })

const checkOf = (key: Buffer): Buffer => createHmac('sha256', key).update('key of a vault').digest().subarray(0, 16)

/** The head with what tells its key from others. */
export const withCheck = (head: Omit<VaultHead, 'check'>, key: Buffer): VaultHead => ({
  ...head,
  check: checkOf(key).toString('hex'),
})

/** Whether a key is that of a vault. */
export const fitsVault = ({ check }: VaultHead, key: Buffer): boolean => {
  const expected = Buffer.from(check, 'hex')
  const found = checkOf(key)
  return expected.length === found.length && timingSafeEqual(expected, found)
}

/** A vault's bytes. */
export const sealVault = (head: VaultHead, key: Buffer, content: VaultContent): Buffer => {
  const nonce = randomBytes(NONCE_BYTES)
  const clear = Buffer.concat([MAGIC, Buffer.from(`${JSON.stringify(head)}\n`)])
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(clear)
  const sealed = Buffer.concat([cipher.update(JSON.stringify(content)), cipher.final()])
  return Buffer.concat([clear, nonce, cipher.getAuthTag(), sealed])
}

/** What a vault's bytes are, without opening it; throws a sentence where they are none. */
export const readVault = (bytes: Buffer): SealedVault => {
  const end = bytes.indexOf(0x0a, MAGIC.length)
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC) || end < 0) throw new Error('it does not begin like a vault')
  const head = JSON.parse(bytes.subarray(MAGIC.length, end).toString()) as VaultHead
  return { head, clear: bytes.subarray(0, end + 1), sealed: bytes.subarray(end + 1) }
}

/** What a vault holds; throws a sentence where the key is another or a byte was changed. */
export const openVault = ({ clear, sealed }: SealedVault, key: Buffer): VaultContent => {
  const from = NONCE_BYTES + TAG_BYTES
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(clear).setAuthTag(sealed.subarray(NONCE_BYTES, from))
  try {
    const plain = Buffer.concat([decipher.update(sealed.subarray(from)), decipher.final()])
    return JSON.parse(plain.toString()) as VaultContent
  } catch {
    throw new Error('it was changed, or sealed with another key')
  }
}
