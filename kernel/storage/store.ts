import { closeSync, openSync } from 'node:fs'
import type { KeyvSqlite } from '@keyv/sqlite'
import type { Keyv } from 'keyv'
import type { Store } from '../../sdk/host.js'
import { writeFailure } from '../../sdk/node/files/disk.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { refuse } from '../../sdk/refusal.js'
import { ignored } from '../../sdk/ignored.js'
import { WrongUse } from '../config/start-error.js'

const ADAPTERS = new Map([
  ['redis', '@keyv/redis'],
  ['rediss', '@keyv/redis'],
  ['postgres', '@keyv/postgres'],
  ['postgresql', '@keyv/postgres'],
  ['mysql', '@keyv/mysql'],
  ['mongodb', '@keyv/mongo'],
  ['memcache', '@keyv/memcache'],
  ['etcd', '@keyv/etcd'],
])
const SQLITE = 'sqlite://'
const MEMORY = ':memory:'
const PAGE = 1000
const BUSY_MS = 10_000
/** What stands around a document in its row. */
const [BEFORE, AFTER] = ['{"value":', '}']
const CLOSED = 'the document store is closed: the sandbox is stopping'

/** The documents of all plugins. */
export interface DocumentStore {
  /** The documents of one plugin. */
  of(plugin: string): Store
  /** Finishes pending writes; refuses later calls. */
  close(): Promise<void>
}

type Row = [key: string, value: string]

/** Reads the rows that a statement selects, in its order. */
type ReadPage = (sqlite: KeyvSqlite, select: string, args: readonly string[]) => Promise<Row[]>

interface Table {
  readonly name: string
  readonly keyv: Keyv
  readonly sqlite: KeyvSqlite
}

/** The document store at an address; the file is opened on first use. */
export const openStore = (uri: string): DocumentStore => {
  const file = fileOf(uri)
  const stores = new Map<string, PluginStore>()
  const openings = new KeyedMutex()
  let closed = false
  return {
    of: plugin => {
      if (closed) refuse('unavailable', CLOSED)
      // Opened one at a time: switching a new file to WAL fails while another connection uses it.
      const open = (): Promise<Table> => openings.with('open', () => openTable(file, tableOf(plugin)))
      const store = stores.get(plugin) ?? new PluginStore(open)
      stores.set(plugin, store)
      return store
    },
    close: async () => {
      closed = true
      await Promise.all([...stores.values()].map(store => store.close()))
    },
  }
}

class PluginStore implements Store {
  readonly #open: () => Promise<Table>
  readonly #writes = new KeyedMutex()
  #table: Promise<Table> | undefined
  #closed = false

  constructor(open: () => Promise<Table>) {
    this.#open = open
  }

  async get<T>(key: string): Promise<T | undefined> {
    this.#check()
    return (await this.#ready()).keyv.get<T>(key)
  }

  async set(key: string, value: unknown): Promise<void> {
    // Serialised now, so that later changes of the caller are not part of this write.
    const json = JSON.stringify(value) ?? refuse('invalid', `${key}: expected a JSON value`)
    await this.#write(key, ({ keyv }) => keyv.set(key, json))
  }

  async delete(key: string): Promise<void> {
    await this.#write(key, ({ keyv }) => keyv.delete(key))
  }

  async all<T>(prefix = ''): Promise<[key: string, value: T][]> {
    return (await this.#read(prefix, rowsOf)).map(([key, value]) => [key, parsed<T>(value).value])
  }

  async texts(prefix = ''): Promise<[key: string, json: string][]> {
    const rows = await this.#read(prefix, joinedRowsOf)
    return rows.map(([key, value]) => [key, value.slice(BEFORE.length, -AFTER.length)])
  }

  /** The rows whose keys begin with a prefix, read in pages. */
  async #read(prefix: string, pageOf: ReadPage): Promise<Row[]> {
    this.#check()
    const { name, sqlite } = await this.#ready()
    // Keys are compared by their bytes, and no character is above U+10FFFF.
    const end = `${prefix}\u{10ffff}`
    const found: Row[] = []
    for (let last: string | undefined; ;) {
      const compared = last === undefined ? '>=' : '>'
      const select = `select key, value from ${name} where key ${compared} ? and key < ? order by key limit ${PAGE}`
      const page = await pageOf(sqlite, select, [last ?? prefix, end])
      found.push(...page)
      if (page.length < PAGE) return found
      last = page.at(-1)![0]
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#writes.settled()
    const table = await this.#table?.catch(() => undefined)
    await table?.sqlite.close()
  }

  #check(): void {
    if (this.#closed) refuse('unavailable', CLOSED)
  }

  #ready(): Promise<Table> {
    if (this.#table) return this.#table
    // The first use of a table makes it, which a full disk prevents.
    this.#table = this.#open().catch(error => {
      this.#table = undefined
      throw writeFailure(error)
    })
    return this.#table
  }

