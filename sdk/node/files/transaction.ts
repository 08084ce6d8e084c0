import type { DatabaseSync } from 'node:sqlite'
import { writeFailure } from './disk.js'

/** Changes a database in one step: all of the changes are made, or none. A full disk is a refusal. */
export const inTransaction = (db: DatabaseSync, work: (db: DatabaseSync) => void): void => {
  try {
    db.exec('begin immediate')
    work(db)
    db.exec('commit')
  } catch (error) {
    // SQLite has rolled back by itself where the disk is full.
    if (db.isTransaction) db.exec('rollback')
    throw writeFailure(error)
  }
}
