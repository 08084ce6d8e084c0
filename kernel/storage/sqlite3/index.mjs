import { DatabaseSync } from 'node:sqlite'

/** Result codes of SQLite: https://www.sqlite.org/rescode.html */
const CODES = new Map([
  [5, 'SQLITE_BUSY'],
  [6, 'SQLITE_LOCKED'],
  [8, 'SQLITE_READONLY'],
  [10, 'SQLITE_IOERR'],
  [11, 'SQLITE_CORRUPT'],
  [13, 'SQLITE_FULL'],
  [14, 'SQLITE_CANTOPEN'],
  [26, 'SQLITE_NOTADB'],
])
const BUSY = new Set(['SQLITE_BUSY', 'SQLITE_LOCKED'])
/** The pauses between two tries while another process writes. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [2, 50]
/** As many statements are kept compiled: a table has about ten. */
const STATEMENTS = 32

/** The error with the name of its result code, as the package `sqlite3` gives it; an extended code has more bits. */
const named = error => {
  const code = CODES.get((error.errcode ?? 0) & 0xff)
  return code ? Object.assign(error, { code }) : error
}

/** A connection. Statements run at once, in the order of the calls; one that meets a lock is tried again later. */
class Database {
  #database
  #patience = 0
  #statements = new Map()

  constructor(path, opened) {
    let failure
    try {
      this.#database = new DatabaseSync(path)
    } catch (error) {
      failure = named(error)
    }
    setImmediate(() => opened(failure ?? null))
  }

  /** Sets for how long, in milliseconds, a statement waits for a lock (`busyTimeout`). */
  configure(option, value) {
    if (option !== 'busyTimeout') throw new TypeError(`expected busyTimeout, found ${option}`)
    this.#patience = value
  }

  /** Runs a statement and passes its rows. */
  all(sql, ...rest) {
    const done = rest.pop()
    const until = performance.now() + this.#patience
    const attempt = pause => {
      let rows
      try {
        rows = this.#prepared(sql).all(...rest)
      } catch (error) {
        const { code } = named(error)
        if (!BUSY.has(code) || performance.now() + pause > until) return void done(error)
        return void setTimeout(() => attempt(Math.min(pause * 2, LONGEST_PAUSE_MS)), pause)
      }
      done(null, rows)
    }
    attempt(FIRST_PAUSE_MS)
  }

  /** Closes the connection. */
  close(done) {
    try {
      this.#statements.clear()
      this.#database.close()
    } catch (error) {
      return void done(named(error))
    }
    done(null)
  }

  #prepared(sql) {
    const kept = this.#statements.get(sql)
    if (kept) return kept
    const statement = this.#database.prepare(sql)
    if (this.#statements.size >= STATEMENTS) this.#statements.delete(this.#statements.keys().next().value)
    this.#statements.set(sql, statement)
    return statement
  }
}

export default { Database }
