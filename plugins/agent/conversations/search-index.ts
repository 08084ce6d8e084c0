import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** Something said: who said it, and the words. */
export interface Said {
  readonly speaker: 'user' | 'agent'
  readonly text: string
}

/** How far a record is in the index: its lines, and what its last one is. */
export interface IndexMark {
  readonly lines: number
  readonly tail: string
}

/** Something said that may hold the words. */
export interface FoundText extends Said {
  readonly id: string
  readonly n: number
}

const VERSION = 1
const PAGE = 500
/** The index knows stretches of three characters; shorter words are looked for line by line. */
const STRETCH = 3
const SCHEMA = `
  create table known (id text primary key, lines integer not null, tail text not null) without rowid;
  create table lines (n integer primary key, id text not null, speaker text not null, text text not null);
  create index lines_of on lines (id);
  create virtual table said using fts5 (text, content='lines', content_rowid='n', tokenize='trigram');
  insert into said (said, rank) values ('secure-delete', 1);
  pragma user_version = ${VERSION};
`

/** Everything said, by stretches of three characters. It holds nothing that the records do not, and may be lost. */
export class SearchIndex {
  readonly #path: string
  #open: DatabaseSync | undefined

  constructor(folder: string) {
    this.#path = join(folder, 'search.sqlite')
  }

  /** How far each record that has something in the index is in it. */
  get marks(): Map<string, IndexMark> {
    const rows = this.#db.prepare('select id, lines, tail from known').all()
    return new Map(rows.map(({ id, lines, tail }) => [String(id), { lines: Number(lines), tail: String(tail) }]))
  }

  /** Adds what follows in a record, and moves its mark there, in one step. */
  add(id: string, said: readonly Said[], { lines, tail }: IndexMark): void {
    this.#inOneStep(db => {
      const line = db.prepare('insert into lines (id, speaker, text) values (?, ?, ?)')
      const words = db.prepare('insert into said (rowid, text) values (?, ?)')
      for (const { speaker, text } of said) words.run(line.run(id, speaker, text).lastInsertRowid, text)
      db.prepare('insert or replace into known (id, lines, tail) values (?, ?, ?)').run(id, lines, tail)
    })
  }

  /** Takes a conversation's words out, on the disk too. */
  forget(id: string): void {
    this.#inOneStep(db => {
      db.prepare("insert into said (said, rowid, text) select 'delete', n, text from lines where id = ?").run(id)
      db.prepare('delete from lines where id = ?').run(id)
      db.prepare('delete from known where id = ?').run(id)
    })
  }

  /** What may hold the words, oldest of each conversation first, after entry `n`; empty at the end. */
  page(words: string, n: number): FoundText[] {
    const isShort = [...words].length < STRETCH || words.includes('\0')
    const rows = isShort
      ? this.#db.prepare('select n, id, speaker, text from lines where n > ? order by n limit ?').all(n, PAGE)
      : this.#db
          .prepare(
            'select l.n, l.id, l.speaker, l.text from said s join lines l on l.n = s.rowid where s.text match ? '
              + 'and s.rowid > ? order by s.rowid limit ?',
          )
          .all(`"${words.replaceAll('"', '""')}"`, n, PAGE)
    return rows.map(row => ({
      n: Number(row.n),
      id: String(row.id),
      text: String(row.text),
      speaker: row.speaker === 'user' ? 'user' : 'agent',
    }))
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
      // Only a power cut can hurt what is not waited for, and then the index is built anew.
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

  #inOneStep(work: (db: DatabaseSync) => void): void {
    const db = this.#db
    db.exec('begin immediate')
    try {
      work(db)
      db.exec('commit')
    } catch (error) {
      db.exec('rollback')
      throw error
    }
  }
}
