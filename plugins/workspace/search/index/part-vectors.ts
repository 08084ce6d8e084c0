import { mkdirSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Refusal } from '../../../../sdk/index.js'
import { isSecretFile } from '../../../../sdk/node/access/secret-files.js'
import { inTransaction } from '../../../../sdk/node/files/transaction.js'
import { admits, type FileClass, type SearchScope } from '../search-scope.js'
import type { IndexStore } from './index-store.js'

/** A part of a file that a named model has no vector of yet. */
export interface UnplacedPart {
  readonly key: string
  readonly path: string
  readonly line: number
}
/** What a named model says of a part. */
export interface PlacedPart {
  readonly key: string
  readonly vector: readonly number[]
}
/** How far a named model has learned the parts. */
export interface LearnedParts {
  readonly parts: number
  readonly known: number
  /** Left out: it knows none. */
  readonly numbers?: number
}
/** How near files are to a question by a named model, from 0 to 1, and the part of each that is nearest. */
export type NamedNearness = ReadonlyMap<
  number,
  { readonly near: number; readonly line: number; readonly lines: number }
>

interface FilePart {
  readonly key: string
  readonly line: number
  readonly lines: number
}
interface FileParts {
  readonly path: string
  readonly class: FileClass
  readonly parts: FilePart[]
}
interface Vector {
  readonly numbers: Int8Array
  readonly length: number
}

const VERSION = 1
const SCHEMA = `
  CREATE TABLE vectors (model TEXT NOT NULL, part TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model, part))
    WITHOUT ROWID;
  PRAGMA user_version = ${VERSION};
`
/** What SQLite, or opening, says of a file that is of no use any more. */
const DAMAGED = /malformed|not a database|corrupt|another form/i
/** Parts beyond these are found by their words; sources come first. */
const MOST_PARTS = 50_000
/** The vectors of all models, in memory and on the disk. */
const MOST_BYTES = 128 * 1024 * 1024
const CLASSES: readonly FileClass[] = ['source', 'docs', 'config', 'test']

const PARTS = `
  SELECT files.id, files.path, files.class, chunks.part, chunks.line, chunks.lines
  FROM files JOIN chunks ON chunks.file = files.id
`
interface PartRow extends Pick<FileParts, 'path' | 'class'>, Pick<FilePart, 'line' | 'lines'> {
  readonly id: number
  readonly part: string
}

/**
 * What a model that a person names says of the parts of files. Vectors are kept by the text that they are of, apart
 * from the index, so that a rebuilt index or another branch sends nothing twice.
 */
export class PartVectors {
  readonly #store: IndexStore
  readonly #path: string
  #db: DatabaseSync | undefined
  #model: string | undefined
  #known = new Map<string, Vector>()
  #files: Map<number, FileParts> | undefined
  #wanted: readonly UnplacedPart[] | undefined
  readonly #unreadable = new Set<string>()

  constructor(store: IndexStore, path: string) {
    this.#store = store
    this.#path = path
  }

  /** Reads a file anew that was added or replaced. */
  changed(file: number): void {
    this.#wanted = undefined
    this.#unreadable.clear()
    const files = this.#files
    if (!files) return
    const rows = this.#store.all<PartRow>(`${PARTS} WHERE files.id = ?`, file)
    files.delete(file)
    for (const row of rows) add(files, row)
  }

  gone(file: number): void {
    this.#wanted = undefined
    this.#files?.delete(file)
  }

  /** Forgets the files, because the index begins again; the vectors stay. */
  reset(): void {
    this.#files = undefined
    this.#wanted = undefined
    this.#unreadable.clear()
  }

