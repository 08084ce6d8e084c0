import { readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Files } from '../../sdk/host.js'
import { namesBelow, replaceFile } from '../../sdk/node/files/disk.js'
import { flushFolder } from '../../sdk/node/files/files.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { placeOfName } from '../../sdk/node/files/names.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import { refuse } from '../../sdk/refusal.js'
import type { Seal } from './seal.js'

const EXTENSION = '.json'

/** JSON documents below a folder, one file each, encrypted when there is a seal. */
export class FileStore implements Files {
  readonly #folder: string
  readonly #seal: Seal | undefined
  readonly #locks = new KeyedMutex()

  constructor(folder: string, seal?: Seal) {
    this.#folder = folder
    this.#seal = seal
  }

  async read<T>(name: string): Promise<T | undefined> {
    const bytes = await readFile(this.#path(name)).catch(error => {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return
      throw error
    })
    if (!bytes) return
    const plain = this.#seal ? this.#seal.open(name, bytes) : bytes
    try {
      return JSON.parse(plain.toString()) as T
    } catch (error) {
      throw new Error(`the document ${name} is not JSON`, { cause: error })
    }
  }

  async write(name: string, value: unknown): Promise<void> {
    const path = this.#path(name)
    const plain = Buffer.from(JSON.stringify(value) ?? refuse('invalid', `${name}: expected a JSON value`))
    const bytes = this.#seal ? this.#seal.seal(name, plain) : plain
    await this.#locks.with(name, () => replaceFile(path, bytes))
  }

  async remove(name: string): Promise<void> {
    const path = this.#path(name)
    await this.#locks.with(name, async () => {
      await rm(path, { force: true })
      await flushFolder(dirname(path)).catch(error => {
        if (codeOf(error) !== 'ENOENT') throw error
      })
    })
  }

  async list(prefix: string): Promise<string[]> {
    return namesBelow(this.#folder, prefix, () => EXTENSION)
  }

  /** The documents of one subfolder, by their names within it. */
  under(folder: string): Files {
    return {
      read: name => this.read(`${folder}/${name}`),
      write: (name, value) => this.write(`${folder}/${name}`, value),
      remove: name => this.remove(`${folder}/${name}`),
      list: async prefix => (await this.list(`${folder}/${prefix}`)).map(name => name.slice(folder.length + 1)),
    }
  }

  #path(name: string): string {
    return placeOfName(this.#folder, name, EXTENSION)
  }
}
