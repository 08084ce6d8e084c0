import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { inTransaction } from '../../../sdk/node/files/transaction.js'

/** A message text and its speaker. */
export interface Said {
  readonly speaker: 'user' | 'agent'
  readonly text: string
}

/** The indexed part of a record: its number of lines, and the key of the last one. */
export interface IndexMark {
  readonly lines: number
  readonly tail: string
}

/** The position of a text in the index, and whose record it is of. */
export interface FoundPlace {
  readonly id: string
  readonly n: number
}

const VERSION = 1
/** The index contains trigrams; shorter words are searched line by line. */
const TRIGRAM = 3
const SCHEMA = `
  create table known (id text primary key, lines integer not null, tail text not null) without rowid;
  create table lines (n integer primary key, id text not null, speaker text not null, text text not null);
  create index lines_of on lines (id);
  create virtual table said using fts5 (text, content='lines', content_rowid='n', tokenize='trigram');
  insert into said (said, rank) values ('secure-delete', 1);
  pragma user_version = ${VERSION};
`

type Row = ReturnType<StatementSync['all']>[number]

const isIndexed = (words: string): boolean => [...words].length >= TRIGRAM && !words.includes('\0')
const phraseOf = (words: string): string => `"${words.replaceAll('"', '""')}"`
const saidOf = ({ speaker, text }: Row): Said => ({
  speaker: speaker === 'user' ? 'user' : 'agent',
  text: String(text ?? ''),
})

/** A trigram index of all messages. It only contains data of the records, so it may be lost. */
export class SearchIndex {
  readonly #path: string
  #open: DatabaseSync | undefined

  constructor(folder: string) {
    this.#path = join(folder, 'search.sqlite')
  }

  /** The indexed part of each record. */
  get marks(): Map<string, IndexMark> {
    const rows = this.#db.prepare('select id, lines, tail from known').all()
    return new Map(rows.map(({ id, lines, tail }) => [String(id), { lines: Number(lines), tail: String(tail) }]))
  }

  /** Adds the next lines of a record and updates its mark, in one transaction. */
  add(id: string, said: readonly Said[], { lines, tail }: IndexMark): void {
    inTransaction(this.#db, db => {
      const line = db.prepare('insert into lines (id, speaker, text) values (?, ?, ?)')
      const words = db.prepare('insert into said (rowid, text) values (?, ?)')
      for (const { speaker, text } of said) words.run(line.run(id, speaker, text).lastInsertRowid, text)
      db.prepare('insert or replace into known (id, lines, tail) values (?, ?, ?)').run(id, lines, tail)
    })
  }

  /** Removes a conversation's words, also from the disk. */
  forget(id: string): void {
    inTransaction(this.#db, db => {
      db.prepare("insert into said (said, rowid, text) select 'delete', n, text from lines where id = ?").run(id)
      db.prepare('delete from lines where id = ?').run(id)
      db.prepare('delete from known where id = ?').run(id)
    })
  }

  /** The places of all texts that may contain the words, oldest first; undefined: more than `most`, or unknown. */
  places(words: string, most: number): FoundPlace[] | undefined {
    if (!isIndexed(words)) return undefined
    const rows = this.#db
      .prepare(
        'select l.n, l.id from said s join lines l on l.n = s.rowid where s.text match ? order by s.rowid limit ?',
      )
      .all(phraseOf(words), most + 1)
    return rows.length > most ? undefined : rows.map(({ n, id }) => ({ n: Number(n), id: String(id) }))
  }

  /** The texts at these places. */
  *at(places: readonly number[]): Generator<Said> {
    const line = this.#db.prepare('select speaker, text from lines where n = ?')
    for (const n of places) yield saidOf(line.get(n) ?? {})
  }

  /** The texts of one record, oldest first. */
  *of(id: string): Generator<Said> {
    for (const row of this.#db.prepare('select speaker, text from lines where id = ? order by n').iterate(id))
      yield saidOf(row)
  }

  /** Starts over with an empty index. */
  reset(): void {
    this.close()
    for (const end of ['', '-journal']) rmSync(this.#path + end, { force: true })
  }

  close(): void {
    this.#open?.close()
    this.#open = undefined
  }

  get #db(): DatabaseSync {
    this.#open ??= this.#opened()
    return this.#open
  }

  #opened(): DatabaseSync {
    const db = new DatabaseSync(this.#path)
    try {
      // Only a power cut can damage unsynced data; then the index is rebuilt.
      db.exec('pragma synchronous = off; pragma secure_delete = on')
      const { user_version: version } = db.prepare('pragma user_version').get() ?? {}
      if (version === VERSION) return db
    } catch (error) {
      db.close()
      throw error
    }
    db.close()
    this.reset()
    return this.#fresh()
  }

  #fresh(): DatabaseSync {
    const db = new DatabaseSync(this.#path)
    db.exec(`pragma synchronous = off; pragma secure_delete = on; begin; ${SCHEMA} commit`)
    return db
  }
}