  /** The parts that a model is still to be asked for, sources first. */
  unplaced(model: string, most: number): UnplacedPart[] {
    const known = this.#vectorsOf(model)
    const left: UnplacedPart[] = []
    for (const part of this.#wantedParts()) {
      if (left.length >= most) break
      if (!known.has(part.key) && !this.#unreadable.has(part.key)) left.push(part)
    }
    return left
  }

  /** Passes a part over whose file is not as the index has it. */
  passOver(key: string): void {
    this.#unreadable.add(key)
  }

  /** How many parts there are to learn, how many of them the model knows, and how many numbers it gives for each. */
  learned(model: string): LearnedParts {
    const known = this.#vectorsOf(model)
    const parts = this.#wantedParts().filter(({ key }) => !this.#unreadable.has(key))
    const [one] = known.values()
    const numbers = one && { numbers: one.numbers.length }
    return { parts: parts.length, known: parts.filter(({ key }) => known.has(key)).length, ...numbers }
  }

  /** Keeps vectors of a model. One that gives vectors of another length is another model under the same name. */
  place(model: string, placed: readonly PlacedPart[]): void {
    const known = this.#vectorsOf(model)
    const [first] = known.values()
    const [given] = placed
    if (!given) return
    if (first && first.numbers.length !== given.vector.length) this.forget(model)
    this.#with(db => {
      this.#makeRoom(db, placed.length * given.vector.length)
      const put = db.prepare('INSERT OR REPLACE INTO vectors (model, part, vector) VALUES (?, ?, ?)')
      inTransaction(db, () => {
        for (const { key, vector } of placed) {
          const numbers = scaled(vector)
          put.run(model, key, new Uint8Array(numbers.buffer))
          known.set(key, vectorOf(numbers))
        }
      })
    })
    // How long its vectors are, says how many there is room for.
    if (!first) this.#wanted = undefined
  }

  /** Forgets what a model says: it is another one under the same name. */
  forget(model: string): void {
    this.#with(db => db.prepare('DELETE FROM vectors WHERE model = ?').run(model))
    if (this.#model === model) this.#known.clear()
    this.#wanted = undefined
  }

  /** How near each admitted file is to a question; undefined: too little is known yet. */
  nearness(model: string, question: readonly number[], scope: SearchScope): NamedNearness | undefined {
    const known = this.#vectorsOf(model)
    const asked = vectorOf(scaled(question))
    const best = new Map<number, { near: number; line: number; lines: number }>()
    for (const [file, { path, parts }] of this.#fileParts()) {
      if (!admits(scope, path)) continue
      for (const { key, line, lines } of parts) {
        const vector = known.get(key)
        if (vector?.numbers.length !== asked.numbers.length) continue
        const near = alike(asked, vector)
        if (near > (best.get(file)?.near ?? -Infinity)) best.set(file, { near, line, lines })
      }
    }
    return best.size === 0 ? undefined : spread(best)
  }

  #fileParts(): Map<number, FileParts> {
    if (this.#files) return this.#files
    const files = new Map<number, FileParts>()
    for (const row of this.#store.all<PartRow>(`${PARTS} ORDER BY files.id, chunks.line`)) add(files, row)
    return (this.#files = files)
  }

  /** The parts that are to be learned, sources first, without files of secrets, as many as there is room for. */
  #wantedParts(): readonly UnplacedPart[] {
    if (this.#wanted) return this.#wanted
    const [one] = this.#known.values()
    const most = Math.min(MOST_PARTS, one ? Math.floor(MOST_BYTES / one.numbers.length) : MOST_PARTS)
    const files = [...this.#fileParts().values()].filter(({ path }) => !isSecretFile(path))
    files.sort((a, b) => CLASSES.indexOf(a.class) - CLASSES.indexOf(b.class) || (a.path < b.path ? -1 : 1))
    const wanted = new Map<string, UnplacedPart>()
    for (const { path, parts } of files)
      for (const { key, line } of parts) if (wanted.size < most) wanted.set(key, { key, path, line })
    return (this.#wanted = [...wanted.values()])
  }

  #vectorsOf(model: string): Map<string, Vector> {
    if (this.#model === model) return this.#known
    const known = this.#with(db => {
      const read = new Map<string, Vector>()
      const rows = db.prepare('SELECT part, vector FROM vectors WHERE model = ?').iterate(model)
      for (const { part, vector } of rows as Iterable<{ part: string; vector: Uint8Array }>)
        read.set(part, vectorOf(new Int8Array(vector)))
      return read
    })
    this.#model = model
    this.#wanted = undefined
    return (this.#known = known)
  }

  /** Works with the file; a damaged one is dropped, and the model is asked again. */
  #with<T>(work: (db: DatabaseSync) => T): T {
    try {
      return work((this.#db ??= opened(this.#path)))
    } catch (error) {
      if (error instanceof Refusal) throw error
      // The index would take what SQLite says for a damage of its own file.
      if (!DAMAGED.test(String(error))) throw new Error(`${basename(this.#path)} cannot be used`, { cause: error })
    }
    this.#db?.close()
    this.#db = undefined
    for (const end of ['', '-wal', '-shm']) rmSync(this.#path + end, { force: true })
    this.#known.clear()
    this.#wanted = undefined
    return work((this.#db = opened(this.#path)))
  }

  /** Drops what is not needed now where more would not fit: other models first, then parts that no file has. */
  #makeRoom(db: DatabaseSync, bytes: number): void {
    const size = () => (db.prepare('SELECT total(length(vector)) AS size FROM vectors').get() as { size: number }).size
    if (this.#bytes + bytes <= MOST_BYTES && size() + bytes <= MOST_BYTES) return
    db.prepare('DELETE FROM vectors WHERE model <> ?').run(this.#model!)
    if (this.#bytes + bytes <= MOST_BYTES) return
    const needed = new Set(this.#wantedParts().map(({ key }) => key))
    const drop = db.prepare('DELETE FROM vectors WHERE model = ? AND part = ?')
    inTransaction(db, () => {
      for (const key of this.#known.keys()) {
        if (needed.has(key)) continue
        drop.run(this.#model!, key)
        this.#known.delete(key)
      }
    })
  }

  get #bytes(): number {
    const [one] = this.#known.values()
    return this.#known.size * (one?.numbers.length ?? 0)
  }
}

const opened = (path: string): DatabaseSync => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const db = new DatabaseSync(path)
  try {
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    const { user_version: version } = db.prepare('PRAGMA user_version').get() as { user_version: number }
    if (version === 0) inTransaction(db, () => db.exec(SCHEMA))
    else if (version !== VERSION) throw new Error('the vectors have another form')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

const add = (files: Map<number, FileParts>, { id, path, class: of, part: key, line, lines }: PartRow): void => {
  const file = files.get(id) ?? { path, class: of, parts: [] }
  file.parts.push({ key, line, lines })
  files.set(id, file)
}

/** A direction as bytes: its largest number is 127. */
const scaled = (vector: readonly number[]): Int8Array => {
  const most = vector.reduce((largest, each) => Math.max(largest, Math.abs(each)), 0)
  return Int8Array.from(vector, each => (most > 0 ? Math.round((each / most) * 127) : 0))
}

const vectorOf = (numbers: Int8Array): Vector => {
  let sum = 0
  for (const each of numbers) sum += each * each
  return { numbers, length: Math.sqrt(sum) }
}

const alike = (one: Vector, other: Vector): number => {
  if (one.length === 0 || other.length === 0) return 0
  let sum = 0
  for (let at = 0; at < one.numbers.length; at++) sum += one.numbers[at]! * other.numbers[at]!
  return sum / (one.length * other.length)
}

/**
 * Likenesses from 0, that of the usual file, to 1, that of the nearest: models differ in how alike they call texts that
 * have nothing in common.
 */
const spread = (best: ReadonlyMap<number, { near: number; line: number; lines: number }>): NamedNearness => {
  const all = [...best.values()].map(({ near }) => near)
  const usual = all.reduce((sum, near) => sum + near, 0) / all.length
  const most = all.reduce((largest, near) => Math.max(largest, near), -1)
  const range = most - usual
  return new Map(
    [...best].map(([file, found]) => [
      file,
      { ...found, near: range > 1e-6 ? Math.max(0, (found.near - usual) / range) : 0 },
    ]),
  )
}