  /** Serialises the writes of a key, since the driver may reorder the statements of one connection. */
  async #write(key: string, work: (table: Table) => Promise<unknown>): Promise<void> {
    this.#check()
    await this.#writes
      .with(key, async () => work(await this.#ready()))
      .catch(error => {
        throw writeFailure(error)
      })
  }
}

const rowsOf: ReadPage = async (sqlite, select, args) => {
  const rows: { key: string; value: string }[] = await sqlite.query(select, ...args)
  return rows.map(({ key, value }) => [key, value])
}

/** Reads two long texts instead of many rows, which take several times as long. JSON contains no line break. */
const joinedRowsOf: ReadPage = async (sqlite, select, args) => {
  const joined = (column: string) => `coalesce(group_concat(${column}, char(10)), '') as ${column}`
  const [page]: { key: string; value: string; count: number }[] = await sqlite.query(
    `select ${joined('key')}, ${joined('value')}, count(*) as count from (${select})`,
    ...args,
  )
  if (!page?.count) return []
  const [keys, values] = [page.key.split('\n'), page.value.split('\n')]
  // A key may contain one.
  return keys.length === values.length ? keys.map((key, at) => [key, values[at]!]) : rowsOf(sqlite, select, args)
}

const openTable = async (file: string, name: string): Promise<Table> => {
  const [{ KeyvSqlite }, { Keyv }] = await Promise.all([import('@keyv/sqlite'), import('keyv')])
  // Created here with mode 600; the driver would create it readable for all users.
  if (file !== MEMORY) closeSync(openSync(file, 'a', 0o600))
  const sqlite = new KeyvSqlite({ uri: `sqlite://${file}`, table: name, busyTimeout: BUSY_MS, iterationLimit: PAGE })
  sqlite.on('error', ignored('callers get it; without a listener it would end the process'))
  await sqlite.query('pragma journal_mode=wal')
  await sqlite.query('pragma synchronous=normal')
  const keyv = new Keyv({
    store: sqlite,
    // Each plugin has a table; key prefixes would be matched as patterns.
    useKeyPrefix: false,
    throwOnErrors: true,
    serialize: ({ value }) => BEFORE + (value as string) + AFTER,
    deserialize: parsed,
  })
  return { name, keyv, sqlite }
}

const parsed = <T>(text: string): { value: T } => JSON.parse(text) as { value: T }

/** Table names are case-insensitive and contain only letters, digits and underscores. */
const tableOf = (plugin: string): string =>
  `documents_${plugin.replaceAll(/[^a-z0-9]/g, letter => `_${letter.charCodeAt(0).toString(16)}_`)}`

const fileOf = (uri: string): string => {
  const [scheme] = uri.split(':')
  if (uri.startsWith(SQLITE) && uri.length > SQLITE.length) return uri.slice(SQLITE.length)
  const adapter = ADAPTERS.get(scheme ?? '')
  // The message leaves out the address, which may contain a password.
  throw new WrongUse(
    adapter
      ? `store: ${scheme}: needs the package ${adapter}, which is not installed; use sqlite:///path/to/file`
      : 'store: expected an address such as sqlite:///path/to/file',
  )
}
