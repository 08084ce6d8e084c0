import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../sdk/node/files/disk.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { Keyring } from './keyring.js'
import { onlyName, zero } from '../overwriting.js'
import { KEY_BYTES, keyOfPassphrase, type VaultHead } from './vault.js'
import { ignored } from '../../../sdk/index.js'

type Head = Omit<VaultHead, 'check'>

/** Makes, finds and destroys the keys of vaults, each where its vault says. */
export class VaultKeys {
  readonly #folder: string
  readonly #keyring: Keyring

  constructor(folder: string, keyring: Keyring) {
    this.#folder = join(folder, 'keys')
    this.#keyring = keyring
  }

  /** A new key, kept durably; of a passphrase nothing is kept. */
  async make(head: Head, passphrase = ''): Promise<Buffer> {
    if (head.unlock === 'passphrase') return keyOfPassphrase(passphrase, head)
    const key = randomBytes(KEY_BYTES)
    if (head.unlock === 'keyring') await this.#keyring.store(head.key, key)
    else {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 })
      await replaceFile(this.#file(head.key), key)
    }
    return key
  }

  /** The key where it can be had without a person, or undefined. */
  async find(head: Head): Promise<Buffer | undefined> {
    if (head.unlock === 'passphrase') return undefined
    const key = head.unlock === 'keyring' ? await this.#keyring.find(head.key) : await this.#stored(head.key)
    return key?.length === KEY_BYTES ? key : undefined
  }

  /** Destroys a key: what was sealed with it is lost. */
  async destroy(head: Head): Promise<void> {
    if (head.unlock === 'keyring')
      await this.#keyring.remove(head.key).catch(ignored('a ring that is not there any more gives the key to nobody'))
    if (head.unlock !== 'file') return
    const file = this.#file(head.key)
    const handle = await onlyName(file)
    try {
      await rm(file, { force: true })
      if (handle) await zero(handle)
    } finally {
      await handle?.close()
    }
    await flushFolder(this.#folder).catch(ifAbsent)
  }

  /** Destroys the key files that are of no vault: of changes that were cut off. */
  async sweep(keep: string): Promise<void> {
    const names = await readdir(this.#folder).catch(() => [])
    for (const name of names.filter(each => each !== `${keep}.key`))
      await this.destroy({ unlock: 'file', key: name.replace(/\.key$/, '') })
  }

  get missing(): Promise<string | undefined> {
    return this.#keyring.missing()
  }

  #file(id: string): string {
    return join(this.#folder, `${id}.key`)
  }

  #stored(id: string): Promise<Buffer | undefined> {
    return readFile(this.#file(id)).catch(ifAbsent)
  }
}

const ifAbsent = (error: unknown): undefined => {
  if (codeOf(error) !== 'ENOENT') throw error
  return undefined
}
