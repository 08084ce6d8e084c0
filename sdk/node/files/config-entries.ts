import { refuse } from '../../refusal.js'
import { KeyedMutex } from '../concurrency/keyed-mutex.js'
import { ConfigFile } from './config-file.js'

const MOST = 200
const MOST_BYTES = 256 * 1024
const MOST_ID = 60

/** An entry of a file that is none of its kind; without `id` the whole file. */
export interface EntryProblem {
  id?: string
  message: string
}
/** The content of a file of entries. */
export interface StoredEntries<T> {
  /** By name. */
  readonly entries: T[]
  readonly problems: EntryProblem[]
  /** Why the whole file cannot be used. */
  readonly wrong?: string
}
/** What a file of entries holds. */
export interface EntryKind<T> {
  /** The file's path from the workspace. */
  readonly file: string
  /** An entry, and several, as messages name them. */
  readonly one: string
  readonly many: string
  /** The call that lists them. */
  readonly list: string
  /** An entry as the file has it, or why it is none. */
  readonly parse: (id: string, value: object) => T | string
}

/** Entries by id, in a file that git versions and people edit too: read at each use and written in one step. */
export class ConfigEntries<T extends { readonly id: string; readonly name: string }> {
  readonly #kind: EntryKind<T>
  readonly #file: ConfigFile
  readonly #lock = new KeyedMutex()

  constructor(workspace: string, kind: EntryKind<T>) {
    this.#kind = kind
    this.#file = new ConfigFile(workspace, kind.file, kind.many)
  }

  async read(): Promise<StoredEntries<T>> {
    const { keys, wrong } = await this.#file.load()
    const entries: T[] = []
    const problems: EntryProblem[] = []
    for (const [id, value] of Object.entries(keys)) {
      const entry = this.#parsed(id, value)
      if (typeof entry === 'string') problems.push({ id: id.slice(0, MOST_ID), message: entry })
      else entries.push(entry)
    }
    entries.sort((one, other) => (one.name < other.name || (one.name === other.name && one.id < other.id) ? -1 : 1))
    return { entries, problems, ...(wrong !== undefined && { wrong }) }
  }

  /** An entry; refuses an unknown id. */
  async get(id: string): Promise<T> {
    const { keys, wrong } = await this.#file.load()
    if (wrong !== undefined) refuse('unprocessable', wrong)
    const entry = Object.hasOwn(keys, id) ? this.#parsed(id, keys[id]) : undefined
    if (entry === undefined) return this.#unknown(id)
    return typeof entry === 'string' ? refuse('unprocessable', `the ${this.#kind.one} ${id}: ${entry}`) : entry
  }

  /** Writes an entry: a new one never replaces another, and a change never makes one. */
  put(entry: T, create: boolean): Promise<void> {
    const { id, ...written } = entry
    const { one, many } = this.#kind
    return this.#edit(keys => {
      const known = Object.hasOwn(keys, id)
      if (create && known) refuse('conflict', `there is a ${one} ${id} already: choose another id`)
      if (!create && !known) this.#unknown(id)
      if (!known && Object.keys(keys).length >= MOST)
        refuse('unprocessable', `there are ${MOST} ${many} already: remove one first`)
      return { ...keys, [id]: written }
    })
  }

  remove(id: string): Promise<void> {
    return this.#edit(keys => {
      if (!Object.hasOwn(keys, id)) this.#unknown(id)
      const { [id]: _gone, ...others } = keys
      return others
    })
  }

  /** Removes the temporary files of interrupted writes. */
  sweep(): Promise<void> {
    return this.#file.sweep()
  }

  #parsed(id: string, value: unknown): T | string {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return `expected a ${this.#kind.one}`
    return this.#kind.parse(id, value)
  }

  #unknown(id: string): never {
    const { one, list } = this.#kind
    return refuse('not-found', `there is no ${one} ${JSON.stringify(id.slice(0, MOST_ID))}: ${list} lists them`)
  }

  #edit(next: (keys: { readonly [id: string]: unknown }) => { readonly [id: string]: unknown }): Promise<void> {
    return this.#lock.with(this.#kind.file, async () => {
      const kept = await this.#file.load()
      if (kept.wrong !== undefined) refuse('unprocessable', kept.wrong)
      const keys = next(kept.keys)
      const bytes = Buffer.byteLength(JSON.stringify(keys, undefined, 2))
      if (bytes >= MOST_BYTES)
        refuse('too-large', `the ${this.#kind.many} would have ${bytes} bytes: expected less than ${MOST_BYTES}`)
      await this.#file.save({ keys, mode: kept.mode })
    })
  }
}
