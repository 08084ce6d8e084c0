import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { inTransaction } from '../../../../sdk/node/files/transaction.js'

const small = (): DatabaseSync => {
  const db = new DatabaseSync(':memory:')
  db.exec('create table words (word); pragma max_page_count = 4')
  return db
}
const add = (db: DatabaseSync, word: string): unknown => db.prepare('insert into words values (?)').run(word)
const words = (db: DatabaseSync): unknown[] =>
  db
    .prepare('select word from words')
    .all()
    .map(({ word }) => word)

t.test('a database without room takes no part of a change and says so, and takes the next one', async t => {
  const db = small()
  const fill = () =>
    inTransaction(db, () => {
      for (let count = 0; count < 100; count++) add(db, 'x'.repeat(1000))
    })
  t.throws(fill, { status: 413, message: /the disk is full/ })
  t.same(words(db), [])
  inTransaction(db, () => add(db, 'later'))
  t.same(words(db), ['later'])
})

t.test('work that fails otherwise changes nothing either', async t => {
  const db = small()
  const fail = () =>
    inTransaction(db, () => {
      add(db, 'half')
      throw new Error('on purpose')
    })
  t.throws(fail, { message: 'on purpose' })
  t.same(words(db), [])
  t.notOk(db.isTransaction)
})
