import { mkdirSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { inTransaction } from '../../../../sdk/node/files/transaction.js'
import type { FileClass } from '../search-scope.js'
import type { ParsedSource } from './parsed-source.js'
import { partKey } from './part-key.js'
import { WORD_FIELDS } from './space.js'

/** A part of a file that is found as a whole. */
export interface TextChunk {
  /** Its first line, from 1. */
  readonly line: number
  readonly lines: number
  readonly head: string
  /** What its comments say. */
  readonly notes: string
  readonly body: string
}

/** The index entry of a file. */
export interface IndexedFile {
  readonly path: string
  readonly size: number
  readonly mtimeMs: number
  readonly class: FileClass
  /** Absent: it is binary or too large. */
  readonly source?: ParsedSource
  readonly chunks: readonly TextChunk[]
}

const VERSION = 8
/** An index does not grow beyond this; what does not fit is reported as not read. */
const MOST_BYTES = 2 * 1024 ** 3

const SCHEMA = `
  CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime REAL NOT NULL, class TEXT NOT NULL,
    branches INTEGER NOT NULL, guessed INTEGER NOT NULL, path_words INTEGER NOT NULL, head_words INTEGER NOT NULL,
    notes_words INTEGER NOT NULL, body_words INTEGER NOT NULL
  );
  CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, low TEXT NOT NULL);
  CREATE INDEX names_low ON names (low);
  CREATE TABLE symbols (
    file INTEGER NOT NULL, name INTEGER NOT NULL, kind TEXT NOT NULL, line INTEGER NOT NULL, exported INTEGER NOT NULL,
    around TEXT
  );
  CREATE INDEX symbols_name ON symbols (name);
  CREATE INDEX symbols_file ON symbols (file);
  CREATE TABLE uses (name INTEGER NOT NULL, file INTEGER NOT NULL, spots TEXT NOT NULL, PRIMARY KEY (name, file))
    WITHOUT ROWID;
  CREATE INDEX uses_file ON uses (file);
  CREATE TABLE imports (file INTEGER NOT NULL, target TEXT NOT NULL);
  CREATE INDEX imports_file ON imports (file);
  CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL, lines INTEGER NOT NULL, part TEXT NOT NULL
  );
  CREATE INDEX chunks_file ON chunks (file);
  CREATE VIRTUAL TABLE words USING fts5(
    path, head, notes, body, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
  );
  CREATE VIRTUAL TABLE spots USING fts5vocab(words, instance);
  CREATE TABLE word_directions (word TEXT PRIMARY KEY, rarity REAL NOT NULL, vector BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE file_directions (file INTEGER PRIMARY KEY, vector BLOB NOT NULL, placed INTEGER NOT NULL);
  CREATE VIRTUAL TABLE trigrams USING fts5(name, content='', tokenize='trigram');
  PRAGMA user_version = ${VERSION};
`

/** Kept by the connection: it stems the words of queries as the index does those of files. */
const STEMMER = `
  CREATE VIRTUAL TABLE temp.spread USING fts5vocab('main', 'words', 'row');
  CREATE VIRTUAL TABLE temp.stemmed USING fts5(word, tokenize='porter unicode61 remove_diacritics 2');
  CREATE VIRTUAL TABLE temp.stems USING fts5vocab('temp', 'stemmed', 'row');
`

/** How many files the index has, and the number of words in each field of all of them. */
export interface IndexSize {
  readonly files: number
  readonly words: readonly number[]
}

const countWords = (text: string): number => text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0

/** The index on the disk. It can be rebuilt, so a crash may cost it, and a damaged one is dropped. */
export class IndexStore {
  readonly #path: string
  #db!: DatabaseSync
  #inode = 0
  #size: { files: number; words: number[] } | undefined
  #statements = new Map<string, StatementSync>()
  #names = new Map<string, number>()
  /** Called with each file that was added or replaced, in the same step. */
  onPut: ((file: number, path: string, chunks: readonly TextChunk[]) => void) | undefined
  /** Called with each file that was deleted. */
  onDelete: ((file: number) => void) | undefined
  /** Called when all is dropped. */
  onRebuild: (() => void) | undefined

  constructor(path: string) {
    this.#path = path
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    this.#open()
  }

  #open(): void {
    try {
      this.#db = new DatabaseSync(this.#path)
      this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384')
      const { user_version: version } = this.#db.prepare('PRAGMA user_version').get() as { user_version: number }
      if (version === 0) this.#db.exec(SCHEMA)
      else if (version !== VERSION) throw new Error('the index has another form')
    } catch {
      this.#remove()
      this.#db = new DatabaseSync(this.#path)
      this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384')
      this.#db.exec(SCHEMA)
    }
    this.#db.exec(STEMMER)
    this.#inode = statSync(this.#path).ino
    this.#size = undefined
    this.#statements = new Map()
    this.#names = new Map()
  }

  #remove(): void {
    try {
      this.#db?.close()
    } catch {
      // It was never open, or is closed already.
    }
    for (const end of ['', '-wal', '-shm']) rmSync(this.#path + end, { force: true })
  }

  /** Starts again with an empty index. */
  rebuild(): void {
    this.#remove()
    this.#open()
    this.onRebuild?.()
  }

  /** Whether the file is still the one that was opened. */
  isThere(): boolean {
    return statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode
  }

  /** Whether it is full. */
  isFull(): boolean {
    const { page_count: pages } = this.get<{ page_count: number }>('PRAGMA page_count')!
    const { page_size: size } = this.get<{ page_size: number }>('PRAGMA page_size')!
    return pages * size > MOST_BYTES
  }

  close(): void {
    this.#db.close()
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known) return known
    const made = this.#db.prepare(sql)
    if (this.#statements.size > 200) this.#statements.clear()
    this.#statements.set(sql, made)
    return made
  }

  all<T>(sql: string, ...values: SQLInputValue[]): T[] {
    return this.#statement(sql).all(...values) as T[]
  }

  get<T>(sql: string, ...values: SQLInputValue[]): T | undefined {
    return this.#statement(sql).get(...values) as T | undefined
  }

  #run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid)
  }

  /** Changes several files in one step. */
  transaction(work: () => void): void {
    try {
      inTransaction(this.#db, work)
    } catch (error) {
      this.#names.clear()
      this.#size = undefined
      throw error
    }
  }

  /** How much it holds; counted once, and kept with every change. */
  get size(): IndexSize {
    if (this.#size) return this.#size
    const totals = WORD_FIELDS.map(field => `total(${field}_words) AS ${field}`).join(', ')
    const row = this.get<{ files: number; [field: string]: number }>(`SELECT count(*) AS files, ${totals} FROM files`)!
    this.#size = { files: row.files, words: WORD_FIELDS.map(field => row[field]!) }
    return this.#size
  }

  #resize(by: 1 | -1, words: readonly number[]): void {
    if (!this.#size) return
    this.#size.files += by
    words.forEach((count, at) => (this.#size!.words[at]! += by * count))
  }

  /** A word as the index has it; undefined: nothing of it can be found. */
  stem(word: string): string | undefined {
    this.#run('DELETE FROM temp.stemmed')
    this.#run('INSERT INTO temp.stemmed (word) VALUES (?)', word)
    return this.get<{ term: string }>('SELECT term FROM temp.stems LIMIT 1')?.term
  }

  /** How many parts of files it has. */
  partCount(): number {
    return this.get<{ parts: number }>('SELECT count(*) AS parts FROM chunks')!.parts
  }

  /** How many parts have a stem. */
  partsWith(stem: string): number {
    return this.get<{ doc: number }>('SELECT doc FROM temp.spread WHERE term = ?', stem)?.doc ?? 0
  }

  /** Every file, with the metadata that shows whether it changed. */
  files(): Map<string, { size: number; mtime: number }> {
    const rows = this.all<{ path: string; size: number; mtime: number }>('SELECT path, size, mtime FROM files')
    return new Map(rows.map(({ path, ...row }) => [path, row]))
  }

  delete(path: string): void {
    const file = this.get<{ id: number; [field: string]: number }>('SELECT * FROM files WHERE path = ?', path)
    if (!file) return
    this.#resize(
      -1,
      WORD_FIELDS.map(field => file[`${field}_words`]!),
    )
    this.#run('DELETE FROM words WHERE rowid IN (SELECT id FROM chunks WHERE file = ?)', file.id)
    for (const table of ['chunks', 'symbols', 'uses', 'imports', 'file_directions'])
      this.#run(`DELETE FROM ${table} WHERE file = ?`, file.id)
    this.#run('DELETE FROM files WHERE id = ?', file.id)
    this.onDelete?.(file.id)
  }

  /** Adds or replaces a file. */
  put({ path, size, mtimeMs, class: kind, source, chunks }: IndexedFile): void {
    this.delete(path)
    const pathText = path.replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    const counts = WORD_FIELDS.map(field =>
      field === 'path' ? countWords(pathText) : chunks.reduce((sum, chunk) => sum + countWords(chunk[field]), 0),
    )
    const id = this.#run(
      `INSERT INTO files (path, size, mtime, class, branches, guessed, ${WORD_FIELDS.join('_words, ')}_words)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      path,
      size,
      mtimeMs,
      kind,
      source?.branches ?? 0,
      Number(source?.guessed ?? false),
      ...counts,
    )
    this.#resize(1, counts)
    for (const { name, kind: of, line, exported, within } of source?.symbols ?? [])
      this.#run(
        'INSERT INTO symbols (file, name, kind, line, exported, around) VALUES (?, ?, ?, ?, ?, ?)',
        id,
        this.#name(name),
        of,
        line,
        Number(exported),
        within ?? null,
      )
    for (const [name, spots] of source?.uses ?? [])
      this.#run('INSERT OR REPLACE INTO uses (name, file, spots) VALUES (?, ?, ?)', this.#name(name), id, spots)
    for (const target of source?.imports ?? [])
      this.#run('INSERT INTO imports (file, target) VALUES (?, ?)', id, target)
    for (const { line, lines, head, notes, body } of chunks) {
      const chunk = this.#run(
        'INSERT INTO chunks (file, line, lines, part) VALUES (?, ?, ?, ?)',
        id,
        line,
        lines,
        partKey(path, body),
      )
      this.#run(
        'INSERT INTO words (rowid, path, head, notes, body) VALUES (?, ?, ?, ?, ?)',
        chunk,
        pathText,
        head,
        notes,
        body,
      )
    }
    this.onPut?.(id, pathText, chunks)
  }

  /** The direction of a word, if one was learned. */
  wordDirection(word: string): { rarity: number; vector: Float32Array } | undefined {
    const row = this.get<{ rarity: number; vector: Uint8Array }>(
      'SELECT rarity, vector FROM word_directions WHERE word = ?',
      word,
    )
    return row && { rarity: row.rarity, vector: new Float32Array(row.vector.slice().buffer) }
  }

  /** The directions of files, and whether each was placed since they were learned. */
  directions(): { file: number; vector: Int8Array; placed: boolean }[] {
    return this.all<{ file: number; vector: Uint8Array; placed: number }>('SELECT * FROM file_directions').map(
      ({ file, vector, placed }) => ({ file, vector: new Int8Array(vector), placed: placed === 1 }),
    )
  }

  /** The paths of files that are still there. */
  pathsOf(files: Iterable<number>): string[] {
    return [...files].flatMap(id => this.get<{ path: string }>('SELECT path FROM files WHERE id = ?', id)?.path ?? [])
  }

  /** Forgets what was learned. */
  dropDirections(): void {
    this.transaction(() => {
      for (const table of ['word_directions', 'file_directions']) this.#run(`DELETE FROM ${table}`)
    })
  }

  putWordDirections(words: readonly { word: string; rarity: number; vector: Float32Array }[]): void {
    this.transaction(() => {
      for (const { word, rarity, vector } of words)
        this.#run(
          'INSERT OR REPLACE INTO word_directions (word, rarity, vector) VALUES (?, ?, ?)',
          word,
          rarity,
          new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength),
        )
    })
  }

  /** Sets the direction of a file, which was learned or is placed by those of its words. */
  putDirection(file: number, vector: Int8Array, placed: boolean): void {
    this.#run(
      'INSERT OR REPLACE INTO file_directions (file, vector, placed) VALUES (?, ?, ?)',
      file,
      new Uint8Array(vector),
      Number(placed),
    )
  }

  /** Sets the directions of files in one step; answers those of files that are still there. */
  putDirections(all: readonly (readonly [number, Int8Array])[]): (readonly [number, Int8Array])[] {
    const there = all.filter(([file]) => this.get('SELECT 1 AS there FROM files WHERE id = ?', file))
    this.transaction(() => there.forEach(([file, vector]) => this.putDirection(file, vector, false)))
    return there
  }

  #name(name: string): number {
    const known = this.#names.get(name) ?? this.get<{ id: number }>('SELECT id FROM names WHERE name = ?', name)?.id
    if (known !== undefined) return known
    const id = this.#run('INSERT INTO names (name, low) VALUES (?, ?)', name, name.toLowerCase())
    this.#run('INSERT INTO trigrams (rowid, name) VALUES (?, ?)', id, name)
    if (this.#names.size > 50_000) this.#names.clear()
    this.#names.set(name, id)
    return id
  }
}
