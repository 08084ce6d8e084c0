import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { refuse } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { flushFolder, isTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { HostHandlers } from './operations.js'

const MIB = 1024 * 1024
const MOST_KEYS = 10_000
const MOST_VALUE = MIB
const MOST_ALL = 64 * MIB
const MOST_LISTED = 1000
/** The longest key, escaped as JSON, and its line end. */
const FIRST_LINE = 4096

/** The storage entry of one key. */
interface Stored {
  readonly file: string
  readonly bytes: number
}

/** A key is data, never a part of a path. */
const fileOf = (key: string): string => createHash('sha256').update(key).digest('hex')

/** The stored values of one extension: a file for each key, with the key on its first line and then the value. */
export class ExtensionStorage {
  readonly #folder: string
  readonly #turns = new KeyedMutex()
  #index: Promise<Map<string, Stored>> | undefined
  #bytes = 0

  constructor(folder: string) {
    this.#folder = folder
  }

  async get(key: string): Promise<unknown> {
    const stored = (await this.#known()).get(key)
    if (!stored) return undefined
    const text = await readFile(join(this.#folder, stored.file), 'utf8').catch(error =>
      codeOf(error) === 'ENOENT' ? undefined : Promise.reject(error),
    )
    return text === undefined ? undefined : (JSON.parse(text.slice(text.indexOf('\n') + 1)) as unknown)
  }

  /** Sets a key, durably. */
  set(key: string, value: unknown): Promise<void> {
    return this.#turns.with(key, () => this.#set(key, value))
  }

  delete(key: string): Promise<boolean> {
    return this.#turns.with(key, async () => {
      const index = await this.#known()
      const stored = index.get(key)
      if (!stored) return false
      await rm(join(this.#folder, stored.file), { force: true })
      await flushFolder(this.#folder)
      index.delete(key)
      this.#bytes -= stored.bytes
      return true
    })
  }

  /** Sets a key if its value is the expected one. */
  compareAndSet(key: string, expected: unknown, value: unknown): Promise<boolean> {
    return this.#turns.with(key, async () => {
      if (!isDeepStrictEqual(await this.get(key), expected)) return false
      await this.#set(key, value)
      return true
    })
  }

  async list(prefix = '', limit = MOST_LISTED, after = ''): Promise<{ keys: string[]; next?: string }> {
    const most = Math.min(Math.max(1, limit), MOST_LISTED)
    const all = [...(await this.#known()).keys()].filter(key => key.startsWith(prefix) && key > after).sort()
    const keys = all.slice(0, most)
    return all.length > most ? { keys, next: keys.at(-1)! } : { keys }
  }

  async #set(key: string, value: unknown): Promise<void> {
    const json = jsonOf(value)
    const bytes = Buffer.byteLength(json)
    if (bytes > MOST_VALUE) refuse('too-large', `value: expected at most ${MOST_VALUE} bytes of JSON, found ${bytes}`)
    const index = await this.#known()
    const before = index.get(key)
    if (!before && index.size >= MOST_KEYS) refuse('too-large', `key: expected at most ${MOST_KEYS} keys`)
    const grows = bytes - (before?.bytes ?? 0)
    if (this.#bytes + grows > MOST_ALL) refuse('too-large', `value: expected at most ${MOST_ALL} bytes in all keys`)
    const stored = { file: fileOf(key), bytes }
    // Counted before the write, so that concurrent writes do not exceed the limits together.
    this.#bytes += grows
    index.set(key, stored)
    try {
      await writeAtomic(join(this.#folder, stored.file), `${JSON.stringify(key)}\n${json}`, { flush: true })
    } catch (error) {
      this.#bytes -= grows
      if (before) index.set(key, before)
      else index.delete(key)
      throw error
    }
  }

  #known(): Promise<Map<string, Stored>> {
    this.#index ??= this.#read()
    this.#index.catch(() => (this.#index = undefined))
    return this.#index
  }

  async #read(): Promise<Map<string, Stored>> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const index = new Map<string, Stored>()
    this.#bytes = 0
    for (const file of await readdir(this.#folder)) {
      if (isTemporary(file)) continue
      const { key, size } = await headOfFile(join(this.#folder, file))
      const bytes = size - Buffer.byteLength(JSON.stringify(key)) - 1
      index.set(key, { file, bytes })
      this.#bytes += bytes
    }
    return index
  }
}

const headOfFile = async (path: string): Promise<{ key: string; size: number }> => {
  await using file = await open(path, 'r')
  const { buffer, bytesRead } = await file.read(Buffer.alloc(FIRST_LINE), 0, FIRST_LINE, 0)
  const line = buffer.subarray(0, bytesRead)
  const { size } = await file.stat()
  return { key: JSON.parse(line.subarray(0, line.indexOf(10)).toString()) as string, size }
}

const jsonOf = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? refuse('invalid', 'value: expected a JSON value, found undefined')
  } catch (error) {
    if (error instanceof RangeError) return refuse('invalid', 'value: is nested too deeply')
    throw error
  }
}

/** The operations on stored values. */
export const storageOperations = (
  storage: ExtensionStorage,
): Pick<HostHandlers, `storage.${'get' | 'set' | 'delete' | 'list' | 'compareAndSet'}`> => ({
  'storage.get': async ({ key }) => {
    const value = await storage.get(key)
    return value === undefined ? {} : { value }
  },
  'storage.set': async ({ key, value }) => {
    await storage.set(key, value)
    return {}
  },
  'storage.delete': async ({ key }) => ({ existed: await storage.delete(key) }),
  'storage.list': ({ prefix, limit, after }) => storage.list(prefix, limit, after),
  'storage.compareAndSet': async ({ key, expected, value }) => ({
    done: await storage.compareAndSet(key, expected, value),
  }),
})
