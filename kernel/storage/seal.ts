import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { flushFolders } from '../../sdk/node/files/files.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import { isAlive } from './process-lock.js'

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const ALGORITHM = 'aes-256-gcm'
const VERSION = 1
/** Format: these bytes, nonce, tag, ciphertext. The last of these bytes is the version. */
const MAGIC = Buffer.from([...Buffer.from('SEAL'), VERSION])

/** Encrypts documents with the machine's key; each is bound to its name. */
export interface Seal {
  seal(name: string, plain: Uint8Array): Buffer
  /** Decrypts a document; throws an error that names it. */
  open(name: string, sealed: Uint8Array): Buffer
}

/** Opens the seal with the key of a file; creates the key on first use. */
export const openSeal = async (keyFile: string): Promise<Seal> => {
  const key = await readKey(keyFile)
  await sweepKeys(keyFile)
  return sealWith(key)
}

const sealWith = (key: Buffer): Seal => ({
  seal: (name, plain) => {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES }).setAAD(bound(name))
    const sealed = Buffer.concat([cipher.update(plain), cipher.final()])
    return Buffer.concat([MAGIC, nonce, cipher.getAuthTag(), sealed])
  },
  open: (name, bytes) => {
    const envelope = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const start = MAGIC.length + NONCE_BYTES + TAG_BYTES
    if (envelope.length < start || !envelope.subarray(0, MAGIC.length - 1).equals(MAGIC.subarray(0, -1))) {
      throw new Error(`the document ${name} is not sealed: found ${envelope.length} other bytes`)
    }
    const version = envelope[MAGIC.length - 1]
    if (version !== VERSION) {
      throw new Error(`the document ${name} is sealed in version ${version}, this daemon reads version ${VERSION}`)
    }
    const tagAt = MAGIC.length + NONCE_BYTES
    const nonce = envelope.subarray(MAGIC.length, tagAt)
    const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES })
      .setAAD(bound(name))
      .setAuthTag(envelope.subarray(tagAt, start))
    try {
      return Buffer.concat([decipher.update(envelope.subarray(start)), decipher.final()])
    } catch {
      throw new Error(`the document ${name} does not open: it was changed, renamed, or sealed with another machine key`)
    }
  },
})

/** The additional authenticated data: version and name. */
const bound = (name: string): Buffer => Buffer.concat([MAGIC, Buffer.from(name)])

const readKey = async (file: string): Promise<Buffer> => {
  const found = await stored(file)
  if (found) return checked(file, found)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`
  try {
    const handle = await open(temporary, 'wx', 0o600)
    try {
      await handle.writeFile(randomBytes(KEY_BYTES))
      await handle.sync()
    } finally {
      await handle.close()
    }
    // link(2) never replaces a file: two daemons that start at once both use the first key.
    await link(temporary, file).catch(error => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
    await flushFolders(file)
  } finally {
    await rm(temporary, { force: true })
  }
  return checked(file, await stored(file))
}

/** Removes temporary keys of first starts that were killed. */
const sweepKeys = async (file: string): Promise<void> => {
  for (const name of await readdir(dirname(file))) {
    const [, pid] = name.startsWith(`${basename(file)}.`) ? (/\.(\d+)\.[0-9a-f]{8}\.tmp$/.exec(name) ?? []) : []
    if (pid && !isAlive(Number(pid))) await rm(join(dirname(file), name), { force: true })
  }
}

const stored = (file: string): Promise<Buffer | undefined> =>
  readFile(file).catch((error): undefined => {
    if (codeOf(error) === 'ENOENT') return
    const sentence = `the machine key ${file} cannot be read (${codeOf(error)}): let the daemon's user read it`
    throw new Error(sentence, { cause: error })
  })

const checked = (file: string, key: Buffer | undefined): Buffer => {
  if (key?.length === KEY_BYTES) return key
  throw new Error(
    `the machine key ${file} is broken: expected ${KEY_BYTES} bytes, found ${key?.length ?? 0}; `
      + 'restore it from a backup, or remove it together with what was sealed under it',
  )
}
